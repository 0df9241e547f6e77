// SPDX-License-Identifier: Apache-2.0
//
// Many tensors in one launch, each multiplied by a factor of its own: gradients become
// (gradient + weight_decay * parameter) * rate. Tensors are cut into chunks, of which each team (team.h) has one.
#ifndef SSL_KERNELS_SCALE_CHUNK_H_
#define SSL_KERNELS_SCALE_CHUNK_H_

#include <cstdint>

#include "ssl/kernels/host_device.h"

namespace ssl {

struct ScaledTensor {
  float* gradient = nullptr;
  const float* parameter = nullptr;  // null: there is no decay
  int64_t size = 0;
};

constexpr int kChunkSize = 16384;

// An argument of a kernel has 4 KiB.
struct ScaleLaunch {
  static constexpr int kMostTensors = 128;

  // There has to be room. More than 2^31 chunks are more than a GPU's memory.
  void Add(const ScaledTensor& tensor) {
    tensors[count] = tensor;
    chunk_begin[count + 1] = chunk_begin[count] + static_cast<int>((tensor.size + kChunkSize - 1) / kChunkSize);
    ++count;
  }
  bool is_full() const { return count == kMostTensors; }
  int chunks() const { return chunk_begin[count]; }

  ScaledTensor tensors[kMostTensors];
  int chunk_begin[kMostTensors + 1] = {};  // chunks of tensor i are those from [i] up to [i + 1]
  int count = 0;
  const float* rates = nullptr;  // [count], where the tensors are
  float weight_decay = 0.0f;
};

// Which tensor has the chunk; tensors without values have none.
SSL_HOST_DEVICE int TensorOfChunk(const ScaleLaunch& launch, int chunk) {
  int first = 0, behind = launch.count;
  while (behind - first > 1) {
    const int middle = (first + behind) / 2;
    if (launch.chunk_begin[middle] <= chunk) {
      first = middle;
    } else {
      behind = middle;
    }
  }
  return first;
}

// A thread's part of it; every thread of the chunk's team calls it.
template <typename Team>
SSL_TEAM_FUNCTION void ScaleChunk(const Team& team, const ScaleLaunch& launch, int chunk) {
  const int which = TensorOfChunk(launch, chunk);
  const ScaledTensor& tensor = launch.tensors[which];
  const float rate = launch.rates[which];
  const int64_t begin = static_cast<int64_t>(chunk - launch.chunk_begin[which]) * kChunkSize;
  const int64_t end = begin + kChunkSize < tensor.size ? begin + kChunkSize : tensor.size;
  for (int64_t i = begin + team.index(); i < end; i += team.size()) {
    float gradient = tensor.gradient[i];
    if (tensor.parameter != nullptr) gradient += launch.weight_decay * tensor.parameter[i];
    tensor.gradient[i] = gradient * rate;
  }
}

}  // namespace ssl

#endif  // SSL_KERNELS_SCALE_CHUNK_H_
