// SPDX-License-Identifier: Apache-2.0
//
// Numbers, histograms and images from producers to sinks. Producers add by name; nobody parses logs.
//
// Scalars. Add takes an observation, which may be a tensor that is still being computed: it is read when a report is
// made, not when it is added, so adding never waits for the device. What becomes of a name's observations is its rule:
// over the window (since the last report, or a median of the last iterations) and over ranks. Set is for what needs no
// rule: the last value counts, and rank 0's is reported.
//
//   SSL_RETURN_IF_ERROR(metrics.Declare("Speed/data_seconds", {MetricReduction::kMax, /*median_window=*/20}));
//   metrics.Add("Speed/data_seconds", 0.25);
//   { const MetricScope scope(metrics, "Testing"); metrics.Set("accuracy", 0.5); }    // "Testing/accuracy"
//
// Every rank adds the same names between two reports: a report packs all of them into one all-reduce. A name belongs to
// Add or to Set for good, and keeps its rule; Report refuses a store in which one was used both ways.
// (LiBai's and detectron2's EventStorage, but for its list of current storages: the store is the trainer's.)
// Used by the training thread only.
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
#include "ssl/core/metric_history.h"
#include "ssl/core/metric_report.h"
#include "ssl/core/tensor_fwd.h"

namespace ssl {

class Communicator;

enum class MetricReduction { kMean, kSum, kMax, kMin };

// How the observations of a name become its value in a report.
struct MetricRule {
  // Over the observations of the window on all ranks. The mean weighs each observation alike, those of medians each
  // rank.
  MetricReduction reduction = MetricReduction::kMean;
  // 0: a rank's window is what it has observed since the last report. Otherwise each rank's value is the median of its
  // observations in the last so many iterations (a "smoothing hint"), in reports that have a new one.
  int64_t median_window = 0;
};

class MetricStore {
 public:
  // How many observations of a name are kept; more when its rule's window is longer.
  static constexpr int64_t kHistoryLength = 1000;

  MetricStore();
  ~MetricStore();

  // One for whose place (MetricSink::place) there is a sink already is dropped.
  void AddSink(std::unique_ptr<MetricSink> sink);

  // The iteration of what is added from now on. The trainer's: the number of the update in progress, counted from 1.
  void set_iteration(int64_t iteration) { iteration_ = iteration; }

  // FailedPrecondition when `name` has another rule, which it also gets when it is added without one, or is set.
  absl::Status Declare(absl::string_view name, MetricRule rule);

  void Add(absl::string_view name, double value);
  // value: a 0-dim tensor, detached; kept until the next report.
  void Add(absl::string_view name, const at::Tensor& value);
  // The same, but where `left_out`, a 0-dim tensor of which it keeps a copy, is not 0 when it is read, there was no
  // observation (StepContext::found_inf: that of an update which is skipped). Undefined: it counts.
  void AddUnless(const at::Tensor& left_out, absl::string_view name, const at::Tensor& value);
  // Learning rate, progress.
  void Set(absl::string_view name, double value);
  // Of rank 0, as the tensor is now (metric_summaries.h); the last of a name since the last report. Waits for the
  // device.
  void AddHistogram(absl::string_view name, const at::Tensor& values);
  // pixels: [height, width, 3], 8-bit; InvalidArgument for another form. Otherwise like AddHistogram.
  absl::Status AddImage(absl::string_view name, const at::Tensor& pixels);

  // This rank's observations (or settings) of `name`; null before the first. Reads tensors that wait, so it waits for
  // the device. Valid until the store ends.
  const MetricHistory* History(absl::string_view name);

  // All names that were added, set or declared, sorted.
  std::vector<std::string> Names() const;

  // Closes the window and hands the report to every sink of rank 0. Collective: every rank calls it, and a sink's error
  // is an error on all of them. FailedPrecondition for names that were added and set.
  absl::StatusOr<MetricReport> Report(int64_t iteration, int64_t epoch, Communicator& communicator);

  // Hands a report that is complete, such as an evaluation's result, to every sink of rank 0; the window stays open.
  // Collective like Report.
  absl::Status Write(const MetricReport& report, Communicator& communicator);

  // Flushes every sink; the first error is returned.
  absl::Status Flush();

 private:
  friend class MetricScope;
  struct Series;

  absl::string_view FullName(absl::string_view name);
  Series& FindOrMake(absl::string_view name, bool is_set);
  absl::Status Reduce(Communicator& communicator, int64_t iteration, MetricReport* report);
  // `status`: an error of this rank from before.
  absl::Status WriteAndAgree(const MetricReport& report, absl::Status status, Communicator& communicator);

  // By name, so that ranks agree on the order. Kept between reports: a name costs no allocation after its first use.
  std::map<std::string, std::unique_ptr<Series>, std::less<>> series_;
  MetricReport open_;  // histograms and images since the last report
  std::string prefix_;
  std::string full_name_;  // a buffer of FullName
  int64_t iteration_ = 0;
  absl::Status misuse_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
};

// While it lives, names are "<scope>/<name>"; scopes nest. Also when an exception ends it.
class MetricScope {
 public:
  MetricScope(MetricStore& metrics, absl::string_view scope);
  ~MetricScope();
  MetricScope(const MetricScope&) = delete;
  MetricScope& operator=(const MetricScope&) = delete;

 private:
  MetricStore& metrics_;
  const size_t outer_size_;
};

}  // namespace ssl

#endif  // SSL_CORE_METRICS_H_
