// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/parameter_shards.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/collective_check.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

void Check(const absl::Status& status, const char* what, const std::string& block) {
  CheckCollective(status, absl::StrCat(what, " of ", block));
}

// Memory of a tensor that owns its storage. Only the storage changes: what backward has saved of the parameter, views
// included, finds the values when they are there again.
void Allocate(const at::Tensor& tensor) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(storage.allocator()->allocate(tensor.nbytes()));
  storage.set_nbytes(tensor.nbytes());
}

void Deallocate(const at::Tensor& tensor) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, tensor.device()));
  storage.set_nbytes(0);
}

// Strides in which rows lie one after the other without gaps: the parameter's own (channels-last, too), where it can.
std::vector<int64_t> RowStrides(const at::Tensor& parameter) {
  const int64_t row = parameter.numel() / parameter.size(0);
  const bool fits = parameter.is_non_overlapping_and_dense() && (parameter.size(0) == 1 || parameter.stride(0) == row);
  std::vector<int64_t> strides = fits ? parameter.strides().vec() : parameter.detach().contiguous().strides().vec();
  strides[0] = row;
  return strides;
}

// The first `count` rows of `from` to rows [shard][row] of `to`, [ranks, k, ...].
void CopyRows(const at::Tensor& from, const at::Tensor& to) {
  const int64_t rows_per_rank = to.size(1);
  const int64_t full_ranks = from.size(0) / rows_per_rank;
  const int64_t full_rows = full_ranks * rows_per_rank;
  if (full_ranks > 0) {
    to.narrow(0, 0, full_ranks).copy_(from.narrow(0, 0, full_rows).unflatten(0, {full_ranks, rows_per_rank}));
  }
  const int64_t rest = from.size(0) - full_rows;
  if (rest > 0) to.select(0, full_ranks).narrow(0, 0, rest).copy_(from.narrow(0, full_rows, rest));
}

}  // namespace

// A parameter, and where its rows lie in the block's.
struct ParameterShards::Place {
  at::Tensor parameter;
  at::Tensor padded;  // [ranks, width]: the parameter's memory, with the rows behind its last one
  at::Tensor shard;
  int64_t offset = 0;  // of the shard in Block::shard
  int64_t rows = 0;    // of the shard
  int64_t width = 0;   // elements of the shard

  // `flat`: [width of the block]. The part that belongs to this parameter, shaped as its shard.
  at::Tensor ViewOf(const at::Tensor& flat) const {
    return flat.as_strided(shard.sizes(), shard.strides(), flat.storage_offset() + offset);
  }

  // `all`: [ranks, elements of the block]. The part that belongs to this parameter, [ranks, rows, ...].
  at::Tensor RowsIn(const at::Tensor& all) const {
    std::vector<int64_t> sizes = shard.sizes().vec();
    std::vector<int64_t> strides = shard.strides().vec();
    sizes.insert(sizes.begin(), all.size(0));
    strides.insert(strides.begin(), all.size(1));
    return all.as_strided(sizes, strides, offset);
  }

  // From the parameter, which is there.
  void TakeRows(int64_t rank, const Block& block) const;
};

struct ParameterShards::Block {
  std::string name;
  std::vector<Place> places;
  at::Tensor shard;  // [elements of all shards]
  bool is_whole = false;
};

void ParameterShards::Place::TakeRows(int64_t rank, const Block& block) const {
  block.shard.narrow(0, offset, width).copy_(padded.select(0, rank));
}

// Where the gradients of one pass through a block end: an input for each parameter, called once with all of them.
class ParameterShards::ReduceNode : public Node {
 public:
  ReduceNode(ParameterShards& shards, Block& block) : shards_(shards), block_(block) {
    for (const Place& place : block_.places) add_next_edge(torch::autograd::impl::gradient_edge(place.shard));
  }

  variable_list apply(variable_list&& gradients) override { return shards_.Reduce(block_, std::move(gradients)); }
  std::string name() const override { return absl::StrCat("ReduceScatter ", block_.name); }

 private:
  ParameterShards& shards_;
  Block& block_;
};

ParameterShards::ParameterShards(Communicator& communicator) : communicator_(communicator) {}
ParameterShards::~ParameterShards() = default;

