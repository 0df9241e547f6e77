// SPDX-License-Identifier: Apache-2.0
//
// The keys of earlier images that MoCo contrasts with: a ring of embeddings, oldest replaced first.
//
// It starts with random directions, as VISSL's does: equal on every rank, and equal to torch's for the same seed. A
// new batch is written over the oldest rows in place. Not thread-safe.
#ifndef SSL_METHODS_MOCO_KEY_QUEUE_H_
#define SSL_METHODS_MOCO_KEY_QUEUE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ssl/core/stateful.h"

namespace ssl {

class KeyQueue : public Stateful {
 public:
  // Makes `size` rows of width `dim`, random and of unit length, on `device`.
  void Initialize(int64_t size, int64_t dim, int64_t seed, const at::Device& device);

  // [size, dim] float32: the live tensor, which Enqueue changes.
  const at::Tensor& rows() const { return rows_; }

  // keys: [n, dim] with n <= size. Operations depend on n alone: where the keys go is on the device. May throw LibTorch
  // exceptions.
  void Enqueue(const at::Tensor& keys);

  // queue, queue_ptr: the row that the next key goes to. Waits for the device.
  void VisitState(StateVisitor& visitor) override;

 private:
  at::Tensor rows_;
  at::Tensor next_;           // int64 []: the row that the next key goes to
  int64_t visited_next_ = 0;  // its value while state is visited
};

}  // namespace ssl

#endif  // SSL_METHODS_MOCO_KEY_QUEUE_H_
