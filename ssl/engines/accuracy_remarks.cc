// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/accuracy_remarks.h"

#include <ATen/ops/_unique.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/data/shared_images.h"
#include "ssl/hooks/collapse_monitor_hook.h"
#include "ssl/meters/wilson_interval.h"

namespace ssl {
namespace {

constexpr char kTrained[] = "trained";
constexpr char kUntrained[] = "untrained";
// Far below what a network has that tells images apart; all the same would be 0.
constexpr double kCollapsedSpread = 0.01;

}  // namespace

bool ShowsTop5(const at::Tensor& train_labels) {
  return std::get<0>(at::_unique(train_labels)).numel() >= kFewestClassesForTop5;
}

std::string IntervalColumn(double top1, int64_t test_images) {
  const AccuracyInterval interval = WilsonInterval(top1, test_images);
  return absl::StrFormat("   %4.1f to %5.1f%%", 100 * interval.low, 100 * interval.high);
}

ConfigNode IntervalTree(double top1, int64_t test_images) {
  const AccuracyInterval interval = WilsonInterval(top1, test_images);
  ConfigNode list = ConfigNode::List();
  list.Append(ConfigNode::FromDouble(interval.low));
  list.Append(ConfigNode::FromDouble(interval.high));
  return list;
}

void AccuracyRemarks::Add(const SubjectFeatures& subject, double top1) {
  rows_.push_back({subject.name, subject.title, top1});
  test_images_ = subject.test.labels.size(0);
  if (subject.name == kTrained && subject.train.features[0].size(0) > 1) {
    spread_ = FeatureSpread(subject.train.features[0]);
  }
}

std::string AccuracyRemarks::Text(int64_t shared_images) const {
  std::string text;
  const auto of = [&](const char* name) {
    return std::count_if(rows_.begin(), rows_.end(), [name](const Row& row) { return row.name == name; });
  };
  const bool compares = of(kTrained) == 1;
  const AccuracyInterval trained =
      compares ? WilsonInterval(rows_.back().top1, test_images_) : AccuracyInterval();  // which comes last
  std::vector<std::string> better;
  std::vector<std::string> unclear;
  for (const Row& row : rows_) {
    if (!compares || row.name == kTrained || of(row.name.c_str()) != 1) continue;
    const AccuracyInterval baseline = WilsonInterval(row.top1, test_images_);
    const std::string title = absl::StrCat("the ", row.title);
    if (trained.low > baseline.high) {
      better.push_back(title);
    } else if (trained.high >= baseline.low) {
      unclear.push_back(title);
    } else {
      absl::StrAppend(&text, "The trained network is worse than ", title, ": the 95 % intervals do not overlap.",
                      row.name == kUntrained ? " Its training has made the features worse, as a collapse does "
                                               "(config.HOOKS.COLLAPSE_MONITOR watches for one)."
                                             : "",
                      "\n");
    }
  }
  if (!better.empty()) {
    absl::StrAppend(&text, "The trained network is better than ", absl::StrJoin(better, " and "),
                    ": the 95 % intervals do not overlap.\n");
  }
  if (!unclear.empty()) {
    absl::StrAppend(&text, test_images_, test_images_ == 1 ? " test image does" : " test images do",
                    " not tell whether the trained network is better than ", absl::StrJoin(unclear, " or "),
                    ": the 95 % intervals overlap.\n");
  }
  if (spread_ < kCollapsedSpread) {
    absl::StrAppend(&text, absl::StrFormat("The trained network has nearly the same features for all images (spread "
                                           "%.4f, between 0 and 1): it has collapsed.\n",
                                           spread_));
  }
  const std::string shared = SharedImagesSentence(shared_images, test_images_);
  return shared.empty() ? text : absl::StrCat(text, shared, "\n");
}

}  // namespace ssl
