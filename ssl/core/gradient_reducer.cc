// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/gradient_reducer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

constexpr size_t kMostNames = 4;
constexpr int64_t kMostCounted = 256;  // by ones in bfloat16, which has no 257

int64_t Bytes(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

bool FitTogether(const at::Tensor& one, const at::Tensor& other) {
  return one.scalar_type() == other.scalar_type() && one.device() == other.device();
}

// The part of `flat` from `offset` on in the shape of the parameter, and in its strides where they leave no gaps: then
// backward's gradients have the same, and a copy is one block.
at::Tensor ViewFor(const at::Tensor& parameter, const at::Tensor& flat, int64_t offset) {
  if (!parameter.is_non_overlapping_and_dense()) {
    return flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
  }
  return flat.as_strided(parameter.sizes(), parameter.strides(), offset);
}

// The type in which gradients of `type` travel.
at::ScalarType WireType(at::ScalarType type, std::optional<at::ScalarType> compression) {
  const bool gets_smaller =
      compression.has_value() && at::isFloatingType(type) && at::elementSize(*compression) < at::elementSize(type);
  return gets_smaller ? *compression : type;
}

bool IsSamePlace(const at::Tensor& one, const at::Tensor& other) {
  return one.is_alias_of(other) && one.storage_offset() == other.storage_offset();
}

}  // namespace

struct GradientReducer::Slot {
  std::string name;
  at::Tensor parameter;
  at::Tensor view = {};      // of Bucket::flat
  at::Tensor outgoing = {};  // of Bucket::wire
  bool has_arrived = false;
  // Kept, because a parameter does not keep it, and a node that is made anew has no hook.
  std::shared_ptr<Node> accumulator = nullptr;
  uintptr_t hook = 0;
};

struct GradientReducer::Bucket {
  std::vector<Slot> slots;
  // What is reduced, and in its compression: [elements]; of the last bucket, on a host, [elements + parameters].
  at::Tensor wire;
  at::Tensor flat;      // the gradients: `wire`, or [elements] where that is compressed
  at::Tensor presence;  // of the last bucket, on a host: what is behind the elements of `wire`
  size_t outstanding = 0;
  std::unique_ptr<Work> work;

  bool is_compressed() const { return wire.scalar_type() != flat.scalar_type(); }
};

// Called when backward has added to a parameter's gradient.
class GradientReducer::ArrivalHook : public torch::autograd::FunctionPostHook {
 public:
  ArrivalHook(GradientReducer& reducer, Bucket& bucket, Slot& slot) : reducer_(reducer), bucket_(bucket), slot_(slot) {}

  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    reducer_.ArriveInBackward(bucket_, slot_);
    return outputs;
  }

 private:
  GradientReducer& reducer_;
  Bucket& bucket_;
  Slot& slot_;
};

GradientReducer::GradientReducer(std::vector<NamedParameter> parameters, const GradientReducerOptions& options,
                                 Communicator& communicator)
    : parameters_(std::move(parameters)), options_(options), communicator_(communicator) {}

GradientReducer::~GradientReducer() {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (const Slot& slot : bucket->slots) {
      if (slot.accumulator != nullptr) slot.accumulator->del_post_hook(slot.hook);
    }
  }
}

absl::Status GradientReducer::Prepare() {
  if (duplicate_ != nullptr) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(duplicate_, communicator_.Duplicate());
  const at::NoGradGuard no_gradients;
  AssignSlots();
  for (const std::unique_ptr<Bucket>& bucket : buckets_) Allocate(*bucket);
  AddHooks();
  return absl::OkStatus();
}

void GradientReducer::AssignSlots() {
  int64_t bytes = 0;
  for (auto parameter = parameters_.rbegin(); parameter != parameters_.rend(); ++parameter) {
    const int64_t limit = buckets_.size() <= 1 ? options_.first_bucket_bytes : options_.bucket_bytes;
    if (buckets_.empty() || bytes >= limit || !FitTogether(buckets_.back()->slots[0].parameter, parameter->value)) {
      buckets_.push_back(std::make_unique<Bucket>());
      bytes = 0;
    }
    buckets_.back()->slots.push_back({parameter->name, parameter->value});
    bytes += Bytes(parameter->value);
  }
}

void GradientReducer::Allocate(Bucket& bucket) {
  int64_t elements = 0;
  for (const Slot& slot : bucket.slots) elements += slot.parameter.numel();
  const bool is_last = &bucket == buckets_.back().get();
  const at::TensorOptions options = bucket.slots[0].parameter.options().requires_grad(false);
  const int64_t tail = is_last && options.device().is_cpu() ? static_cast<int64_t>(parameters_.size()) : 0;
  const at::ScalarType type = bucket.slots[0].parameter.scalar_type();
  const at::ScalarType wire_type = WireType(type, options_.compression);
  bucket.wire = at::zeros({elements + tail}, options.dtype(wire_type));
  bucket.flat = wire_type == type ? bucket.wire : at::zeros({elements}, options);
  int64_t offset = 0;
  for (Slot& slot : bucket.slots) {
    slot.view = ViewFor(slot.parameter, bucket.flat, offset);
    slot.outgoing = ViewFor(slot.parameter, bucket.wire, offset);
    offset += slot.parameter.numel();
  }
  if (is_last) presence_ = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kFloat);
  if (tail > 0) bucket.presence = bucket.wire.narrow(0, elements, tail);
}

void GradientReducer::AddHooks() {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (Slot& slot : bucket->slots) {
      slot.accumulator = torch::autograd::impl::grad_accumulator(slot.parameter);
      if (slot.accumulator == nullptr) continue;  // needs no gradient now
      slot.hook = slot.accumulator->add_post_hook(std::make_unique<ArrivalHook>(*this, *bucket, slot));
    }
  }
}

