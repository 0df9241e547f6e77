// SPDX-License-Identifier: Apache-2.0
//
// How the views of samples become the tensors of a batch: COLLATE_FUNCTION. A collator says which views fit, once, when
// the first sample is known; the rows are then written by BatchBuffer straight from the samples. Immutable.
#ifndef SSL_DATA_COLLATOR_H_
#define SSL_DATA_COLLATOR_H_

#include "absl/status/status.h"
#include "ssl/data/sample.h"

namespace ssl {

class Collator {
 public:
  virtual ~Collator() = default;

  // InvalidArgument when samples like `first` do not make such a batch; view v of the samples becomes view v of the
  // batch otherwise.
  virtual absl::Status Check(const Sample& first) const = 0;
};

}  // namespace ssl

#endif  // SSL_DATA_COLLATOR_H_
