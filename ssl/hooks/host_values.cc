// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/host_values.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

constexpr char kHost[] = "Host";

bool IsHosts(const MeterReport& report) { return report.scope == kHost && !report.values.empty(); }

struct HostValues {
  std::vector<MeterValue*> values;
  std::string names;
};

HostValues ValuesOf(StepContext& context) {
  HostValues found;
  for (MeterReport& report : context.meter_reports) {
    if (!IsHosts(report)) continue;
    for (MeterValue& value : report.values) {
      found.values.push_back(&value);
      absl::StrAppend(&found.names, found.names.empty() ? "" : ", ", kHost, "/", report.meter, "_", value.metric,
                      value.output.empty() ? "" : "_Output_", value.output);
    }
  }
  return found;
}

constexpr char kRule[] = "expected every rank to report the same names, in the same order and the same event";

absl::Status CheckNamesAreEqual(const std::string& names, StepContext& context) {
  const std::string reported =
      absl::StrCat("rank ", context.communicator.rank(), " has reported ", names.empty() ? "no Host/ metric" : names,
                   " at iteration ", context.state.iteration);
  const at::Tensor own = at::full({1}, static_cast<int64_t>(Crc32c(names)), at::kLong);
  const absl::StatusOr<at::Tensor> all = context.communicator.AllGather(own);
  // In a step, ranks that report nothing are not here, and in another operation.
  if (!all.ok()) return Annotate(all.status(), absl::StrCat(reported, ", and ", kRule));
  if (all->max().item<int64_t>() == all->min().item<int64_t>()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(reported, ", another rank others; ", kRule));
}

}  // namespace

bool HasHostValues(const StepContext& context) {
  return std::any_of(context.meter_reports.begin(), context.meter_reports.end(), &IsHosts);
}

absl::Status AverageHostValues(StepContext& context) {
  if (context.communicator.size() == 1) return absl::OkStatus();
  const HostValues own = ValuesOf(context);
  SSL_RETURN_IF_ERROR(CheckNamesAreEqual(own.names, context));
  if (own.values.empty()) return absl::OkStatus();
  at::Tensor means = at::empty({static_cast<int64_t>(own.values.size())}, at::kDouble);
  for (size_t i = 0; i < own.values.size(); ++i) means.mutable_data_ptr<double>()[i] = own.values[i]->value;
  SSL_RETURN_IF_ERROR(context.communicator.AllReduce(means, ReduceOp::kMean));
  for (size_t i = 0; i < own.values.size(); ++i) own.values[i]->value = means.const_data_ptr<double>()[i];
  return absl::OkStatus();
}

}  // namespace ssl
