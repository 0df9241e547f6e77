// SPDX-License-Identifier: Apache-2.0
//
// The few layers that trunks and heads are made of: plain structs that own their tensors and run one operator each.
// Names and default initialisation are PyTorch's. Random values come from the caller's generator, never from the
// process-wide one, so that building a model disturbs nobody and depends on its seed alone.
//
//   at::Generator generator = MakeGenerator(seed);
//   LinearLayer layer = MakeLinear(512, 128, /*use_bias=*/true, generator);
//   at::Tensor output = layer.Forward(features);  // [N, 512] -> [N, 128]
#ifndef SSL_MODELS_LAYERS_H_
#define SSL_MODELS_LAYERS_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "ssl/models/model_tensor.h"
#include "ssl/models/norm_mode.h"

namespace ssl {

class Communicator;

// A generator of its own on the CPU (mt19937, as torch.Generator().manual_seed(seed)).
at::Generator MakeGenerator(int64_t seed);

struct LinearLayer {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]; undefined without bias

  at::Tensor Forward(const at::Tensor& input) const;
  // Appends "<prefix>weight" and "<prefix>bias".
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

// Uniform in +-1/sqrt(in), weight first, then bias.
LinearLayer MakeLinear(int64_t in, int64_t out, bool use_bias, at::Generator& generator);

// float32, normal with the deviation 0.02: VISSL's trunc_normal_, from the inverse of the distribution. One draw of
// 2^24 is there at its bound of -2, 100 deviations from the others; here it is in the tail.
at::Tensor TruncatedNormal(at::IntArrayRef sizes, at::Generator& generator);

// Weights from TruncatedNormal, the bias zero: the linear layers of transformers.
LinearLayer MakeNormalLinear(int64_t in, int64_t out, bool use_bias, at::Generator& generator);

// Convolution, weights channels-last in memory.
struct ConvLayer {
  at::Tensor weight;  // [out, in / groups, kernel, kernel]
  at::Tensor bias;    // [out]; undefined without bias
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;

  at::Tensor Forward(const at::Tensor& input) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

enum class ConvInit {
  kKaimingUniform,  // uniform in +-1/sqrt(fan_in): the layer's own default
  kKaimingFanOut,   // normal with variance 2 / fan_out: torchvision's ResNet
};

struct ConvShape {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t groups = 1;
};

// Padding kernel / 2, no bias.
ConvLayer MakeConv(const ConvShape& shape, ConvInit init, at::Generator& generator);

// Batch normalisation over all dimensions but the second. Statistics of training are those of each call: of this rank's
// values, or of all ranks of a group, which then call the same layers in the same order (rank_moments.h).
struct BatchNormLayer {
  at::Tensor weight;               // [C]
  at::Tensor bias;                 // [C]
  at::Tensor running_mean;         // [C]
  at::Tensor running_var;          // [C]
  at::Tensor num_batches_tracked;  // [] int64
  double eps = 1e-5;
  double momentum = 0.1;
  std::shared_ptr<Communicator> group = nullptr;  // null: this rank alone

  // input: [N, C] or [N, C, H, W]. Collective in training with a group, and its backward, too.
  at::Tensor Forward(const at::Tensor& input, NormMode mode) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

BatchNormLayer MakeBatchNorm(int64_t channels, double eps = 1e-5, double momentum = 0.1);

// Group normalisation (arXiv 1803.08494): statistics of each sample over groups of channels. Training and evaluation
// are the same.
struct GroupNormLayer {
  at::Tensor weight;  // [C]
  at::Tensor bias;    // [C]
  int64_t groups = 1;
  double eps = 1e-5;

  // input: [N, C, H, W].
  at::Tensor Forward(const at::Tensor& input) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

// channels is a multiple of groups.
GroupNormLayer MakeGroupNorm(int64_t channels, int64_t groups);

}  // namespace ssl

#endif  // SSL_MODELS_LAYERS_H_
