// SPDX-License-Identifier: Apache-2.0
//
// Which class of one data set is which class of another. A class number says so only within its data set: an image
// folder numbers the folders that it has, so that without one of them all later numbers differ.
#ifndef SSL_CORE_CLASS_MAP_H_
#define SSL_CORE_CLASS_MAP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"

namespace ssl {

// The classes of a split.
struct SplitClasses {
  std::string place;               // for messages: "run.yaml:3: config.DATA.TEST.DATA_PATHS"
  std::vector<std::string> names;  // by class number; empty: classes are numbers only
  std::vector<int64_t> numbers;    // of the classes that occur, ascending; empty: not known
};

// Those of `source`, which the section config.DATA.<split> describes. config: the tree under "config". InvalidArgument
// for a source without labels.
absl::StatusOr<SplitClasses> ClassesOf(const std::string& split, const BatchSource& source, const ConfigNode& config);

// From the class numbers of test data to those of training data: by name where both have names, else as they are.
class ClassMap {
 public:
  // Numbers stay as they are.
  ClassMap() = default;

  // InvalidArgument, with the classes and the way out, when only one side has names or when test data have a class that
  // training data lack. Where numbers are not known, Apply finds that out.
  static absl::StatusOr<ClassMap> Create(const SplitClasses& train, const SplitClasses& test);

  // labels: [N] int64, of test data; train_labels: those that may be the answer. Returns [N]. InvalidArgument as above.
  // May throw LibTorch exceptions.
  absl::StatusOr<at::Tensor> Apply(const at::Tensor& labels, const at::Tensor& train_labels) const;

  // The same where a head, not samples, gives the answer: every class of the training data may be it. Labels below 0
  // (unknown) stay as they are.
  absl::StatusOr<at::Tensor> Renumber(const at::Tensor& labels) const;

  // No number changes.
  bool is_identity() const { return train_.names == test_.names; }

 private:
  // The class of test data for messages.
  std::string NameOf(int64_t test_class) const;
  // -1 when training data have no such class.
  int64_t TrainClass(int64_t test_class) const;
  absl::Status CheckKnown(const std::vector<int64_t>& test_classes, const std::vector<int64_t>& train_classes) const;
  absl::Status UnknownClasses(const std::vector<std::string>& unknown, const std::vector<std::string>& known) const;

  SplitClasses train_ = {"config.DATA.TRAIN", {}, {}};
  SplitClasses test_ = {"config.DATA.TEST", {}, {}};
};

}  // namespace ssl

#endif  // SSL_CORE_CLASS_MAP_H_
