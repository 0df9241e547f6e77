// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metrics.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

// Observations of one name since the last report.
struct Mean {
  double sum = 0.0;
  double count = 0.0;
  std::vector<at::Tensor> pending;  // not read yet: reading waits for the device
};

}  // namespace

struct MetricStore::Window {
  std::map<std::string, Mean> means;
  std::map<std::string, double> last_values;
};

MetricStore::MetricStore() : window_(std::make_unique<Window>()) {}
MetricStore::~MetricStore() = default;

void MetricStore::AddSink(std::unique_ptr<MetricSink> sink) { sinks_.push_back(std::move(sink)); }

void MetricStore::Add(absl::string_view name, double value) {
  Mean& mean = window_->means[std::string(name)];
  mean.sum += value;
  mean.count += 1.0;
}

void MetricStore::Add(absl::string_view name, const at::Tensor& value) {
  window_->means[std::string(name)].pending.push_back(value);
}

void MetricStore::Set(absl::string_view name, double value) { window_->last_values[std::string(name)] = value; }

absl::StatusOr<MetricReport> MetricStore::Report(int64_t iteration, int64_t epoch, Communicator& communicator) {
  const std::unique_ptr<Window> window = std::exchange(window_, std::make_unique<Window>());
  // packed: [names, 2] = (sum, count), in the order of the names, which all ranks share.
  at::Tensor packed = at::empty({static_cast<int64_t>(window->means.size()), 2}, at::kDouble);
  double* cell = packed.mutable_data_ptr<double>();
  for (auto& [name, mean] : window->means) {
    for (const at::Tensor& value : mean.pending) mean.sum += value.item<double>();
    *cell++ = mean.sum;
    *cell++ = mean.count + static_cast<double>(mean.pending.size());
  }
  SSL_RETURN_IF_ERROR(communicator.AllReduce(packed, ReduceOp::kSum));

  MetricReport report{iteration, epoch, std::move(window->last_values)};
  const double* reduced = packed.const_data_ptr<double>();
  for (const auto& [name, mean] : window->means) {
    report.values[name] = reduced[0] / reduced[1];
    reduced += 2;
  }
  absl::Status written;
  if (communicator.rank() == 0) {
    for (const auto& sink : sinks_) written.Update(GuardTorch("metric sink", [&] { return sink->Write(report); }));
  }
  SSL_RETURN_IF_ERROR(AgreeOnStatus(written, "writing metrics", communicator));
  return report;
}

absl::Status MetricStore::Flush() {
  absl::Status first;
  for (const auto& sink : sinks_) first.Update(GuardTorch("metric sink", [&] { return sink->Flush(); }));
  return first;
}

}  // namespace ssl