absl::StatusOr<std::unique_ptr<ParameterShards>> ParameterShards::Make(std::vector<ParameterBlock> blocks,
                                                                       Communicator& communicator) {
  auto shards = std::unique_ptr<ParameterShards>(new ParameterShards(communicator));
  for (const ParameterBlock& block : blocks) {
    for (const NamedParameter& parameter : block.parameters) {
      const at::Tensor& value = parameter.value;
      const bool fits = value.dim() > 0 && value.numel() > 0 && value.is_leaf() &&
                        value.scalar_type() == block.parameters[0].value.scalar_type();
      if (fits) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          parameter.name, " is ", at::toString(value.scalar_type()), " [", absl::StrJoin(value.sizes(), ", "),
          "], expected rows to share out between ranks, of the type of the other parameters of ", block.name));
    }
    shards->Add(block);
  }
  shards->holds_whole_ = true;
  return shards;
}

void ParameterShards::Add(const ParameterBlock& given) {
  const at::NoGradGuard no_gradients;
  const int64_t ranks = communicator_.size();
  Block& block = *blocks_.emplace_back(std::make_unique<Block>());
  block.name = given.name;
  int64_t elements = 0;
  for (const NamedParameter& parameter : given.parameters) {
    const at::Tensor& value = parameter.value;
    const int64_t rows = (value.size(0) + ranks - 1) / ranks;
    block.places.push_back({value, {}, {}, elements, rows, rows * (value.numel() / value.size(0))});
    elements += block.places.back().width;
  }
  if (block.places.empty()) return;
  block.shard = at::zeros({elements}, block.places[0].parameter.options().requires_grad(false));
  for (Place& place : block.places) Split(place, block);
  block.is_whole = true;
}

void ParameterShards::Split(Place& place, const Block& block) {
  at::Tensor& parameter = place.parameter;
  const std::vector<int64_t> sizes = parameter.sizes().vec();
  const std::vector<int64_t> strides = RowStrides(parameter);
  place.padded = at::zeros({communicator_.size(), place.width}, block.shard.options());
  place.padded.as_strided(sizes, strides, 0).copy_(parameter);
  parameter.requires_grad_(false);
  parameter.set_(place.padded.storage(), 0, sizes, strides);

  std::vector<int64_t> shard_sizes = sizes;
  shard_sizes[0] = place.rows;
  place.shard = block.shard.as_strided(shard_sizes, strides, place.offset).detach();
  place.TakeRows(communicator_.rank(), block);
  place.shard.requires_grad_(true);
  rows_.emplace(place.shard.unsafeGetTensorImpl(), sizes[0]);
  shards_.emplace(parameter.unsafeGetTensorImpl(), place.shard);
}

at::Tensor ParameterShards::ShardOf(const at::Tensor& parameter) const {
  const auto found = shards_.find(parameter.unsafeGetTensorImpl());
  return found == shards_.end() ? at::Tensor() : found->second;
}

int64_t ParameterShards::WholeRows(const at::Tensor& shard) const {
  const auto found = rows_.find(shard.unsafeGetTensorImpl());
  return found == rows_.end() ? shard.size(0) : found->second;
}

at::Tensor ParameterShards::Whole(const at::Tensor& share, int64_t rows) {
  const at::NoGradGuard no_gradients;
  const absl::StatusOr<at::Tensor> gathered = communicator_.AllGather(share.detach());  // [ranks, rows of each, ...]
  Check(gathered.status(), "gathering the rows", "a parameter");
  return gathered->flatten(0, 1).narrow(0, 0, rows);
}

at::Tensor ParameterShards::OwnRows(const at::Tensor& whole, int64_t count) const {
  std::vector<int64_t> sizes = whole.sizes().vec();
  sizes[0] = count;
  at::Tensor share = at::zeros(sizes, whole.options());
  const int64_t begin = std::min(communicator_.rank() * count, whole.size(0));
  const int64_t own = std::min(count, whole.size(0) - begin);
  share.narrow(0, 0, own).copy_(whole.narrow(0, begin, own));
  return share;
}

void ParameterShards::Gather(Block& block) {
  if (block.is_whole || block.places.empty()) return;
  const at::NoGradGuard no_gradients;
  const absl::StatusOr<at::Tensor> gathered = communicator_.AllGather(block.shard);  // [ranks, elements]
  Check(gathered.status(), "gathering the parameters", block.name);
  for (const Place& place : block.places) {
    Allocate(place.padded);
    place.padded.copy_(gathered->narrow(1, place.offset, place.width));
  }
  block.is_whole = true;
}

