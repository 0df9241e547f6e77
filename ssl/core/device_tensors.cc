// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/device_tensors.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace ssl {
namespace {

// All tensors that are defined.
class TensorVisitor : public StateVisitor {
 public:
  explicit TensorVisitor(absl::FunctionRef<void(at::Tensor&)> function) : function_(function) {}

  void Tensor(absl::string_view name, at::Tensor& value) override {
    if (value.defined()) function_(value);
  }
  void Int(absl::string_view name, int64_t& value) override {}
  void Double(absl::string_view name, double& value) override {}
  void Ints(absl::string_view name, std::vector<int64_t>& value) override {}
  void Doubles(absl::string_view name, std::vector<double>& value) override {}
  void Text(absl::string_view name, std::string& value) override {}
  void Scope(absl::string_view name, Stateful& child) override { child.VisitState(*this); }

 private:
  const absl::FunctionRef<void(at::Tensor&)> function_;
};

}  // namespace

void MoveState(Stateful& root, const at::Device& device) {
  const auto move = [&](at::Tensor& value) {
    if (value.device() != device) value.set_data(value.detach().to(device));
  };
  TensorVisitor visitor(move);
  root.VisitState(visitor);
}

c10::Device DeviceOf(Stateful& root) {
  std::optional<c10::Device> device;
  const auto note = [&](at::Tensor& value) { device = device.value_or(value.device()); };
  TensorVisitor visitor(note);
  root.VisitState(visitor);
  return device.value_or(c10::kCPU);
}

}  // namespace ssl
