// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/model.h"

#include <c10/util/Exception.h>

namespace ssl {

std::vector<at::Tensor> Model::ForwardNamed(const std::map<std::string, at::Tensor>& inputs) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "this model takes views, not ", inputs.size(), " named inputs");
}

MapAndOutputs Model::ForwardWithMap(const at::Tensor& images, const std::string& stage) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "this model does not give the map of its stage '", stage, "'");
}

absl::Status Model::ShardParameters(Communicator& communicator) {
  return absl::UnimplementedError(
      "this model cannot share out its parameters between ranks (config.TRAINER.TASK_NAME is "
      "self_supervision_fsdp_task); expected self_supervision_task");
}

}  // namespace ssl
