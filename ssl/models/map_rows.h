// SPDX-License-Identifier: Apache-2.0
//
// A channels-last map as rows of channels, one row for each pixel, float32 or bfloat16, read and written in float
// blocks: what the loops of channel_kernels.h run on.
#ifndef SSL_MODELS_MAP_ROWS_H_
#define SSL_MODELS_MAP_ROWS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace ssl {

// Whether MapRows takes the map: [N, C, H, W], channels-last, on the CPU, float32 or bfloat16, and not empty.
bool HasRows(const at::Tensor& map);

// Refers to the map's memory, which must outlive it. A `buffer` has room for the values of the rows asked for.
// Thread-safe for rows and buffers that no other thread uses.
class MapRows {
 public:
  // Requires HasRows.
  explicit MapRows(const at::Tensor& map);

  int64_t rows() const { return rows_; }
  int64_t channels() const { return channels_; }

  // The rows [begin, begin + count) in float: in place when they are, else in `buffer`.
  const float* Read(int64_t begin, int64_t count, std::vector<float>* buffer) const;

  // Where to put rows before Store: the rows themselves, or `buffer`.
  float* Target(int64_t begin, std::vector<float>* buffer) const {
    return narrow_ ? buffer->data() : static_cast<float*>(data_) + begin * channels_;
  }
  void Store(const float* values, int64_t begin, int64_t count) const;

 private:
  const int64_t channels_;
  const int64_t rows_;
  void* const data_;
  const bool narrow_;
};

}  // namespace ssl

#endif  // SSL_MODELS_MAP_ROWS_H_
