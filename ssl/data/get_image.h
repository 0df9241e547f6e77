// SPDX-License-Identifier: Apache-2.0
//
// Dataset::Get, and a look at what it gave: transforms rely on an image of some pixels and 1 or 3 channels, which the
// data set of a host may not know.
#ifndef SSL_DATA_GET_IMAGE_H_
#define SSL_DATA_GET_IMAGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ssl/data/dataset.h"
#include "ssl/data/sample.h"

namespace ssl {

// Makes the sample plain, of one view without label and fault, and lets the data set fill it. sample->needed is as Get
// takes it. InvalidArgument, beside the data set's own errors: it gave no image, one of no pixels, or one of other than
// 1 or 3 channels. Errors name the sample and the data set.
absl::Status GetImage(const Dataset& dataset, int64_t index, Sample* sample);

}  // namespace ssl

#endif  // SSL_DATA_GET_IMAGE_H_
