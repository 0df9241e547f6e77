// SPDX-License-Identifier: Apache-2.0
//
// Numbers from producers to sinks. Producers add scalars by name; nobody parses logs.
//
// A scalar may be a tensor that is still being computed: it is read when a report is made, not when it is added, so
// adding never waits for the device. A report packs the means of all names since the last report into one
// all-reduce. Used by the training thread only.
#ifndef SSL_CORE_METRICS_H_
#define SSL_CORE_METRICS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/tensor_fwd.h"

namespace ssl {

class Communicator;

// Values of one moment of training. Names are paths: "Training/Loss".
struct MetricReport {
  int64_t iteration = 0;
  int64_t epoch = 0;
  std::map<std::string, double> values;
};

// Consumes reports: console, JSON lines, TensorBoard. Owned by the MetricStore.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual absl::Status Write(const MetricReport& report) = 0;
  // Makes everything written so far durable.
  virtual absl::Status Flush() = 0;
};

class MetricStore {
 public:
  MetricStore();
  ~MetricStore();

  void AddSink(std::unique_ptr<MetricSink> sink);

  // Adds one observation; a report holds the mean of a name's observations since the last report, over all ranks.
  void Add(absl::string_view name, double value);
  // value: a 0-dim tensor, detached; kept until the next report.
  void Add(absl::string_view name, const at::Tensor& value);
  // The last value wins and is not reduced over ranks: learning rate, progress.
  void Set(absl::string_view name, double value);

  // Closes the window and hands the report to every sink of rank 0. Collective: every rank calls it, and a sink's error
  // is an error on all of them.
  absl::StatusOr<MetricReport> Report(int64_t iteration, int64_t epoch, Communicator& communicator);

  // Flushes every sink; the first error is returned.
  absl::Status Flush();

 private:
  struct Window;
  std::unique_ptr<Window> window_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
};

}  // namespace ssl

#endif  // SSL_CORE_METRICS_H_
