// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/sharded_optimizer.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

// Small parameters go together in one operation of about this size; a larger one is sent from where it lies.
constexpr int64_t kBucketBytes = int64_t{1} << 20;

int64_t Bytes(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

// Parameters of one owner, type and device.
struct Bucket {
  int64_t owner = 0;
  std::vector<at::Tensor> parameters;
  int64_t bytes = 0;

  bool Takes(int64_t of_owner, const at::Tensor& parameter) const {
    return owner == of_owner && bytes + Bytes(parameter) <= kBucketBytes &&
           parameters[0].scalar_type() == parameter.scalar_type() && parameters[0].device() == parameter.device();
  }
};

// All of its memory in one row, in whatever order, which is the same on all ranks.
at::Tensor MemoryOf(const at::Tensor& parameter) {
  return parameter.detach().as_strided({parameter.numel()}, {1}, parameter.storage_offset());
}

absl::Status Send(const Bucket& bucket, Communicator& communicator) {
  const at::Tensor& first = bucket.parameters[0];
  if (bucket.parameters.size() == 1 && first.is_non_overlapping_and_dense()) {
    at::Tensor memory = MemoryOf(first);
    return communicator.Broadcast(memory, bucket.owner);
  }
  const bool owns = communicator.rank() == bucket.owner;
  std::vector<at::Tensor> rows;
  for (const at::Tensor& parameter : bucket.parameters) rows.push_back(parameter.detach().reshape({-1}));
  at::Tensor flat =
      owns ? at::cat(rows) : at::empty({bucket.bytes / static_cast<int64_t>(first.element_size())}, first.options());
  SSL_RETURN_IF_ERROR(communicator.Broadcast(flat, bucket.owner));
  if (owns) return absl::OkStatus();
  int64_t offset = 0;
  for (const at::Tensor& parameter : bucket.parameters) {
    parameter.detach().copy_(flat.narrow(0, offset, parameter.numel()).view(parameter.sizes()));
    offset += parameter.numel();
  }
  return absl::OkStatus();
}

class ShardedOptimizer : public Optimizer {
 public:
  ShardedOptimizer(std::unique_ptr<Optimizer> inner, Communicator& communicator)
      : inner_(std::move(inner)), communicator_(communicator) {}

  absl::Status Initialize(std::vector<ParameterGroup> groups) override {
    groups_ = std::move(groups);
    SSL_RETURN_IF_ERROR(CheckNumber());
    SSL_RETURN_IF_ERROR(AgreeOnStatus(inner_->Initialize(Share()), "making the optimizer", communicator_));
    // It has set what the groups have of it.
    for (size_t g = 0; g < groups_.size(); ++g) {
      groups_[g].momentum = inner_->groups()[g].momentum;
      groups_[g].momentum_schedule = inner_->groups()[g].momentum_schedule;
    }
    return absl::OkStatus();
  }

  std::vector<ParameterGroup>& groups() override { return groups_; }

  void Step(const at::Tensor& found_inf) override {
    for (size_t g = 0; g < groups_.size(); ++g) {
      ParameterGroup& own = inner_->groups()[g];
      own.learning_rate = groups_[g].learning_rate;
      own.weight_decay = groups_[g].weight_decay;
      own.momentum = groups_[g].momentum;
    }
    inner_->Step(found_inf);
  }

  absl::Status GatherUpdates() override {
    const at::NoGradGuard no_grad;
    for (const Bucket& bucket : buckets_) SSL_RETURN_IF_ERROR(Send(bucket, communicator_));
    return absl::OkStatus();
  }

  void VisitState(StateVisitor& visitor) override { inner_->VisitState(visitor); }

 private:
  // Optimizers want something to update.
  absl::Status CheckNumber() const {
    size_t parameters = 0;
    for (const ParameterGroup& group : groups_) parameters += group.parameters.size();
    if (parameters >= static_cast<size_t>(communicator_.size())) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(communicator_.size(), " ranks cannot share ", parameters,
                                                   " parameters: turn config.OPTIMIZER.use_zero off"));
  }

  // This rank's parameters, in groups as all are; sets buckets_.
  std::vector<ParameterGroup> Share() {
    std::vector<int64_t> sizes;
    for (const ParameterGroup& group : groups_) {
      for (const at::Tensor& parameter : group.parameters) sizes.push_back(Bytes(parameter));
    }
    const std::vector<int64_t> owners = AssignOwners(sizes, communicator_.size());
    std::vector<Bucket> open(communicator_.size());
    std::vector<ParameterGroup> own = groups_;
    auto owner = owners.begin();
    for (size_t g = 0; g < groups_.size(); ++g) {
      own[g].names.clear();
      own[g].parameters.clear();
      for (size_t i = 0; i < groups_[g].parameters.size(); ++i, ++owner) {
        Add(groups_[g].parameters[i], *owner, &open[*owner]);
        if (*owner != communicator_.rank()) continue;
        own[g].names.push_back(groups_[g].names[i]);
        own[g].parameters.push_back(groups_[g].parameters[i]);
      }
    }
    for (Bucket& bucket : open) Close(&bucket);
    return own;
  }

  void Add(const at::Tensor& parameter, int64_t owner, Bucket* open) {
    if (!open->parameters.empty() && !open->Takes(owner, parameter)) Close(open);
    open->owner = owner;
    open->parameters.push_back(parameter);
    open->bytes += Bytes(parameter);
  }

  void Close(Bucket* open) {
    if (!open->parameters.empty()) buckets_.push_back(std::exchange(*open, {}));
  }

  const std::unique_ptr<Optimizer> inner_;
  Communicator& communicator_;
  std::vector<ParameterGroup> groups_;
  std::vector<Bucket> buckets_;
};

}  // namespace

std::unique_ptr<Optimizer> ShardOptimizer(std::unique_ptr<Optimizer> optimizer, Communicator& communicator) {
  return std::make_unique<ShardedOptimizer>(std::move(optimizer), communicator);
}

std::vector<int64_t> AssignOwners(const std::vector<int64_t>& sizes, int64_t ranks) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t one, size_t other) { return sizes[one] > sizes[other]; });
  std::vector<int64_t> owners(sizes.size());
  std::vector<int64_t> loads(ranks);
  for (const size_t i : order) {
    owners[i] = std::min_element(loads.begin(), loads.end()) - loads.begin();
    loads[owners[i]] += sizes[i];
  }
  return owners;
}

}  // namespace ssl
