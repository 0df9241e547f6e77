// SPDX-License-Identifier: Apache-2.0
//
// An 8-bit image in memory: height x width x channels, rows from the top, channels interleaved (HWC), no padding
// between rows. Either borrowed (a view of pixels that live elsewhere) or owned. An owned buffer keeps its capacity,
// so a reused Image allocates nothing in the steady state. A value type; one object belongs to one thread.
//
//   Image image;
//   image.Borrow(pixels, 28, 28, 1);              // no copy; `pixels` must outlive the use
//   uint8_t* out = image.Allocate(224, 224, 3);   // own pixels, contents unspecified
#ifndef SSL_DATA_IMAGE_IMAGE_H_
#define SSL_DATA_IMAGE_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ssl {

class Image {
 public:
  int height() const { return height_; }
  int width() const { return width_; }
  int channels() const { return channels_; }
  int64_t size_bytes() const { return static_cast<int64_t>(height_) * width_ * channels_; }
  bool is_borrowed() const { return borrowed_ != nullptr; }
  const uint8_t* pixels() const { return borrowed_ != nullptr ? borrowed_ : storage_.data(); }
  // First byte of row y.
  const uint8_t* row(int y) const { return pixels() + static_cast<int64_t>(y) * width_ * channels_; }

  // Becomes a view; the own buffer is kept for later use.
  void Borrow(const uint8_t* pixels, int height, int width, int channels) {
    SetShape(height, width, channels);
    borrowed_ = pixels;
  }

  // Becomes owned, with unspecified contents; returns the pixels.
  uint8_t* Allocate(int height, int width, int channels) {
    SetShape(height, width, channels);
    borrowed_ = nullptr;
    storage_.resize(static_cast<size_t>(size_bytes()));
    return storage_.data();
  }

  // Becomes equal to `source`, another image: a view of the same pixels when that is one, else a copy.
  void CopyFrom(const Image& source) {
    SetShape(source.height_, source.width_, source.channels_);
    borrowed_ = source.borrowed_;
    if (borrowed_ == nullptr) storage_ = source.storage_;
  }

  // The pixels for writing; a view becomes an owned copy first.
  uint8_t* MutablePixels() {
    if (borrowed_ != nullptr) {
      storage_.assign(borrowed_, borrowed_ + size_bytes());
      borrowed_ = nullptr;
    }
    return storage_.data();
  }

 private:
  void SetShape(int height, int width, int channels) {
    height_ = height;
    width_ = width;
    channels_ = channels;
  }

  int height_ = 0;
  int width_ = 0;
  int channels_ = 0;
  const uint8_t* borrowed_ = nullptr;  // null when owned
  std::vector<uint8_t> storage_;
};

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_IMAGE_H_
