// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_fallback.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ssl/testing/standin_generator.h"
#include "ssl/testing/standin_memory.h"
#include "ssl/testing/standin_recording.h"
#include "ssl/testing/standin_streams.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {
namespace {

bool IsView(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

bool IsGenerator(const c10::Argument& argument) { return argument.type()->str() == "Generator?"; }

void RunOnCpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

// The value of now of a tensor without dimensions, as a GPU's kernel takes it from the host.
at::Tensor Taken(const at::Tensor& value) {
  const at::Tensor taken = value.detach().clone();
  taken.unsafeGetTensorImpl()->set_wrapped_number(value.unsafeGetTensorImpl()->is_wrapped_number());
  return taken;
}

// Those of lists, too.
std::vector<at::Tensor> Tensors(const torch::jit::Stack& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) tensors.push_back(value.toTensor());
    if (!value.isTensorList()) continue;
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  }
  return tensors;
}

// A call that a recording holds: arguments and results in the memory that the first run had.
class RecordedCall {
 public:
  // arguments: tensors of the host.
  RecordedCall(const c10::OperatorHandle& op, torch::jit::Stack arguments)
      : op_(op), arguments_(std::move(arguments)) {}

  // device_results: those of the first run.
  void SetResults(const std::vector<at::Tensor>& device_results) {
    for (const at::Tensor& result : device_results) results_.push_back(HostView(result));
  }

  void operator()() const {
    torch::jit::Stack stack = arguments_;
    RunOnCpu(op_, &stack);
    const std::vector<at::Tensor> results = Tensors(stack);
    for (size_t i = 0; i < results.size(); ++i) Keep(results[i], results_[i]);
  }

 private:
  // An operator in place, or one that returned an argument, has written where its result is kept.
  static void Keep(const at::Tensor& result, const at::Tensor& kept) {
    if (!kept.defined() || kept.const_data_ptr() == result.const_data_ptr()) return;
    TORCH_CHECK(kept.sizes() == result.sizes(), "a replay made ", result.sizes(), " of what was ", kept.sizes());
    kept.copy_(result);
  }

  c10::OperatorHandle op_;
  torch::jit::Stack arguments_;
  std::vector<at::Tensor> results_;
};

// One call of an operator: its arguments become the CPU's, its results the device's.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op),
        schema_(op.schema()),
        stack_(*stack),
        first_(stack->size() - schema_.arguments().size()),
        given_(stack->begin() + static_cast<std::ptrdiff_t>(first_), stack->end()) {}

  void Run() {
    CheckKind();
    FinishStandinStream(CurrentStandinStream());  // no kernel is late
    KeepStandinBusy();
    for (size_t i = 0; i < given_.size(); ++i) stack_[first_ + i] = ToHost(i);
    StandinRecording* const recording = CurrentStandinRecording();
    if (recording == nullptr) return RunOnce();
    RecordedCall call(op_, Values());
    RunOnce();
    call.SetResults(Tensors(Values()));
    recording->Note(std::move(call));
  }

 private:
  // This call's: its arguments, then its results.
  torch::jit::Stack Values() const { return {stack_.begin() + static_cast<std::ptrdiff_t>(first_), stack_.end()}; }

  void RunOnce() {
    RunOnCpu(op_, &stack_);
    for (size_t i = 0; i < schema_.returns().size(); ++i) stack_[first_ + i] = ToDevice(i, stack_[first_ + i]);
  }

  // A kernel of the CPU draws from the CPU's generator if it is not given another one, and its views would not be
  // LibTorch's views of a tensor of the device.
  void CheckKind() const {
    TORCH_CHECK(!DrawsWithoutGenerator(), schema_.name(),
                ": the stand-in device has no kernel for this, which draws random numbers without a generator");
    TORCH_CHECK(!IsView(schema_), schema_.name(), ": the stand-in device has no kernel for this view");
    if (op_.hasTag(at::Tag::data_dependent_output) || op_.hasTag(at::Tag::dynamic_output_shape)) {
      RefuseInRecording(schema_.name());
      CountRead(schema_.name());
      WaitForStandinStream(CurrentStandinStream());
    }
  }

  bool DrawsWithoutGenerator() const {
    if (!op_.hasTag(at::Tag::nondeterministic_seeded)) return false;
    // The CPU has it without dropout only.
    if (schema_.name() == "aten::_scaled_dot_product_flash_attention_for_cpu") return false;
    const std::vector<c10::Argument>& arguments = schema_.arguments();
    return std::none_of(arguments.begin(), arguments.end(), &IsGenerator);
  }

  c10::IValue ToHost(size_t i) const {
    const c10::IValue& value = given_[i];
    if (value.isTensor()) return ToHost(i, value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(ToHost(i, tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor.has_value() ? std::optional<at::Tensor>(ToHost(i, *tensor)) : tensor);
      }
      return list;
    }
    if (value.isDevice()) return c10::Device(at::kCPU);
    return IsGenerator(schema_.arguments()[i]) ? ToHostGenerator(i) : value;
  }

  // As on a GPU: a single value of the host is passed to the kernel.
  at::Tensor ToHost(size_t i, const at::Tensor& tensor) const {
    const bool is_on_host = tensor.defined() && tensor.is_cpu() && tensor.dim() > 0;
    TORCH_CHECK(!is_on_host, schema_.name(), ": argument ", i, " '", schema_.arguments()[i].name(),
                "' is on the host: ", tensor.scalar_type(), " ", tensor.sizes());
    const bool is_value = tensor.defined() && tensor.is_cpu();
    return is_value && CurrentStandinRecording() != nullptr ? Taken(tensor) : HostView(tensor);
  }

  c10::IValue ToHostGenerator(size_t i) const {
    if (given_[i].isNone()) return HostGenerator(DefaultStandinGenerator());
    const at::Generator generator = given_[i].toGenerator();
    TORCH_CHECK(generator.device().type() == c10::DeviceType::PrivateUse1, schema_.name(), ": argument ", i, " '",
                schema_.arguments()[i].name(), "' is a generator of ", generator.device());
    return HostGenerator(generator);
  }

  c10::IValue ToDevice(size_t i, const c10::IValue& value) const {
    if (value.isTensor()) {
      const c10::AliasInfo* const alias = schema_.returns()[i].alias_info();
      return alias != nullptr ? Written(*alias, value.toTensor()) : DeviceView(value.toTensor());
    }
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(DeviceView(tensor));
    return list;
  }

  // The argument that a result is, in place or as out=; kernels resize the latter.
  at::Tensor Written(const c10::AliasInfo& alias, const at::Tensor& result) const {
    for (size_t i = 0; i < given_.size(); ++i) {
      const c10::AliasInfo* const argument = schema_.arguments()[i].alias_info();
      if (argument == nullptr || !(*argument == alias)) continue;
      const at::Tensor written = given_[i].toTensor();
      if (written.sizes() == result.sizes()) return written;
      written.resize_(result.sizes());
      HostView(written).copy_(result);
      return written;
    }
    TORCH_CHECK(false, schema_.name(), ": a result is no argument");
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  const size_t first_;  // of this call's values on the stack
  const std::vector<c10::IValue> given_;
};

