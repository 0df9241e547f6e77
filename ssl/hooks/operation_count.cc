// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/operation_count.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "absl/strings/string_view.h"

namespace ssl {
namespace {

// Observers are plain functions without an argument of ours: this is how they find the count of their thread.
thread_local OperationCount* current_count = nullptr;

int64_t Columns(const at::Tensor& matrix) { return matrix.size(-1); }
int64_t FilterSize(const at::Tensor& weight) { return weight.numel() / weight.size(0); }

// An operator in which each value of the result is a sum of `sum_length` products.
struct WatchedOperator {
  absl::string_view name;
  size_t argument;  // whose shape tells the length
  int64_t (*sum_length)(const at::Tensor& argument);
};

constexpr WatchedOperator kWatched[] = {
    {"aten::convolution", 1, &FilterSize},
    {"aten::mm", 0, &Columns},
    {"aten::addmm", 1, &Columns},
    {"aten::bmm", 0, &Columns},
    {"aten::baddbmm", 1, &Columns},
    {"mkldnn::_linear_pointwise", 0, &Columns},
    {"ssl::stem_convolution", 1, &FilterSize},
    {"ssl::winograd_convolution", 1, &FilterSize},
};

struct SumLength : public at::ObserverContext {
  explicit SumLength(int64_t length) : value(length) {}
  const int64_t value;
};

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& call) {
  const auto* const watched =
      std::find_if(std::begin(kWatched), std::end(kWatched),
                   [&call](const WatchedOperator& candidate) { return candidate.name == call.name(); });
  if (watched == std::end(kWatched)) return nullptr;
  return std::make_unique<SumLength>(watched->sum_length(call.inputs()[watched->argument].toTensor()));
}

void End(const at::RecordFunction& call, at::ObserverContext* context) {
  if (context == nullptr || call.outputs().empty()) return;  // no outputs: the operator threw
  const int64_t values = call.outputs()[0].toTensor().numel();
  current_count->activations += values;
  current_count->multiply_adds += values * static_cast<const SumLength*>(context)->value;
}

// Watches this thread while it lives.
class Observation {
 public:
  explicit Observation(OperationCount* count) {
    current_count = count;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&Begin, &End)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~Observation() {
    at::removeCallback(handle_);
    current_count = nullptr;
  }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

OperationCount CountOperations(absl::FunctionRef<void()> function) {
  OperationCount count;
  const Observation observation(&count);
  function();
  return count;
}

}  // namespace ssl
