// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/layer_stack.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <c10/util/Exception.h>

#include "absl/strings/str_cat.h"

namespace ssl {

at::Tensor HeadRows(const at::Tensor& features, int64_t width, const char* argument) {
  const at::Tensor rows = features.flatten(1);
  TORCH_CHECK_VALUE(rows.size(1) == width, "a head takes ", width, " features (", argument, "), its input ",
                    features.sizes(), " has ", rows.size(1));
  return rows;
}

void LayerStack::AddLinear(LinearLayer layer) { layers_.push_back({Kind::kLinear, std::move(layer), {}}); }
void LayerStack::AddBatchNorm(BatchNormLayer layer) { layers_.push_back({Kind::kBatchNorm, {}, std::move(layer)}); }
void LayerStack::AddRelu() { layers_.push_back({Kind::kRelu, {}, {}}); }
void LayerStack::AddGelu() { layers_.push_back({Kind::kGelu, {}, {}}); }
void LayerStack::AddDropout() { layers_.push_back({Kind::kDropout, {}, {}}); }

void LayerStack::SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) {
  for (Layer& layer : layers_) layer.norm.group = group;
}

at::Tensor LayerStack::Forward(const at::Tensor& input, bool training) const {
  at::Tensor output = input;
  for (const Layer& layer : layers_) {
    switch (layer.kind) {
      case Kind::kLinear:
        output = layer.linear.Forward(output);
        break;
      case Kind::kBatchNorm:
        output = layer.norm.Forward(output, NormModeFor(training));
        break;
      case Kind::kRelu:
        output = at::relu(output);
        break;
      case Kind::kGelu:
        output = at::gelu(output);
        break;
      case Kind::kDropout:
        output = at::dropout(output, 0.5, training);
        break;
    }
  }
  return output;
}

void LayerStack::List(const std::string& prefix, ModelTensors* tensors) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string name = absl::StrCat(prefix, i, ".");
    if (layers_[i].kind == Kind::kLinear) layers_[i].linear.List(name, tensors);
    if (layers_[i].kind == Kind::kBatchNorm) layers_[i].norm.List(name, tensors);
  }
}

}  // namespace ssl
