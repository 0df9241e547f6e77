// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/png_encoder.h"

#include <png.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ssl {

absl::StatusOr<std::string> EncodePng(const Image& image) {
  const bool has_shape = image.height() > 0 && image.width() > 0 && (image.channels() == 1 || image.channels() == 3);
  if (!has_shape) {
    return absl::InvalidArgumentError(absl::StrCat("PNG of ", image.height(), " x ", image.width(), " pixels with ",
                                                   image.channels(), " channels, expected 1 or 3 channels of pixels"));
  }
  // The library's simplified interface: it catches its own errors, so no jump leaves this function.
  png_image header = {};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width());
  header.height = static_cast<png_uint_32>(image.height());
  header.format = image.channels() == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  // Room for the worst case, so that pixels are compressed once and not to learn the size, too.
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string bytes(size, '\0');
  const int written = png_image_write_to_memory(&header, &bytes[0], &size, /*convert_to_8_bit=*/0, image.pixels(),
                                                /*row_stride=*/0, /*colormap=*/nullptr);
  if (written == 0) return absl::InternalError(absl::StrCat("PNG: ", header.message));
  bytes.resize(size);
  return bytes;
}

}  // namespace ssl
