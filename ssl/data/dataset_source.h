// SPDX-License-Identifier: Apache-2.0
//
// A BatchSource whose batches come from a data set has this interface as well: for who wants the images as they are in
// their files, or their names, beside the batches.
#ifndef SSL_DATA_DATASET_SOURCE_H_
#define SSL_DATA_DATASET_SOURCE_H_

#include "ssl/data/dataset.h"

namespace ssl {

class DatasetSource {
 public:
  virtual ~DatasetSource() = default;

  // Its positions are those that batches tell; lives as long as the source.
  virtual const Dataset& dataset() const = 0;
};

}  // namespace ssl

#endif  // SSL_DATA_DATASET_SOURCE_H_