void GradientReducer::Begin() {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (Slot& slot : bucket->slots) slot.has_arrived = false;
    bucket->outstanding = bucket->slots.size();
  }
  next_bucket_ = 0;
}

absl::Status GradientReducer::StartWithBackward() {
  if (communicator_.size() == 1) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(Prepare());
  Begin();
  in_backward_ = true;
  return absl::OkStatus();
}

void GradientReducer::Arrive(Bucket& bucket, Slot& slot) {
  const at::NoGradGuard no_gradients;
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (!IsSamePlace(gradient, slot.outgoing)) slot.outgoing.copy_(gradient);
  gradient = slot.view;  // what backward has made is free now
  slot.has_arrived = true;
  --bucket.outstanding;
}

void GradientReducer::ArriveInBackward(Bucket& bucket, Slot& slot) {
  if (!in_backward_ || !slot.parameter.grad().defined()) return;
  if (slot.has_arrived) {
    // The reduction of what came first may be under way. To throw here would leave the other ranks waiting.
    if (came_twice_.empty()) came_twice_ = slot.name;
    return;
  }
  Arrive(bucket, slot);
  StartCompleteBuckets();
}

// Always in the same order: ranks whose gradients come in another one, or not at all, must not mix up buckets.
void GradientReducer::StartCompleteBuckets() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_]->outstanding == 0) {
    Bucket& bucket = *buckets_[next_bucket_++];
    if (bucket.is_compressed()) bucket.wire.div_(communicator_.size());
    if (next_bucket_ == buckets_.size()) WritePresence(bucket);
    bucket.work = duplicate_->StartAllReduce(bucket.wire, bucket.is_compressed() ? ReduceOp::kSum : ReduceOp::kMean);
  }
}

// The last bucket starts when those before it are complete, so by then it is known of all parameters.
void GradientReducer::WritePresence(Bucket& last) {
  float* present = presence_.mutable_data_ptr<float>();
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (const Slot& slot : bucket->slots) *present++ = slot.has_arrived ? 1.0F : 0.0F;
  }
  if (last.presence.defined()) {
    last.presence.copy_(presence_);
  } else {
    presence_work_ = duplicate_->StartAllReduce(presence_, ReduceOp::kMean);
  }
}

void GradientReducer::FillGaps() {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (Slot& slot : bucket->slots) {
      if (slot.has_arrived) continue;
      if (slot.parameter.grad().defined()) {
        Arrive(*bucket, slot);
      } else {
        slot.outgoing.zero_();
        --bucket->outstanding;
      }
    }
    StartCompleteBuckets();
  }
}

// Those behind it are under way meanwhile.
absl::Status GradientReducer::Finish(Bucket& bucket) {
  SSL_RETURN_IF_ERROR(bucket.work->Wait());
  if (bucket.is_compressed()) bucket.flat.copy_(bucket.wire.narrow(0, 0, bucket.flat.numel()));
  return absl::OkStatus();
}

absl::Status GradientReducer::Reduce() {
  if (communicator_.size() == 1) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(Prepare());
  if (!in_backward_) Begin();
  in_backward_ = false;
  RECORD_USER_SCOPE("waiting for reduced gradients");  // in a trace: what backward has not hidden
  FillGaps();
  for (const std::unique_ptr<Bucket>& bucket : buckets_) SSL_RETURN_IF_ERROR(Finish(*bucket));
  if (!buckets_.empty()) SSL_RETURN_IF_ERROR(Distribute());
  if (came_twice_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the gradient of ", came_twice_, " came twice in one backward pass, when its reduction over the ranks may have ",
      "begun: let the reduction start after backward (Backward, then ReduceGradients)"));
}

absl::StatusOr<at::Tensor> GradientReducer::SharesOfRanks() {
  if (presence_work_ == nullptr) return buckets_.back()->presence.to(at::kFloat);
  SSL_RETURN_IF_ERROR(std::exchange(presence_work_, nullptr)->Wait());
  return presence_;
}

// A compressed bucket has sums. A sum of ones never falls below what the type can count.
float GradientReducer::ShareOfAll() const {
  const Bucket& last = *buckets_.back();
  if (!last.presence.defined() || !last.is_compressed()) return 1.0F;
  return static_cast<float>(std::min(communicator_.size(), kMostCounted));
}

absl::Status GradientReducer::Distribute() {
  SSL_ASSIGN_OR_RETURN(const at::Tensor shares, SharesOfRanks());  // [parameters]
  const float* share = shares.const_data_ptr<float>();
  const float of_all = ShareOfAll();
  std::vector<std::string> incomplete;
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (Slot& slot : bucket->slots) {
      const float of_ranks = *share++;
      slot.parameter.mutable_grad() = of_ranks > 0.0F ? slot.view : at::Tensor();
      if (of_ranks > 0.0F && of_ranks < of_all) incomplete.push_back(slot.name);
    }
  }
  if (!incomplete.empty()) NameIncomplete(incomplete);
  return absl::OkStatus();
}

void GradientReducer::NameIncomplete(const std::vector<std::string>& names) {
  if (std::exchange(has_named_, true) || communicator_.rank() != 0) return;
  const size_t named = std::min(names.size(), kMostNames);
  SSL_LOG(WARNING) << "undefined on some ranks, and taken for zero there: the gradient of "
                   << absl::StrJoin(names.begin(), names.begin() + named, ", ")
                   << (named < names.size() ? absl::StrCat(" and ", names.size() - named, " others") : "")
                   << " (said once in a run)";
}

}  // namespace ssl
