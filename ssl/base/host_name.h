// SPDX-License-Identifier: Apache-2.0
#ifndef SSL_BASE_HOST_NAME_H_
#define SSL_BASE_HOST_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

// This machine's own name; `otherwise` when it has none. Thread-safe.
std::string HostName(absl::string_view otherwise);

}  // namespace ssl

#endif  // SSL_BASE_HOST_NAME_H_
