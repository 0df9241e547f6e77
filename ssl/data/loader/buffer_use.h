// SPDX-License-Identifier: Apache-2.0
//
// When memory that has grown for a huge image is given back.
#ifndef SSL_DATA_LOADER_BUFFER_USE_H_
#define SSL_DATA_LOADER_BUFFER_USE_H_

#include <algorithm>
#include <cstdint>

namespace ssl {

// Whether a buffer is worth giving back: it has held something huge, and what it has held since is much smaller.
class BufferUse {
 public:
  // bytes: that were needed for a sample, or for as many as the buffer holds at once.
  void Add(int64_t bytes) {
    const bool is_much_smaller = bytes < largest_ / 4;
    largest_ = is_much_smaller ? largest_ : std::max(largest_, bytes);
    much_smaller_in_a_row_ = is_much_smaller ? much_smaller_in_a_row_ + 1 : 0;
  }

  bool is_over() const { return largest_ >= kHuge && much_smaller_in_a_row_ >= kPatience; }

 private:
  // A photograph of 5 megapixels; what smaller ones leave is not missed.
  static constexpr int64_t kHuge = int64_t{16} << 20;
  // A huge image takes long to decode: new buffers for one among so many are nothing beside it.
  static constexpr int64_t kPatience = 64;

  int64_t largest_ = 0;
  int64_t much_smaller_in_a_row_ = 0;
};

}  // namespace ssl

#endif  // SSL_DATA_LOADER_BUFFER_USE_H_
