// SPDX-License-Identifier: Apache-2.0
//
// Whether a decoder may trade pixels for time.
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

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_DECODE_MODE_H_
