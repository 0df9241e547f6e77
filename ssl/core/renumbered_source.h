// SPDX-License-Identifier: Apache-2.0
//
// Test data under the class numbers of training, which are all that a classifier's outputs know. An image folder
// numbers the class folders that it has: without one of them, every later number is another class's.
#ifndef SSL_CORE_RENUMBERED_SOURCE_H_
#define SSL_CORE_RENUMBERED_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"

namespace ssl {

// Gives the labels of `test` by the names of their classes; `test` itself where the numbers agree already, or where
// both have numbers only, and where it has no labels. The sources are those of config.DATA.TEST and config.DATA.TRAIN.
// InvalidArgument names both and the classes when test data have one that training data lack, or when only one side has
// names.
absl::StatusOr<std::unique_ptr<BatchSource>> NumberedAsInTraining(std::unique_ptr<BatchSource> test,
                                                                  const BatchSource& train, const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_CORE_RENUMBERED_SOURCE_H_
