// SPDX-License-Identifier: Apache-2.0
//
// What a table of accuracies says and does not say, for people.
#ifndef SSL_ENGINES_ACCURACY_REMARKS_H_
#define SSL_ENGINES_ACCURACY_REMARKS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/config/node.h"
#include "ssl/engines/evaluation_subjects.h"

namespace ssl {

// With fewer classes nearly every answer is among the first five, and tables leave the column out.
inline constexpr int64_t kFewestClassesForTop5 = 10;
bool ShowsTop5(const at::Tensor& train_labels);

// "   38.4 to  69.0%", as wide as the heading.
inline constexpr char kIntervalHeading[] = "    95 % interval";
std::string IntervalColumn(double top1, int64_t test_images);

// The interval of results.json, [low, high], of fractions: under the key of the accuracy with this at its end.
inline constexpr char kIntervalEnd[] = "_interval";
ConfigNode IntervalTree(double top1, int64_t test_images);

// Collects the rows of a table, in order, and compares the trained network with the baselines.
class AccuracyRemarks {
 public:
  void Add(const SubjectFeatures& subject, double top1);
  // A sentence each, with its end of line: whether the trained network is better than each baseline by more than chance
  // explains, where each has one row; whether its features are nearly the same for all images; and whether test images
  // were trained on.
  std::string Text(int64_t shared_images) const;

 private:
  struct Row {
    std::string name;
    std::string title;
    double top1 = 0.0;
  };
  std::vector<Row> rows_;
  int64_t test_images_ = 0;
  double spread_ = 1.0;  // of the trained network's features
};

}  // namespace ssl

#endif  // SSL_ENGINES_ACCURACY_REMARKS_H_
