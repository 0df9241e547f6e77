// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/testing/jpeg_encoder.h"

#include <cstddef>
#include <cstdio>  // jpeglib.h uses FILE and size_t without including them
#include <cstdlib>
#include <vector>
// After <cstdio>.
#include <jpeglib.h>

namespace ssl {

std::string EncodeJpeg(const uint8_t* pixels, int height, int width, int components, const JpegKind& kind) {
  jpeg_compress_struct encoder = {};
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &bytes, &size);
  encoder.image_height = height;
  encoder.image_width = width;
  encoder.input_components = components;
  encoder.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, kind.quality, TRUE);
  encoder.comp_info[0].h_samp_factor = kind.horizontal;
  encoder.comp_info[0].v_samp_factor = kind.vertical;
  encoder.restart_in_rows = kind.restart_rows;
  encoder.arith_code = kind.arithmetic ? TRUE : FALSE;
  if (kind.progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  const size_t row_size = static_cast<size_t>(width) * components;
  std::vector<uint8_t> row(row_size);
  for (int y = 0; y < height; ++y) {
    row.assign(pixels + y * row_size, pixels + (y + 1) * row_size);
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&encoder, &pointer, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string result(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return result;
}

std::string WithOrientation(const std::string& jpeg, int orientation) {
  // APP1: its length, the mark, a big-endian TIFF header, and a directory of one entry: tag 0x0112, one short.
  std::string segment(
      "\xFF\xE1\0\x22"
      "Exif\0\0"
      "MM\0*\0\0\0\x08"
      "\0\x01"
      "\x01\x12\0\x03\0\0\0\x01\0\0\0\0"
      "\0\0\0\0",
      36);
  constexpr size_t kValue = 29;
  segment[kValue] = static_cast<char>(orientation);
  constexpr size_t kStartOfImage = 2;
  return jpeg.substr(0, kStartOfImage) + segment + jpeg.substr(kStartOfImage);
}

}  // namespace ssl
