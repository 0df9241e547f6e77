// SPDX-License-Identifier: Apache-2.0
//
// Of programs that were built without CUDA.
#include "ssl/core/visible_devices.h"

namespace ssl {

std::string VisibleDevices() { return ""; }

}  // namespace ssl
