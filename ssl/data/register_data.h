// SPDX-License-Identifier: Apache-2.0
//
// Everything that this package adds to a configuration: the data set type generic_ssl, the data sources, the
// transforms, and the sections DATA, DATA.TRAIN and DATA.TEST.
#ifndef SSL_DATA_REGISTER_DATA_H_
#define SSL_DATA_REGISTER_DATA_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

absl::Status RegisterData(Registries* registries);

}  // namespace ssl

#endif  // SSL_DATA_REGISTER_DATA_H_
