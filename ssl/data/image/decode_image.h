// SPDX-License-Identifier: Apache-2.0
//
// Encoded images to 8-bit RGB, with the result of Pillow's Image.open(file).convert("RGB"), which VISSL and
// torchvision use: JPEG (grey, YCbCr, RGB, CMYK, YCCK; baseline and progressive), PNG (every colour type and depth,
// interlaced) and WebP (lossy and lossless). The kind is told by the content, not by a name. As there, an alpha channel
// is dropped, not blended, and the orientation that EXIF gives is not applied (exif_orientation.h does). Another result
// than Pillow's has 16-bit grey, of which it leaves one level of 256 (Grey16::kClip).
//
// Bytes are not trusted: sizes are checked before memory is taken, and a damaged file is an error, never an abort or a
// line on stderr. A function without state; safe from any thread. Golden test: decode_image_test.
#ifndef SSL_DATA_IMAGE_DECODE_IMAGE_H_
#define SSL_DATA_IMAGE_DECODE_IMAGE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/decode_mode.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/needed_region.h"

namespace ssl {

// Writes the image into image->Allocate(height, width, 3): a reused image takes no new memory. After an error the
// contents of *image are unspecified.
// ResourceExhausted: over a limit. DataLoss: damaged or cut off. Unimplemented: none of them, or a rare kind of
// them. Messages name numbers, not the file: the caller knows its path.
absl::Status DecodeImage(absl::string_view bytes, const DecodeLimits& limits, Image* image,
                         Grey16 grey16 = Grey16::kScale);

// The same, but of the pixels only those in the region that `needed` tells are sure to be written. Of a JPEG the other
// rows and columns of blocks are not computed, nor what follows the last row of the region read: a file that is cut off
// is an error all the same. mode: only with kFast is the image reduced (Image::reduction), by no more than `needed`
// allows.
absl::Status DecodeImageRegion(absl::string_view bytes, const DecodeLimits& limits, DecodeMode mode,
                               NeededRegion needed, Image* image, Grey16 grey16 = Grey16::kScale);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_DECODE_IMAGE_H_
