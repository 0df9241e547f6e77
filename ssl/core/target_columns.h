// SPDX-License-Identifier: Apache-2.0
//
// A BatchSource that makes targets with a column for each class out of class numbers, such as one that mixes samples,
// has this interface as well: the columns have to be the outputs of the head.
#ifndef SSL_CORE_TARGET_COLUMNS_H_
#define SSL_CORE_TARGET_COLUMNS_H_

#include <cstdint>

namespace ssl {

class TargetColumns {
 public:
  virtual ~TargetColumns() = default;

  // 0: targets are what the data set has.
  virtual int64_t target_columns() const = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_TARGET_COLUMNS_H_