void RunOnHost(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  Call(op, stack).Run();
}

torch::CppFunction OnHost() { return torch::CppFunction::makeFromBoxedFunction<&RunOnHost>(); }

// Structured operators check their arguments before they reach a kernel, and layer_norm, say, is one kernel on the CPU
// and many operators elsewhere.
bool RunsOtherwiseThanOnCpu(const c10::OperatorHandle& op) {
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) return true;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
         op.hasKernelForDispatchKey(c10::DispatchKey::CPU) && !IsView(op.schema());
}

// As the CPU rounds: its mask is scaled first, in the format of the values.
at::Tensor ScaledMask(const at::Tensor& mask, at::ScalarType format, double kept) { return mask.to(format).div_(kept); }

// The CPU's draws from the process's generator; its mask lies as the input does.
std::tuple<at::Tensor, at::Tensor> NativeDropout(const at::Tensor& input, double probability,
                                                 std::optional<bool> training) {
  const at::Tensor mask = at::ones_like(input, input.options().dtype(at::kBool));
  if (!training.value_or(true)) return {input.clone(), mask};
  mask.bernoulli_(1.0 - probability, DefaultStandinGenerator());
  return {input.mul(ScaledMask(mask, input.scalar_type(), 1.0 - probability)), mask};
}

at::Tensor NativeDropoutBackward(const at::Tensor& gradient, const at::Tensor& mask, double scale) {
  return gradient.mul(ScaledMask(mask, gradient.scalar_type(), 1.0 / scale));
}

// The kernel that the CPU chooses: LibTorch asks each device.
int64_t ChooseAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const std::optional<at::Tensor>& mask, double dropout, bool is_causal,
                        std::optional<double> scale, bool enable_gqa) {
  return at::_fused_sdp_choice(HostView(query), HostView(key), HostView(value),
                               mask.has_value() ? std::optional<at::Tensor>(HostView(*mask)) : mask, dropout, is_causal,
                               scale, enable_gqa);
}

}  // namespace

void RegisterStandinFallback(torch::Library* library) { library->fallback(OnHost()); }

void RegisterStandinOperators(torch::Library* library) {
  library->impl("native_dropout", &NativeDropout);
  library->impl("native_dropout_backward", &NativeDropoutBackward);
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&ChooseAttention);
  for (const char* const name : {"convolution", "convolution_backward"}) library->impl(name, OnHost());
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.getNamespace() != "aten" || !RunsOtherwiseThanOnCpu(dispatcher.findOp(name).value())) continue;
    const std::string qualified = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    library->impl(qualified.c_str(), OnHost());
  }
}

}  // namespace ssl
