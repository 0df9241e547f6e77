// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/host_name.h"

#include <unistd.h>

namespace ssl {

std::string HostName(absl::string_view otherwise) {
  char name[256] = "";
  const bool has_name = gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0';
  return std::string(has_name ? absl::string_view(name) : otherwise);
}

}  // namespace ssl
