// SPDX-License-Identifier: Apache-2.0
//
// The views of a batch by themselves, for those who show or count images, whatever the model is given.
#ifndef SSL_CORE_BATCH_VIEWS_H_
#define SSL_CORE_BATCH_VIEWS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "ssl/core/batch.h"

namespace ssl {

// A tensor [B, C, H, W] for each view: joined ones apart, those of named inputs in the order of the names. They share
// the batch's memory. Stateless; may throw LibTorch exceptions.
std::vector<at::Tensor> ViewsOf(const Batch& batch);

// Whether each tensor of `views` has one row for each sample: no view is joined with others. True where the batch does
// not number its samples.
bool HasARowForEachSample(const Batch& batch);

}  // namespace ssl

#endif  // SSL_CORE_BATCH_VIEWS_H_
