// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/device_tensors.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl {
namespace {

at::Tensor Copy(const at::Tensor& tensor, const at::Device& device) {
  return tensor.defined() ? tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true) : tensor;
}

class Mover : public StateVisitor {
 public:
  explicit Mover(const at::Device& device) : device_(device) {}

  void Tensor(absl::string_view name, at::Tensor& value) override {
    if (value.defined() && value.device() != device_) value.set_data(value.detach().to(device_));
  }
  void Int(absl::string_view name, int64_t& value) override {}
  void Double(absl::string_view name, double& value) override {}
  void Ints(absl::string_view name, std::vector<int64_t>& value) override {}
  void Doubles(absl::string_view name, std::vector<double>& value) override {}
  void Text(absl::string_view name, std::string& value) override {}
  void Scope(absl::string_view name, Stateful& child) override { child.VisitState(*this); }

 private:
  const at::Device device_;
};

}  // namespace

void MoveState(Stateful& root, const at::Device& device) {
  Mover mover(device);
  root.VisitState(mover);
}

Batch CopyOnDevice(const Batch& batch, const at::Device& device) {
  Batch copy;
  for (const at::Tensor& view : batch.views) copy.views.push_back(Copy(view, device));
  for (const auto& [name, input] : batch.named_inputs) copy.named_inputs[name] = Copy(input, device);
  copy.targets = Copy(batch.targets, device);
  copy.indices = batch.indices;
  return copy;
}

}  // namespace ssl
