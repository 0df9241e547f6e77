// SPDX-License-Identifier: Apache-2.0
//
// What one training or evaluation step consumes.
#ifndef SSL_CORE_BATCH_H_
#define SSL_CORE_BATCH_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ssl {

// How pixels of 8 bits become what a model takes: (pixel / 255 - mean) / std, by channel.
struct PixelNormalization {
  std::vector<double> mean;
  std::vector<double> std;
};

// B samples, V views (crops) of each. Tensors may share the loader's buffers: they are valid until the next batch
// is asked for.
struct Batch {
  // views[v]: [B, C, H_v, W_v] float, channels-last in memory; view order is the order of the crops. Of a collator that
  // joins views, such as siamese_collator, one tensor [B * V, C, H, W], all views of sample 0 first.
  std::vector<at::Tensor> views;
  // Instead of views: tensors by name (INPUT_KEY_NAMES), [B, ...] or joined likewise, for models with
  // MODEL.MULTI_INPUT_HEAD_MAPPING.
  std::map<std::string, at::Tensor> named_inputs;
  // Of batches for an accelerator, whose views and named inputs may be uint8, by their place (views in order, then
  // inputs by name): what is left to do with them there (DeviceBatchSource). Empty: all of them are float.
  std::vector<PixelNormalization> normalizations;
  // [B] int64 class labels, or [B, classes]: 0/1 (and -1 for unknown) int64, or float weights of soft labels.
  // Undefined when the source has none.
  at::Tensor targets;
  // [B] int64 positions in the data set.
  at::Tensor indices;

  int64_t size() const { return indices.defined() ? indices.size(0) : 0; }
};

}  // namespace ssl

#endif  // SSL_CORE_BATCH_H_
