// SPDX-License-Identifier: Apache-2.0
//
// An 8-bit image in memory: height x width x channels, rows from the top, channels interleaved (HWC), no padding
// between rows. Either borrowed (a view of pixels that live elsewhere) or owned. An owned buffer keeps its capacity,
// so a reused Image allocates nothing in the steady state. A value type; one object belongs to one thread.
//
//   Image image;
//   image.Borrow(pixels, 28, 28, 1);              // no copy; `pixels` must outlive the use
//   uint8_t* out = image.Allocate(224, 224, 3);   // own pixels, contents unspecified
//
// An image may be a file's at a fraction of its size (decode_image.h). It is then as large as the pixels are, tells the
// size that the file has, and boxes are cut out of it in the file's coordinates (resample.h).
#ifndef SSL_DATA_IMAGE_IMAGE_H_
#define SSL_DATA_IMAGE_IMAGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ssl/data/image/byte_buffer.h"

namespace ssl {

class Image {
 public:
  int height() const { return height_; }
  int width() const { return width_; }
  int channels() const { return channels_; }
  int64_t size_bytes() const { return static_cast<int64_t>(height_) * width_ * channels_; }
  // Pixels of the full image, in each direction, for each pixel here: 1, 2, 4 or 8.
  int reduction() const { return reduction_; }
  int full_height() const { return full_height_; }
  int full_width() const { return full_width_; }
  bool is_borrowed() const { return borrowed_ != nullptr; }
  const uint8_t* pixels() const { return borrowed_ != nullptr ? borrowed_ : storage_.data(); }
  // First byte of row y.
  const uint8_t* row(int y) const { return pixels() + static_cast<int64_t>(y) * width_ * channels_; }

  // Becomes a view; the own buffer is kept for later use.
  void Borrow(const uint8_t* pixels, int height, int width, int channels) {
    SetShape(height, width, channels, 1);
    borrowed_ = pixels;
  }

  // Becomes a view of `source`, another image.
  void Borrow(const Image& source) {
    SetShape(source.full_height_, source.full_width_, source.channels_, source.reduction_);
    borrowed_ = source.pixels();
  }

  // Becomes owned, with unspecified contents; returns the pixels. reduction: of an image that is full_height x
  // full_width; each side is divided by it and rounded up.
  uint8_t* Allocate(int full_height, int full_width, int channels, int reduction = 1) {
    SetShape(full_height, full_width, channels, reduction);
    borrowed_ = nullptr;
    return storage_.Allocate(static_cast<size_t>(size_bytes()));
  }

  // Becomes equal to `source`, another image: a view of the same pixels when that is one, else a copy.
  void CopyFrom(const Image& source) {
    SetShape(source.full_height_, source.full_width_, source.channels_, source.reduction_);
    borrowed_ = source.borrowed_;
    if (borrowed_ == nullptr) storage_ = source.storage_;
  }

  // The pixels for writing; a view becomes an owned copy first.
  uint8_t* MutablePixels() {
    if (borrowed_ != nullptr) {
      std::copy_n(borrowed_, size_bytes(), storage_.Allocate(static_cast<size_t>(size_bytes())));
      borrowed_ = nullptr;
    }
    return storage_.data();
  }

 private:
  void SetShape(int full_height, int full_width, int channels, int reduction) {
    height_ = (full_height + reduction - 1) / reduction;
    width_ = (full_width + reduction - 1) / reduction;
    full_height_ = full_height;
    full_width_ = full_width;
    channels_ = channels;
    reduction_ = reduction;
  }

  int height_ = 0;
  int width_ = 0;
  int full_height_ = 0;
  int full_width_ = 0;
  int channels_ = 0;
  int reduction_ = 1;
  const uint8_t* borrowed_ = nullptr;  // null when owned
  ByteBuffer storage_;
};

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_IMAGE_H_
