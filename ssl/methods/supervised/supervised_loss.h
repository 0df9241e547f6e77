// SPDX-License-Identifier: Apache-2.0
//
// A loss of outputs against labels, with its options: what SupervisedMethod trains with. The options are those of the
// section LOSS.<name>.
#ifndef SSL_METHODS_SUPERVISED_SUPERVISED_LOSS_H_
#define SSL_METHODS_SUPERVISED_SUPERVISED_LOSS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"

namespace ssl {

class SupervisedLoss : public Options {
 public:
  // outputs: the model's, at least one. targets: as in Batch, on the same device. Returns the terms whose sum is the
  // objective, one for each output: scalars with their graph, at least float32. InvalidArgument when outputs and
  // targets do not fit. May throw LibTorch exceptions.
  virtual absl::StatusOr<std::vector<at::Tensor>> Terms(const std::vector<at::Tensor>& outputs,
                                                        const at::Tensor& targets) = 0;

  // Whether targets are class numbers: below the number of the outputs' columns.
  virtual bool labels_are_classes() const { return false; }
  // The class number that says not to count a sample.
  virtual int64_t ignored_label() const { return -1; }
};

// A loss that LOSS.name can name.
struct SupervisedLossEntry {
  std::string name;
  std::function<std::unique_ptr<SupervisedLoss>()> make;  // with default options
};

}  // namespace ssl

#endif  // SSL_METHODS_SUPERVISED_SUPERVISED_LOSS_H_
