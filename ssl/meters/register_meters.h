// SPDX-License-Identifier: Apache-2.0
//
// Meters accuracy_list_meter, precision_at_k_list_meter, recall_at_k_list_meter and mean_ap_list_meter; the section
// METERS; the settings that follow from others.
#ifndef SSL_METERS_REGISTER_METERS_H_
#define SSL_METERS_REGISTER_METERS_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

absl::Status RegisterMeters(Registries* registries);

}  // namespace ssl

#endif  // SSL_METERS_REGISTER_METERS_H_
