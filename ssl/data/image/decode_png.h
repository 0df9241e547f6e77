// SPDX-License-Identifier: Apache-2.0
//
// PNG by libpng, of every colour type and depth. Alpha, transparent colours, gamma and colour profiles are left out of
// account and 16-bit values lose their low byte, as in Pillow; 16-bit grey is clipped at 255, as there, if it is asked
// for (decode_mode.h). The rules are those of decode_image.h.
#ifndef SSL_DATA_IMAGE_DECODE_PNG_H_
#define SSL_DATA_IMAGE_DECODE_PNG_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/decode_mode.h"
#include "ssl/data/image/image.h"

namespace ssl {

absl::Status DecodePng(absl::string_view bytes, const DecodeLimits& limits, Image* image,
                       Grey16 grey16 = Grey16::kScale);

// Whether the header says so; bytes: of any file.
bool IsPngOf16Bits(absl::string_view bytes);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_DECODE_PNG_H_
