// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ssl {
namespace {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;

// LibTorch 2.11, aten/src/ATen/autocast_mode.cpp, "TORCH_LIBRARY_IMPL(aten, AutocastCPU, m)": all others there are
// computed in float32.
const std::set<std::string>& InShortFormat() {
  static const auto& names = *new std::set<std::string>{"aten::conv1d",
                                                        "aten::conv2d",
                                                        "aten::conv3d",
                                                        "aten::bmm",
                                                        "aten::mm",
                                                        "aten::linalg_vecdot",
                                                        "aten::baddbmm",
                                                        "aten::addmm",
                                                        "aten::_addmm_activation",
                                                        "aten::addbmm",
                                                        "aten::linear",
                                                        "aten::_convolution",
                                                        "aten::matmul",
                                                        "aten::conv_tbc",
                                                        "aten::mkldnn_rnn_layer",
                                                        "aten::conv_transpose1d",
                                                        "aten::conv_transpose2d",
                                                        "aten::conv_transpose3d",
                                                        "aten::prelu",
                                                        "aten::scaled_dot_product_attention",
                                                        "aten::_native_multi_head_attention"};
  return names;
}

bool InWidestOfArguments(const std::string& name) {
  return name == "aten::stack" || name == "aten::cat" || name == "aten::index_copy";
}

at::ScalarType WidestType(const torch::jit::Stack& stack, size_t first) {
  at::ScalarType type = at::autocast::get_lower_precision_fp_from_device_type(kDevice);
  for (size_t i = first; i < stack.size(); ++i) {
    if (stack[i].isTensor()) type = at::autocast::prioritize(type, stack[i].toTensor(), kDevice);
    if (!stack[i].isTensorList()) continue;
    for (const at::Tensor& tensor : stack[i].toTensorVector()) {
      type = at::autocast::prioritize(type, tensor, kDevice);
    }
  }
  return type;
}

at::ScalarType TypeFor(const std::string& name, const torch::jit::Stack& stack, size_t first) {
  if (InShortFormat().count(name) > 0) return at::autocast::get_lower_precision_fp_from_device_type(kDevice);
  return InWidestOfArguments(name) ? WidestType(stack, first) : at::kFloat;
}

void RunCast(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
  const size_t first = stack->size() - op.schema().arguments().size();
  const at::ScalarType type = TypeFor(op.schema().name(), *stack, first);
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = at::autocast::cached_cast(type, value.toTensor(), kDevice);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        list.push_back(at::autocast::cached_cast(type, tensor, kDevice));
      }
      value = list;
    }
  }
  op.callBoxed(stack);
}

}  // namespace

void RegisterStandinAutocastFallthrough(torch::Library* library) {
  library->fallback(torch::CppFunction::makeFallthrough());
}

void RegisterStandinAutocast(torch::Library* library) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNamesForDispatchKey(c10::DispatchKey::AutocastCPU)) {
    const std::string qualified = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    library->impl(qualified.c_str(), torch::CppFunction::makeFromBoxedFunction<&RunCast>());
  }
}

}  // namespace ssl
