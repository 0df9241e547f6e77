// SPDX-License-Identifier: Apache-2.0
//
// Bytes whose memory is kept between uses, and which nobody fills with zeros first, as a std::vector or std::string
// would. One object belongs to one thread.
//
//   ByteBuffer buffer;
//   uint8_t* bytes = buffer.Allocate(1000);  // contents unspecified
//   bytes = buffer.Allocate(500);            // the same memory
#ifndef SSL_DATA_IMAGE_BYTE_BUFFER_H_
#define SSL_DATA_IMAGE_BYTE_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"

namespace ssl {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(const ByteBuffer& other) { *this = other; }
  ByteBuffer(ByteBuffer&& other) noexcept { Swap(&other); }
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    Swap(&other);
    return *this;
  }
  ByteBuffer& operator=(const ByteBuffer& other) {
    if (this != &other) std::copy_n(other.data(), other.size(), Allocate(other.size()));
    return *this;
  }

  // Makes it `size` bytes of unspecified contents.
  uint8_t* Allocate(size_t size) {
    size_ = 0;
    if (size > capacity_) {
      // Before the new memory is taken: the larger of both is all that is needed at once.
      memory_.reset();
      capacity_ = 0;
      memory_.reset(new uint8_t[size]);
      capacity_ = size;
    }
    size_ = size;
    return memory_.get();
  }

  uint8_t* data() { return memory_.get(); }
  const uint8_t* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  absl::string_view view() const { return {reinterpret_cast<const char*>(memory_.get()), size_}; }

 private:
  void Swap(ByteBuffer* other) noexcept {
    std::swap(memory_, other->memory_);
    std::swap(size_, other->size_);
    std::swap(capacity_, other->capacity_);
  }

  std::unique_ptr<uint8_t[]> memory_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_BYTE_BUFFER_H_