void ParameterShards::Free(Block& block) {
  if (!block.is_whole || holds_whole_) return;
  for (const Place& place : block.places) Deallocate(place.padded);
  block.is_whole = false;
}

// A new node for each pass: its gradients are complete when the pass's are. The parameter keeps the node of its last
// pass, because what backward has saved must not turn into a leaf.
void ParameterShards::ExpectGradients(size_t index) {
  Block& block = *blocks_[index];
  if (block.places.empty()) return;
  const std::shared_ptr<ReduceNode> node(new ReduceNode(*this, block), torch::autograd::deleteNode);
  for (Place& place : block.places) torch::autograd::set_history(place.parameter, node);
}

void ParameterShards::ExpectNoGradients(const Block& block) {
  for (const Place& place : block.places) torch::autograd::impl::set_gradient_edge(place.parameter, {});
}

std::vector<at::Tensor> ParameterShards::Run(size_t index, Pass pass,
                                             absl::FunctionRef<std::vector<at::Tensor>()> run) {
  Block& block = *blocks_[index];
  const bool makes_graph = at::GradMode::is_enabled() && pass == Pass::kForward && !holds_whole_;
  if (makes_graph) ExpectGradients(index);
  if (holds_whole_) ExpectNoGradients(block);
  Gather(block);
  const std::vector<at::Tensor> outputs = run();
  for (const at::Tensor& output : outputs) {
    if (!makes_graph || !output.requires_grad() || block.places.empty()) continue;
    output.register_hook([this, &block](const at::Tensor&) { Gather(block); });
  }
  if (pass == Pass::kForward) Free(block);
  return outputs;
}

std::vector<at::Tensor> ParameterShards::Reduce(Block& block, std::vector<at::Tensor> gradients) {
  Free(block);
  const at::NoGradGuard no_gradients;
  const at::Tensor rows = at::zeros({communicator_.size(), block.shard.numel()}, block.shard.options());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) CopyRows(gradients[i], block.places[i].RowsIn(rows));
    gradients[i] = at::Tensor();  // its memory is free for the reduction
  }
  absl::StatusOr<at::Tensor> reduced = communicator_.ReduceScatter(rows, ReduceOp::kMean);
  Check(reduced.status(), "reducing the gradients", block.name);
  // A row of what was reduced would keep the others.
  if (reduced->storage().nbytes() > reduced->nbytes()) reduced = reduced->clone();
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = block.places[i].ViewOf(*reduced);
  return gradients;
}

void ParameterShards::HoldWhole() {
  for (const std::unique_ptr<Block>& block : blocks_) Gather(*block);
  holds_whole_ = true;
}

void ParameterShards::Release(bool take_over) {
  const at::NoGradGuard no_gradients;
  holds_whole_ = false;
  for (const std::unique_ptr<Block>& block : blocks_) {
    for (const Place& place : block->places) {
      if (take_over) place.TakeRows(communicator_.rank(), *block);
    }
    Free(*block);
  }
}

WholeParameters::WholeParameters(Model& model)
    : shards_(model.parameter_shards() != nullptr && !model.parameter_shards()->holds_whole() ? model.parameter_shards()
                                                                                              : nullptr) {
  if (shards_ != nullptr) shards_->HoldWhole();
}

WholeParameters::~WholeParameters() {
  if (shards_ != nullptr) shards_->Release(/*take_over=*/false);
}

absl::StatusOr<at::Tensor> NormOverShards(const at::Tensor& own, double norm_type, Communicator& communicator) {
  const at::NoGradGuard no_grad;
  const bool is_largest = std::isinf(norm_type);
  at::Tensor all = is_largest ? own.clone() : own.to(at::kDouble).pow(norm_type);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(all, is_largest ? ReduceOp::kMax : ReduceOp::kSum));
  return is_largest ? all : all.pow(1.0 / norm_type).to(own.scalar_type());
}

absl::Status CheckNotSharded(Model& model, absl::string_view who) {
  if (model.parameter_shards() == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(who, " needs whole parameters, and config.TRAINER.TASK_NAME is self_supervision_fsdp_task, which ",
                   "shares them out between ranks; expected self_supervision_task (and no ",
                   "config.MODEL.FSDP_CONFIG.AUTO_SETUP_FSDP, which sets the other), or a run of one rank"));
}

}  // namespace ssl
