// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metrics.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/metric_summaries.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

bool operator==(const MetricRule& a, const MetricRule& b) {
  return a.reduction == b.reduction && a.median_window == b.median_window;
}

std::string Describe(const MetricRule& rule) {
  constexpr const char* kNames[] = {"mean", "sum", "max", "min"};
  const std::string window = rule.median_window > 0 ? absl::StrCat("medians of ", rule.median_window, " iterations")
                                                    : std::string("observations");
  return absl::StrCat(kNames[static_cast<int>(rule.reduction)], " of ", window);
}

// NaN wins, so that one rank's is not hidden by another's number.
double Larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

// Of tensors of one value each. One copy for all of a device and type, however many names they belong to: each copy
// from a GPU waits for it.
std::vector<double> Numbers(const std::vector<at::Tensor>& values) {
  std::map<std::tuple<c10::DeviceType, c10::DeviceIndex, c10::ScalarType>, std::vector<size_t>> places;
  for (size_t i = 0; i < values.size(); ++i) {
    places[{values[i].device().type(), values[i].device().index(), values[i].scalar_type()}].push_back(i);
  }
  std::vector<double> numbers(values.size());
  for (const auto& [_, of_kind] : places) {
    std::vector<at::Tensor> together;
    for (const size_t place : of_kind) together.push_back(values[place].reshape({}));
    const at::Tensor copied = at::stack(together).to(at::kCPU, at::kDouble).contiguous();
    const double* number = copied.const_data_ptr<double>();
    for (const size_t place : of_kind) numbers[place] = *number++;
  }
  return numbers;
}

constexpr char kReducing[] = "reducing the metrics of a report, of which every rank adds the same names";

// Of one name since the last report.
struct Window {
  int64_t count = 0;
  double sum = 0.0;
  double max = 0.0;
  double negated_min = 0.0;

  void Add(double value) {
    sum += value;
    max = count == 0 ? value : Larger(value, max);
    negated_min = count == 0 ? -value : Larger(-value, negated_min);
    ++count;
  }
};

// A rank's part of a value that is reduced: its place among the cells that all ranks sum up. A largest value takes one
// cell for each rank, which the others leave 0: so one sum carries every kind of reduction, and a report costs one
// collective. There are few such names, and a cell has 8 bytes.
int64_t NumCells(MetricReduction reduction, int64_t world_size) {
  switch (reduction) {
    case MetricReduction::kMean:
      return 2;  // sum, weight
    case MetricReduction::kSum:
      return 1;
    default:
      return world_size;
  }
}

double Unpack(MetricReduction reduction, const double* cells, int64_t world_size) {
  if (reduction == MetricReduction::kMean) return cells[0] / cells[1];
  if (reduction == MetricReduction::kSum) return cells[0];
  double largest = cells[0];
  for (int64_t rank = 1; rank < world_size; ++rank) largest = Larger(cells[rank], largest);
  return reduction == MetricReduction::kMax ? largest : -largest;
}

// Of the names and rules that a rank packs: as many cells may be of other things. 32 bits, whose sum over ranks is
// exact.
template <class Reduced>
double FingerprintOf(const Reduced& reduced) {
  uint32_t fingerprint = 0;
  for (const auto& [name, series] : reduced) {
    fingerprint = ExtendCrc32c(fingerprint, absl::StrCat(*name, "\n", static_cast<int>(series->rule.reduction), " ",
                                                         series->rule.median_window, "\n"));
  }
  return static_cast<double>(fingerprint);
}

// Which of the others differ is not known; each of those that do says what it has.
template <class Reduced>
absl::Status OtherNames(const Reduced& reduced, int64_t rank) {
  std::vector<std::string> names;
  for (const auto& [name, series] : reduced) names.push_back(absl::StrCat(*name, " (", Describe(series->rule), ")"));
  return absl::FailedPreconditionError(
      absl::StrCat("rank ", rank, " has added ", names.empty() ? "no metric" : absl::StrJoin(names, ", "),
                   ", another rank others; expected every rank to add the same names, with the same rules, between two "
                   "reports"));
}

}  // namespace

struct MetricStore::Series {
  struct Pending {
    at::Tensor value;
    int64_t iteration;
    at::Tensor left_out = {};
  };

  Series(MetricRule new_rule, bool set)
      : rule(new_rule), is_set(set), history(std::max(kHistoryLength, new_rule.median_window)) {}

  void Add(double value, int64_t iteration) {
    window.Add(value);
    history.Add(value, iteration);
  }

