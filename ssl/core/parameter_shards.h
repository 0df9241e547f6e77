// SPDX-License-Identifier: Apache-2.0
//
// Parameters of which every rank holds its share only: fully sharded data parallel training (Zhao et al. 2023,
// arXiv:2304.11277; stage 3 of Rajbhandari et al. 2020, "ZeRO", arXiv:1910.02054).
//
// A parameter [N, ...] is split by rows: of W ranks, rank r holds rows r k ... (r + 1) k - 1 with k = ceil(N / W); rows
// behind the last one are zeros, which stay zeros in every optimizer. These rows, the shard, are what is trained,
// clipped and averaged: a leaf tensor [k, ...] of as many dimensions as the parameter. The parameters of one block of
// the network are gathered and freed together:
//
//   forward    gather, run, free
//   backward   gather when the gradient of the block's output is there; when those of its parameters are complete,
//              free, and reduce-scatter them: their mean over the ranks is added to the gradients of the shards
//
// So whole parameters and whole gradients exist of one block at a time, beside activations. A block that runs several
// times in a step (multi-crop, several batches per update) is reduced each time: to keep whole gradients for one
// reduction would take the memory that sharding saves. Ranks add in the order of ranks. A gradient that is undefined
// counts as zero, also when it is on all ranks.
//
// Collective unless it says otherwise: all ranks run the same blocks in the same order, and backward through the same.
// Used by one thread; backward may call it from LibTorch's. Throws LibTorch exceptions; a failed communicator is a
// c10::DistBackendError. Gradients of gradients are not supported.
#ifndef SSL_CORE_PARAMETER_SHARDS_H_
#define SSL_CORE_PARAMETER_SHARDS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/model.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

struct ParameterBlock {
  std::string name;  // for messages
  // Leaf tensors of one type on one device, equal on all ranks. They become handles whose memory comes and goes.
  std::vector<NamedParameter> parameters;
};

class ParameterShards {
 public:
  enum class Pass {
    kForward,    // the block's parameters are needed again in backward, or (without gradients) no more
    kRecompute,  // a second forward pass, within backward: the gradients follow
  };

  // Parameters stay whole until Release, so that weights can be loaded. The communicator outlives the shards, and these
  // outlive backward. InvalidArgument names a parameter that cannot be split. Local.
  static absl::StatusOr<std::unique_ptr<ParameterShards>> Make(std::vector<ParameterBlock> blocks,
                                                               Communicator& communicator);
  ~ParameterShards();

  Communicator& communicator() const { return communicator_; }

  // The shard of a parameter that was given to Make; undefined for any other tensor. Local.
  at::Tensor ShardOf(const at::Tensor& parameter) const;
  // Whether `tensor` is a shard. Local.
  bool IsShard(const at::Tensor& tensor) const { return rows_.count(tensor.unsafeGetTensorImpl()) > 0; }
  // Rows of the whole parameter of `shard`; of another tensor its own. Local.
  int64_t WholeRows(const at::Tensor& shard) const;

  // [rows, ...]: what has been split as parameters are, and of which every rank passes its share. Without a graph.
  at::Tensor Whole(const at::Tensor& share, int64_t rows);
  // This rank's share, of `count` rows, of a tensor that is whole; behind its last row zeros. Local.
  at::Tensor OwnRows(const at::Tensor& whole, int64_t count) const;

  // run() with the parameters of block `index` there, and gathered again for its gradients. `run` returns all that
  // depends on them.
  std::vector<at::Tensor> Run(size_t index, Pass pass, absl::FunctionRef<std::vector<at::Tensor>()> run);

  // The gradients of block `index` that the graph of the next forward pass brings go to its shards. Run does it, but
  // for a pass that makes its graph in backward only. Local.
  void ExpectGradients(size_t index);

  // From now on all parameters are there, as handles have them, until Release. Runs are local then, and their graphs
  // lead to no parameter.
  void HoldWhole();
  // take_over: what was written into the held parameters becomes the shards'; equal on all ranks. Local.
  void Release(bool take_over);
  bool holds_whole() const { return holds_whole_; }

 private:
  struct Place;
  struct Block;
  class ReduceNode;

  explicit ParameterShards(Communicator& communicator);

  static void ExpectNoGradients(const Block& block);

  void Add(const ParameterBlock& given);
  // Splits the parameter and frees it; its place within the block is known.
  void Split(Place& place, const Block& block);
  void Gather(Block& block);
  void Free(Block& block);
  // gradients: of the block's parameters; returns those of the shards.
  std::vector<at::Tensor> Reduce(Block& block, std::vector<at::Tensor> gradients);

  Communicator& communicator_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> shards_;  // by the parameter
  std::unordered_map<const c10::TensorImpl*, int64_t> rows_;       // of the whole parameter, by the shard
  bool holds_whole_ = false;
};

// While it lives, `model` runs with whole parameters, if need be on one rank alone: for what looks at a model in
// between. Of a model that is not sharded, or whole already, it does nothing. Made by all ranks, and throws as above.
class WholeParameters {
 public:
  explicit WholeParameters(Model& model);
  ~WholeParameters();
  WholeParameters(const WholeParameters&) = delete;
  WholeParameters& operator=(const WholeParameters&) = delete;

 private:
  ParameterShards* const shards_;  // null: nothing to do
};

// The p-norms of what ranks have shares of, elementwise, where `own` are those of this rank's shares. Collective.
absl::StatusOr<at::Tensor> NormOverShards(const at::Tensor& own, double norm_type, Communicator& communicator);

// Unimplemented, with the way out, when `model` is sharded: `who` ("moco_loss") needs parameters that are whole.
absl::Status CheckNotSharded(Model& model, absl::string_view who);

}  // namespace ssl

#endif  // SSL_CORE_PARAMETER_SHARDS_H_
