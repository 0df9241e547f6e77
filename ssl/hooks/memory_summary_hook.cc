// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/memory_summary_hook.h"

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/strings/str_format.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/plan_once.h"
#include "ssl/hooks/process_memory.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr double kBytesPerMebibyte = 1024.0 * 1024.0;

int64_t BytesOfGradients(Model& model) {
  int64_t bytes = 0;
  for (const NamedParameter& parameter : model.Parameters()) {
    if (parameter.value.grad().defined()) bytes += static_cast<int64_t>(parameter.value.grad().nbytes());
  }
  return bytes;
}

double Mebibytes(int64_t bytes) { return static_cast<double>(bytes) / kBytesPerMebibyte; }

absl::Status LogSummary(StepContext& context) {
  const ProcessMemory process = ReadProcessMemory();
  SSL_ASSIGN_OR_RETURN(const int64_t model, BytesOfState(context.model));
  int64_t optimizer = 0;
  if (context.optimizer != nullptr) {
    SSL_ASSIGN_OR_RETURN(optimizer, BytesOfState(*context.optimizer));
  }
  const int64_t steps = context.state.iteration - context.first_iteration;
  SSL_LOG(INFO) << absl::StrFormat(
      "memory after %d step%s: process %.1f MiB, %.1f MiB at its peak; model %.1f MiB, gradients %.1f MiB, optimizer "
      "%.1f MiB",
      steps, steps == 1 ? "" : "s", Mebibytes(process.resident_bytes), Mebibytes(process.peak_bytes), Mebibytes(model),
      Mebibytes(BytesOfGradients(context.model)), Mebibytes(optimizer));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Hook>> MakeMemorySummary(const MemorySummaryOptions& options, const ConfigNode& params,
                                                        const BuildContext& context) {
  return std::make_unique<MemorySummaryHook>(options);
}

}  // namespace

void MemorySummaryOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("PRINT_MEMORY_SUMMARY", &print_memory_summary,
                Doc("log once how much memory the run takes").MayChange());
  visitor.Field("LOG_ITERATION_NUM", &log_iteration_num,
                Doc("train step of this process after which it is logged, from 0").AtLeast(0).MayChange());
  visitor.Field("DUMP_MEMORY_ON_EXCEPTION", &dump_memory_on_exception,
                Doc("log it when an error ends the run").MayChange());
}

std::vector<PlannedAction> MemorySummaryHook::Plan() const {
  if (!options_.print_memory_summary) return {};  // an error comes when it comes
  const int64_t update = options_.log_iteration_num + 1;
  return {{"logs memory, in a run from its start", OnceAt(update)}};
}

absl::Status MemorySummaryHook::OnStep(StepContext& context) {
  const int64_t step = context.state.iteration - context.first_iteration - 1;
  const bool due = options_.print_memory_summary && context.state.training && step == options_.log_iteration_num;
  return due && context.communicator.rank() == 0 ? LogSummary(context) : absl::OkStatus();
}

absl::Status MemorySummaryHook::OnException(StepContext& context, const absl::Status& error) {
  return options_.dump_memory_on_exception ? LogSummary(context) : absl::OkStatus();
}

absl::Status RegisterMemorySummaryHook(Registries* registries) {
  constexpr int kRank = 1;  // after the line of the step that it reports on
  return RegisterHook(
      registries,
      {"memory_summary", "logs the memory of the process, the model, its gradients and the optimizer", kRank},
      &MakeMemorySummary);
}

}  // namespace ssl