  // Adds what waits in all of `series`.
  static void ReadAll(const std::vector<Series*>& series) {
    std::vector<at::Tensor> values;
    for (const Series* each : series) {
      for (const Pending& one : each->pending) {
        values.push_back(one.value);
        if (one.left_out.defined()) values.push_back(one.left_out);
      }
    }
    const std::vector<double> numbers = Numbers(values);
    const double* number = numbers.data();
    for (Series* each : series) {
      for (const Pending& one : each->pending) {
        const double value = *number++;
        const bool counts = !one.left_out.defined() || *number++ == 0.0;
        if (counts) each->Add(value, one.iteration);
      }
      each->pending.clear();
    }
  }

  // Adds this rank's part to its cells.
  void Pack(int64_t iteration, int64_t rank, double* cells) const {
    const bool smooth = rule.median_window > 0;
    // A report may come so late that the window has passed the newest observation: that one is its median then.
    const double median = smooth ? history.Median(history.CountAfter(iteration - rule.median_window)) : 0.0;
    switch (rule.reduction) {
      case MetricReduction::kMean:
        cells[0] = smooth ? median : window.sum;
        cells[1] = smooth ? 1.0 : static_cast<double>(window.count);
        break;
      case MetricReduction::kSum:
        cells[0] = smooth ? median : window.sum;
        break;
      case MetricReduction::kMax:
        cells[rank] = smooth ? median : window.max;
        break;
      case MetricReduction::kMin:
        cells[rank] = smooth ? -median : window.negated_min;
        break;
    }
  }

  const MetricRule rule;
  const bool is_set;
  Window window;
  std::vector<Pending> pending;  // not read yet: reading waits for the device
  MetricHistory history;
};

MetricStore::MetricStore() = default;
MetricStore::~MetricStore() = default;

void MetricStore::AddSink(std::unique_ptr<MetricSink> sink) {
  const std::string place = sink->place();
  const auto is_there = [&place](const auto& other) { return !place.empty() && other->place() == place; };
  if (std::none_of(sinks_.begin(), sinks_.end(), is_there)) sinks_.push_back(std::move(sink));
}

absl::string_view MetricStore::FullName(absl::string_view name) {
  if (prefix_.empty()) return name;
  full_name_.assign(prefix_).append(name.data(), name.size());
  return full_name_;
}

MetricStore::Series& MetricStore::FindOrMake(absl::string_view name, bool is_set) {
  const absl::string_view full_name = FullName(name);
  auto found = series_.find(full_name);
  if (found == series_.end()) {
    found = series_.emplace(full_name, std::make_unique<Series>(MetricRule(), is_set)).first;
  } else if (found->second->is_set != is_set && misuse_.ok()) {
    misuse_ = absl::FailedPreconditionError(
        absl::StrCat("metric '", full_name, "' was both added and set, expected one of them: give one another name"));
  }
  return *found->second;
}

absl::Status MetricStore::Declare(absl::string_view name, MetricRule rule) {
  const absl::string_view full_name = FullName(name);
  const auto found = series_.find(full_name);
  if (found == series_.end()) {
    series_.emplace(full_name, std::make_unique<Series>(rule, /*set=*/false));
    return absl::OkStatus();
  }
  const Series& series = *found->second;
  if (!series.is_set && series.rule == rule) return absl::OkStatus();
  const std::string other = series.is_set ? "a value that is set" : Describe(series.rule);
  return absl::FailedPreconditionError(absl::StrCat("metric '", full_name, "' is declared as ", Describe(rule),
                                                    ", but is already ", other,
                                                    "; expected one rule for a name, declared before its first use"));
}

void MetricStore::Add(absl::string_view name, double value) {
  Series& series = FindOrMake(name, /*is_set=*/false);
  if (series.pending.empty()) {
    series.Add(value, iteration_);
  } else {
    series.pending.push_back({at::scalar_tensor(value, at::kDouble), iteration_});  // behind those before it
  }
}

void MetricStore::Add(absl::string_view name, const at::Tensor& value) { AddUnless(at::Tensor(), name, value); }

void MetricStore::AddUnless(const at::Tensor& left_out, absl::string_view name, const at::Tensor& value) {
  Series& series = FindOrMake(name, /*is_set=*/false);
  // Where nobody asks for reports, observations must not pile up.
  if (static_cast<int64_t>(series.pending.size()) >= kHistoryLength) Series::ReadAll({&series});
  series.pending.push_back({value, iteration_, left_out.defined() ? left_out.clone() : at::Tensor()});
}

