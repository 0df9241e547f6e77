// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/conv_norm.h"

#include "ssl/models/batch_norm_relu.h"

namespace ssl {
namespace {

at::Tensor Normalize(const NormLayer& norm, const at::Tensor& map, NormMode mode) {
  if (const auto* const batch_norm = std::get_if<BatchNormLayer>(&norm)) return batch_norm->Forward(map, mode);
  return std::get<GroupNormLayer>(norm).Forward(map);
}

}  // namespace

void ListNorm(const NormLayer& norm, const std::string& prefix, ModelTensors* tensors) {
  std::visit([&](const auto& layer) { layer.List(prefix, tensors); }, norm);
}

void ZeroNormWeight(const NormLayer& norm) {
  std::visit([](const auto& layer) { layer.weight.detach().zero_(); }, norm);
}

void ConvNorm::SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) {
  if (auto* const batch_norm = std::get_if<BatchNormLayer>(&norm)) batch_norm->group = group;
}

at::Tensor ConvNorm::Forward(const at::Tensor& input, NormMode mode) const {
  return Normalize(norm, conv.Forward(input), mode);
}

at::Tensor ConvNorm::ForwardRelu(const at::Tensor& input, const at::Tensor& shortcut, NormMode mode) const {
  const at::Tensor map = conv.Forward(input);
  const auto* const batch_norm = std::get_if<BatchNormLayer>(&norm);
  if (mode != NormMode::kEvaluation && batch_norm != nullptr && CanFuseBatchNormRelu(*batch_norm, map, shortcut)) {
    return BatchNormRelu(*batch_norm, map, shortcut, mode);
  }
  // In place: the backward of neither norm reads its output.
  at::Tensor output = Normalize(norm, map, mode);
  if (shortcut.defined()) output.add_(shortcut);
  return output.relu_();
}

}  // namespace ssl
