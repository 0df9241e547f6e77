// SPDX-License-Identifier: Apache-2.0
//
// One model on several ranks: what keeps its copies equal where training does not. All functions are collective, and
// may throw LibTorch exceptions. In a world of one they do nothing.
#ifndef SSL_CORE_MODEL_REPLICAS_H_
#define SSL_CORE_MODEL_REPLICAS_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/model.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// Parameters and buffers become those of rank 0: all tensors of the model's state.
absl::Status CopyFromRankZero(Model& model, Communicator& communicator);

// DataLoss, with the first names, on a rank whose parameters are not those of rank 0, to the bit, and Aborted on the
// others. (Buffers of a run that resumes may be each rank's own, and shards are.)
absl::Status CheckParametersAreEqual(Model& model, Communicator& communicator);

// Buffers (running statistics, counters: what the model's state has beside its parameters) become those of rank 0, by
// one operation for all of them, whatever their types. References outlive it; the model keeps its tensors.
class BufferBroadcast {
 public:
  BufferBroadcast(Model& model, Communicator& communicator) : model_(model), communicator_(communicator) {}

  absl::Status Run();

 private:
  absl::Status Prepare();

  Model& model_;
  Communicator& communicator_;
  at::Tensor bytes_;  // of all buffers, one after the other; undefined before the first run
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> places_;  // in bytes_, with the type and shape of each
};

// While it lives, buffers are rank 0's; then they are this rank's again. For what measures one model on all ranks'
// shares of the data, beside training. model: outlives it.
class RankZeroBuffers {
 public:
  // Collective.
  static absl::StatusOr<std::unique_ptr<RankZeroBuffers>> Take(Model& model, Communicator& communicator);
  ~RankZeroBuffers();
  RankZeroBuffers(const RankZeroBuffers&) = delete;
  RankZeroBuffers& operator=(const RankZeroBuffers&) = delete;

 private:
  RankZeroBuffers() = default;

  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> own_;  // their values before
};

}  // namespace ssl

#endif  // SSL_CORE_MODEL_REPLICAS_H_
