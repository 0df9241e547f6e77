// SPDX-License-Identifier: Apache-2.0
//
// A Dataset that replaces broken images has this interface as well, so that the data sets that are made one have one
// count of them.
#ifndef SSL_DATA_DATASETS_COUNTS_BROKEN_H_
#define SSL_DATA_DATASETS_COUNTS_BROKEN_H_

#include "ssl/data/dataset.h"
#include "ssl/data/datasets/broken_images.h"

namespace ssl {

class CountsBroken {
 public:
  virtual ~CountsBroken() = default;

  // The count that it adds to, which lives as long as it. Null: it wraps a data set that counts nothing.
  virtual BrokenImages* broken() const = 0;
};

// Null where it counts nothing, or for itself alone, as a host's data set may.
inline BrokenImages* CountOf(const Dataset& dataset) {
  const auto* counter = dynamic_cast<const CountsBroken*>(&dataset);
  return counter == nullptr ? nullptr : counter->broken();
}

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_COUNTS_BROKEN_H_
