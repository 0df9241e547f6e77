// SPDX-License-Identifier: Apache-2.0
//
// Images as PNG bytes, lossless: for files that people look at and for TensorBoard.
#ifndef SSL_DATA_IMAGE_PNG_ENCODER_H_
#define SSL_DATA_IMAGE_PNG_ENCODER_H_

#include <string>

#include "absl/status/statusor.h"
#include "ssl/data/image/image.h"

namespace ssl {

// Grey for 1 channel, RGB for 3. The same bytes for the same pixels. InvalidArgument for any other shape, an empty
// image included. Thread-safe.
absl::StatusOr<std::string> EncodePng(const Image& image);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_PNG_ENCODER_H_
