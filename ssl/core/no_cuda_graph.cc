// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/cuda_graph.h"

namespace ssl {

absl::Status RegisterCudaGraph(Registries*) { return absl::OkStatus(); }

}  // namespace ssl