void MetricStore::Set(absl::string_view name, double value) {
  FindOrMake(name, /*is_set=*/true).Add(value, iteration_);
}

void MetricStore::AddHistogram(absl::string_view name, const at::Tensor& values) {
  open_.histograms[std::string(FullName(name))] = MakeHistogram(values);
}

absl::Status MetricStore::AddImage(absl::string_view name, const at::Tensor& pixels) {
  SSL_ASSIGN_OR_RETURN(open_.images[std::string(FullName(name))], MakeImage(pixels));
  return absl::OkStatus();
}

const MetricHistory* MetricStore::History(absl::string_view name) {
  const auto found = series_.find(FullName(name));
  if (found == series_.end()) return nullptr;
  Series::ReadAll({found->second.get()});
  const MetricHistory& history = found->second->history;
  return history.size() == 0 ? nullptr : &history;
}

std::vector<std::string> MetricStore::Names() const {
  std::vector<std::string> names;
  names.reserve(series_.size());
  for (const auto& [name, series] : series_) names.push_back(name);
  return names;
}

absl::Status MetricStore::Reduce(Communicator& communicator, int64_t iteration, MetricReport* report) {
  const int64_t world_size = communicator.size();
  std::vector<Series*> all;
  for (const auto& [_, series] : series_) all.push_back(series.get());
  Series::ReadAll(all);
  std::vector<std::pair<const std::string*, Series*>> reduced;
  int64_t num_cells = 1;
  for (auto& [name, series] : series_) {
    if (series->window.count == 0) continue;
    if (series->is_set) {
      report->values[name] = series->history.Latest().value;
      series->window = {};
    } else {
      reduced.emplace_back(&name, series.get());
      num_cells += NumCells(series->rule.reduction, world_size);
    }
  }
  at::Tensor packed = at::zeros({num_cells}, at::kDouble);
  double* cells = packed.mutable_data_ptr<double>();
  const double fingerprint = *cells++ = FingerprintOf(reduced);
  for (auto& [name, series] : reduced) {
    series->Pack(iteration, communicator.rank(), cells);
    series->window = {};
    cells += NumCells(series->rule.reduction, world_size);
  }
  SSL_RETURN_IF_ERROR(Annotate(communicator.AllReduce(packed, ReduceOp::kSum), kReducing));
  const double* sums = packed.const_data_ptr<double>();
  const bool is_one_sum = *sums++ == fingerprint * static_cast<double>(world_size);
  if (!is_one_sum) misuse_.Update(OtherNames(reduced, communicator.rank()));
  for (const auto& [name, series] : reduced) {
    report->values[*name] = Unpack(series->rule.reduction, sums, world_size);
    sums += NumCells(series->rule.reduction, world_size);
  }
  return absl::OkStatus();
}

absl::StatusOr<MetricReport> MetricStore::Report(int64_t iteration, int64_t epoch, Communicator& communicator) {
  MetricReport report = std::exchange(open_, MetricReport());
  report.iteration = iteration;
  report.epoch = epoch;
  SSL_RETURN_IF_ERROR(Reduce(communicator, iteration, &report));
  SSL_RETURN_IF_ERROR(WriteAndAgree(report, misuse_, communicator));
  return report;
}

absl::Status MetricStore::Write(const MetricReport& report, Communicator& communicator) {
  return WriteAndAgree(report, absl::OkStatus(), communicator);
}

absl::Status MetricStore::WriteAndAgree(const MetricReport& report, absl::Status status, Communicator& communicator) {
  if (communicator.rank() == 0 && status.ok()) {
    for (const auto& sink : sinks_) status.Update(GuardTorch("metric sink", [&] { return sink->Write(report); }));
  }
  return AgreeOnStatus(status, "writing metrics", communicator);
}

absl::Status MetricStore::Flush() {
  absl::Status first;
  for (const auto& sink : sinks_) first.Update(GuardTorch("metric sink", [&] { return sink->Flush(); }));
  return first;
}

MetricScope::MetricScope(MetricStore& metrics, absl::string_view scope)
    : metrics_(metrics), outer_size_(metrics.prefix_.size()) {
  metrics_.prefix_.append(scope.data(), scope.size()).push_back('/');
}

MetricScope::~MetricScope() { metrics_.prefix_.resize(outer_size_); }

}  // namespace ssl
