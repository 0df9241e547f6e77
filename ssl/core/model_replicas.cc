// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/model_replicas.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/rank_state.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

constexpr int64_t kAlignment = 16;  // of a buffer's place: enough for any type
constexpr size_t kMostNames = 4;

// Tensors of the model's state that are no parameters.
absl::StatusOr<std::vector<at::Tensor>> Buffers(Model& model) {
  std::set<const void*> parameters;
  for (const NamedParameter& parameter : model.Parameters()) parameters.insert(parameter.value.const_data_ptr());
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(model));
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& entry : state) {
    if (entry.tensor.numel() == 0 || parameters.count(entry.tensor.const_data_ptr()) > 0) continue;
    buffers.push_back(entry.tensor.detach());
  }
  return buffers;
}

std::string FirstNames(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors) names.push_back(tensor.name);
  if (names.size() <= kMostNames) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMostNames, ", "), " and ",
                      names.size() - kMostNames, " more");
}

int64_t PlaceSize(const at::Tensor& buffer) {
  return (static_cast<int64_t>(buffer.nbytes()) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::Status CopyFromRankZero(Model& model, Communicator& communicator) {
  if (communicator.size() == 1) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(model));
  for (const NamedTensor& entry : state) {
    at::Tensor value = entry.tensor.detach();
    SSL_RETURN_IF_ERROR(communicator.Broadcast(value, 0));
  }
  return absl::OkStatus();
}

absl::Status CheckParametersAreEqual(Model& model, Communicator& communicator) {
  std::vector<NamedTensor> parameters;
  for (const NamedParameter& parameter : model.Parameters()) {
    const bool is_shard = model.parameter_shards() != nullptr && model.parameter_shards()->IsShard(parameter.value);
    if (!is_shard) parameters.push_back({parameter.name, parameter.value});
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> own, StateOfItsOwn(std::move(parameters), communicator));
  absl::Status status;
  if (communicator.rank() > 0 && !own.empty()) {
    status = absl::DataLossError(absl::StrCat(
        "rank ", communicator.rank(), " has other weights than rank 0: ", FirstNames(own),
        "; all ranks have to read the same checkpoint, and nothing may change weights on some of them alone"));
  }
  return AgreeOnStatus(status, "comparing weights with rank 0's", communicator);
}

absl::Status BufferBroadcast::Prepare() {
  SSL_ASSIGN_OR_RETURN(buffers_, Buffers(model_));
  int64_t size = 0;
  for (const at::Tensor& buffer : buffers_) size += PlaceSize(buffer);
  const at::Device device = buffers_.empty() ? at::Device(at::kCPU) : buffers_[0].device();
  bytes_ = at::zeros({size}, at::TensorOptions(at::kByte).device(device));
  int64_t offset = 0;
  for (const at::Tensor& buffer : buffers_) {
    const at::Tensor bytes = bytes_.narrow(0, offset, static_cast<int64_t>(buffer.nbytes()));
    places_.push_back(bytes.view(buffer.scalar_type()).view(buffer.sizes()));
    offset += PlaceSize(buffer);
  }
  return absl::OkStatus();
}

absl::Status BufferBroadcast::Run() {
  if (communicator_.size() == 1) return absl::OkStatus();
  const at::NoGradGuard no_gradients;
  if (!bytes_.defined()) SSL_RETURN_IF_ERROR(Prepare());
  if (buffers_.empty()) return absl::OkStatus();
  const bool gives = communicator_.rank() == 0;
  for (size_t i = 0; gives && i < buffers_.size(); ++i) places_[i].copy_(buffers_[i]);
  SSL_RETURN_IF_ERROR(communicator_.Broadcast(bytes_, 0));
  for (size_t i = 0; !gives && i < buffers_.size(); ++i) buffers_[i].copy_(places_[i]);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RankZeroBuffers>> RankZeroBuffers::Take(Model& model, Communicator& communicator) {
  const at::NoGradGuard no_gradients;
  auto taken = std::unique_ptr<RankZeroBuffers>(new RankZeroBuffers());
  if (communicator.size() == 1) return taken;
  SSL_ASSIGN_OR_RETURN(taken->buffers_, Buffers(model));
  for (const at::Tensor& buffer : taken->buffers_) taken->own_.push_back(buffer.clone());
  SSL_RETURN_IF_ERROR(BufferBroadcast(model, communicator).Run());
  return taken;
}

RankZeroBuffers::~RankZeroBuffers() {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < own_.size(); ++i) buffers_[i].copy_(own_[i]);
}

}  // namespace ssl
