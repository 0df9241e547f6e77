// SPDX-License-Identifier: Apache-2.0
//
// Whether a decoder may trade pixels for time, and what becomes of values that 8 bits do not hold.
#ifndef SSL_DATA_IMAGE_DECODE_MODE_H_
#define SSL_DATA_IMAGE_DECODE_MODE_H_

namespace ssl {

enum class DecodeMode {
  // Pillow's pixels, at the file's size.
  kExact,
  // A JPEG whose crops are all scaled down to a half, a quarter or an eighth, or less, is decoded at that fraction of
  // its size (NeededPixels::reduction). In others that have fewer pixels of colour than of brightness, pixels share
  // their colour, as stored, instead of going from one to the next smoothly. Other formats: no difference.
  kFast,
};

// Of a PNG whose grey values have 16 bits. Colours of 16 bits are always scaled.
enum class Grey16 {
  kScale,  // the high byte, as in Pillow's 16-bit colours: black to white stay black to white
  kClip,   // Pillow's convert("RGB"): all values above 255 are white
};

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_DECODE_MODE_H_
