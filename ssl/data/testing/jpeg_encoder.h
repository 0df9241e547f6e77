// SPDX-License-Identifier: Apache-2.0
//
// JPEGs of every kind, for tests.
#ifndef SSL_DATA_TESTING_JPEG_ENCODER_H_
#define SSL_DATA_TESTING_JPEG_ENCODER_H_

#include <cstdint>
#include <string>

namespace ssl {

struct JpegKind {
  // How many times as many columns and rows the first component has as the others.
  int horizontal = 2;
  int vertical = 2;
  bool progressive = false;
  int restart_rows = 0;
  int quality = 90;
  bool arithmetic = false;  // coding
};

// pixels: height x width x components; 1 component is grey, 3 are RGB, 4 CMYK.
std::string EncodeJpeg(const uint8_t* pixels, int height, int width, int components, const JpegKind& kind = {});

// A JPEG with an EXIF segment that gives this orientation, 1 to 8.
std::string WithOrientation(const std::string& jpeg, int orientation);

}  // namespace ssl

#endif  // SSL_DATA_TESTING_JPEG_ENCODER_H_
