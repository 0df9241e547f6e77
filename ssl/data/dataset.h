// SPDX-License-Identifier: Apache-2.0
//
// A finite, indexed collection of pictures. Implementations are immutable: Get is called by many threads at once.
// A host's own data set is one class with these four functions, registered in Registries::datasets.
#ifndef SSL_DATA_DATASET_H_
#define SSL_DATA_DATASET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace ssl {

class Sample;

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual bool has_labels() const = 0;
  // For messages: where the data comes from, such as a path.
  virtual std::string description() const = 0;

  // Sets the sample's only view to the picture at `index` in [0, size()), and its label. A data set that holds
  // decoded pixels lends them (Image::Borrow) for as long as it lives; one that decodes writes into Image::Allocate.
  // sample: has one plain view, and its index is set already.
  virtual absl::Status Get(int64_t index, Sample* sample) const = 0;
};

}  // namespace ssl

#endif  // SSL_DATA_DATASET_H_
