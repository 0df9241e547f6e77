// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ssl/models/every_nth_pixel.h"
#include "ssl/models/linear_product.h"
#include "ssl/models/rank_moments.h"
#include "ssl/models/stem_conv.h"
#include "ssl/models/sync_batch_norm.h"
#include "ssl/models/winograd_conv.h"

namespace ssl {
namespace {

// On a map of at most this many pixels most taps of a 3x3 kernel meet padding only, and convolution kernels run far
// below a matrix product's speed: there the convolution is written as the matrix that it is. bench_forward_backward
// (whose last stage has such maps) takes about a quarter less time in float32, a third less in bfloat16.
constexpr int64_t kMatrixMapArea = 4;

int64_t OutputSide(const ConvLayer& layer, int64_t side) {
  return (side + 2 * layer.padding - layer.weight.size(2)) / layer.stride + 1;
}

bool RunsAsMatrix(const ConvLayer& layer, const at::Tensor& input) {
  return layer.groups == 1 && layer.weight.size(2) > 1 && !layer.bias.defined() &&
         input.size(2) * input.size(3) <= kMatrixMapArea && input.is_cpu();
}

// For each pair (output pixel, input pixel), in this order, the tap of the kernel between them; num_taps for none.
std::vector<int64_t> TapsBetweenPixels(const ConvLayer& layer, at::IntArrayRef in, at::IntArrayRef out) {
  const int64_t kernel = layer.weight.size(2);
  std::vector<int64_t> taps;
  for (int64_t out_pixel = 0; out_pixel < out[0] * out[1]; ++out_pixel) {
    for (int64_t in_pixel = 0; in_pixel < in[0] * in[1]; ++in_pixel) {
      const int64_t y = in_pixel / in[1] - out_pixel / out[1] * layer.stride + layer.padding;
      const int64_t x = in_pixel % in[1] - out_pixel % out[1] * layer.stride + layer.padding;
      const bool meets = y >= 0 && y < kernel && x >= 0 && x < kernel;
      taps.push_back(meets ? y * kernel + x : kernel * kernel);
    }
  }
  return taps;
}

// input: [N, C, h, w]; returns what conv2d does, channels-last.
at::Tensor ForwardAsMatrix(const ConvLayer& layer, const at::Tensor& input) {
  const int64_t kernel = layer.weight.size(2);
  const int64_t out_channels = layer.weight.size(0);
  const int64_t channels = layer.weight.size(1);
  const std::array<int64_t, 2> in = {input.size(2), input.size(3)};
  const std::array<int64_t, 2> out = {OutputSide(layer, in[0]), OutputSide(layer, in[1])};
  const int64_t in_pixels = in[0] * in[1];
  const int64_t out_pixels = out[0] * out[1];

  const std::vector<int64_t> taps = TapsBetweenPixels(layer, in, out);
  at::Tensor kernels = layer.weight.permute({0, 2, 3, 1}).reshape({out_channels, kernel * kernel, channels});
  if (std::find(taps.begin(), taps.end(), kernel * kernel) != taps.end()) {
    kernels = at::constant_pad_nd(kernels, {0, 0, 0, 1});
  }
  const at::Tensor matrix = at::index_select(kernels, 1, at::tensor(taps, at::kLong))
                                .view({out_channels, out_pixels, in_pixels * channels})
                                .transpose(0, 1)
                                .reshape({out_pixels * out_channels, in_pixels * channels});
  const at::Tensor pixels = input.permute({0, 2, 3, 1}).reshape({input.size(0), in_pixels * channels});
  return LinearProduct(pixels, matrix, /*bias=*/{})
      .view({input.size(0), out[0], out[1], out_channels})
      .permute({0, 3, 1, 2});
}

// The weights' gradient of a 1x1 convolution with stride 2 makes LibTorch 2.11 (its oneDNN) write past its memory, a
// crash now or a damaged heap later, when the map is float32, channels-last, has 2 to 15 channels (fewer than a vector
// register holds) and two even sides of at least 56 pixels; batch, output channels and threads do not matter. Such a
// convolution reads one pixel in stride^2 alone: taking those pixels first leaves a convolution without stride, which
// is right, and has the same values.
constexpr int64_t kVectorFloats = 16;

bool ReadsSinglePixels(const ConvLayer& layer, const at::Tensor& input) {
  return layer.weight.size(2) == 1 && layer.stride > 1 && layer.padding == 0 && input.is_cpu();
}

bool ReadsSinglePixelsOfFewChannels(const ConvLayer& layer, const at::Tensor& input) {
  return ReadsSinglePixels(layer, input) && layer.weight.size(1) < kVectorFloats;
}

// oneDNN's gradients of a strided 1x1 convolution take several times as long as those of the matrix product that is
// left when its pixels are taken first.
bool IsLargeProductOfPixels(const ConvLayer& layer, const at::Tensor& input) {
  const int64_t pixels = input.numel() / std::max<int64_t>(1, input.size(1)) / (layer.stride * layer.stride);
  return ReadsSinglePixels(layer, input) && layer.groups == 1 &&
         IsLargeProduct(pixels, layer.weight.size(1), layer.weight.size(0));
}

at::Tensor ForwardAsProductOfPixels(const ConvLayer& layer, const at::Tensor& input) {
  const at::Tensor read = EveryNthPixel(input, layer.stride);
  const at::Tensor pixels = read.permute({0, 2, 3, 1}).reshape({-1, read.size(1)});
  return LinearProduct(pixels, layer.weight.flatten(1), layer.bias)
      .view({read.size(0), read.size(2), read.size(3), layer.weight.size(0)})
      .permute({0, 3, 1, 2});
}

// On maps of at most this many pixels, and with a stride, most windows of a kernel have a border of padding, and there
// are few of them: one product for each, of the pixels that it has, takes half the time of oneDNN's convolution forward
// and backward (128 to 256 channels, 4x4 to 2x2 pixels, one thread; in bfloat16 less).
constexpr int64_t kWindowMapArea = 16;

// The pixels of a map that a window meets along one side: `count` from `begin` on, by the kernel's taps from `tap` on.
struct Overlap {
  int64_t begin;
  int64_t count;
  int64_t tap;
};

Overlap OverlapOf(const ConvLayer& layer, int64_t window, int64_t side) {
  const int64_t first = window * layer.stride - layer.padding;
  const int64_t begin = std::max<int64_t>(0, first);
  return {begin, std::min(side, first + layer.weight.size(2)) - begin, begin - first};
}

bool RunsByWindows(const ConvLayer& layer, const at::Tensor& input) {
  const int64_t kernel = layer.weight.size(2);
  return layer.groups == 1 && kernel > 1 && layer.stride > 1 && layer.padding < kernel && !layer.bias.defined() &&
         input.is_cpu() && input.size(2) * input.size(3) <= kWindowMapArea &&
         OutputSide(layer, input.size(2)) * OutputSide(layer, input.size(3)) <= kMatrixMapArea &&
         IsLargeProduct(input.size(0), input.size(1), layer.weight.size(0));
}

at::Tensor ForwardByWindows(const ConvLayer& layer, const at::Tensor& input) {
  const int64_t height = OutputSide(layer, input.size(2));
  const int64_t width = OutputSide(layer, input.size(3));
  const at::Tensor pixels = input.permute({0, 2, 3, 1});
  const at::Tensor taps = layer.weight.permute({0, 2, 3, 1});
  std::vector<at::Tensor> products;
  for (int64_t window = 0; window < height * width; ++window) {
    const Overlap y = OverlapOf(layer, window / width, input.size(2));
    const Overlap x = OverlapOf(layer, window % width, input.size(3));
    products.push_back(LinearProduct(pixels.narrow(1, y.begin, y.count).narrow(2, x.begin, x.count).flatten(1),
                                     taps.narrow(1, y.tap, y.count).narrow(2, x.tap, x.count).flatten(1),
                                     /*bias=*/{}));
  }
  return at::stack(products, 1).view({input.size(0), height, width, layer.weight.size(0)}).permute({0, 3, 1, 2});
}

bool RunsByWinograd(const ConvLayer& layer, const at::Tensor& input) {
  return layer.padding == 1 && layer.groups == 1 && !layer.bias.defined() &&
         TakesWinograd(input, layer.weight, layer.stride);
}

bool RunsAsStem(const ConvLayer& layer, const at::Tensor& input) {
  return layer.stride == 2 && layer.padding == 3 && layer.groups == 1 && !layer.bias.defined() &&
         TakesStemConv(input, layer.weight);
}

at::Tensor ForwardOverRanks(const BatchNormLayer& layer, const at::Tensor& input, NormMode mode) {
  const ChannelMoments moments = MomentsOfPass(
      mode, [&input] { return MomentsOf(input); }, *layer.group);
  if (mode == NormMode::kTraining) {
    layer.num_batches_tracked.add_(1);
    MoveRunningStatistics(moments, layer.momentum, layer.running_mean, layer.running_var);
  }
  return NormalizeOverRanks(input, layer.weight, layer.bias, layer.eps, moments, layer.group);
}

// Throws, as torch.nn.functional.batch_norm does, where there is one value per channel to train on: every output would
// be the bias, and the unbiased variance is none.
void CheckHasValuesToNormalize(const BatchNormLayer& layer, const at::Tensor& input, NormMode mode) {
  const bool is_shared = layer.group != nullptr && layer.group->size() > 1;
  TORCH_CHECK_VALUE(mode == NormMode::kEvaluation || is_shared || input.numel() != input.size(1),
                    "Batch norm needs more than 1 value per channel in training, and a batch gives it ", input.sizes(),
                    "; config.DATA.TRAIN.DROP_LAST=True leaves out a last batch of 1 image");
}

}  // namespace

at::Generator MakeGenerator(int64_t seed) { return at::detail::createCPUGenerator(static_cast<uint64_t>(seed)); }

at::Tensor LinearLayer::Forward(const at::Tensor& input) const { return LinearProduct(input, weight, bias); }

void LinearLayer::List(const std::string& prefix, ModelTensors* tensors) const {
  tensors->push_back({prefix + "weight", weight, TensorRole::kWeight});
  if (bias.defined()) tensors->push_back({prefix + "bias", bias, TensorRole::kWeight});
}

LinearLayer MakeLinear(int64_t in, int64_t out, bool use_bias, at::Generator& generator) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(in));
  LinearLayer layer;
  layer.weight = at::empty({out, in}, at::kFloat).uniform_(-bound, bound, generator).requires_grad_();
  if (use_bias) layer.bias = at::empty({out}, at::kFloat).uniform_(-bound, bound, generator).requires_grad_();
  return layer;
}

at::Tensor TruncatedNormal(at::IntArrayRef sizes, at::Generator& generator) {
  constexpr double kDeviation = 0.02;
  // One draw of 2^24 is -1, where the inverse is infinite; the others are 2^-23 and more from both ends.
  constexpr double kLeast = 0x1p-24 - 1.0;
  at::Tensor quantiles = at::empty(sizes, at::kFloat).uniform_(-1.0, 1.0, generator).clamp_min_(kLeast);
  return quantiles.erfinv_().mul_(kDeviation * std::sqrt(2.0));
}

LinearLayer MakeNormalLinear(int64_t in, int64_t out, bool use_bias, at::Generator& generator) {
  LinearLayer layer;
  layer.weight = TruncatedNormal({out, in}, generator).requires_grad_();
  if (use_bias) layer.bias = at::zeros({out}, at::kFloat).requires_grad_();
  return layer;
}

at::Tensor ConvLayer::Forward(const at::Tensor& input) const {
  if (RunsByWinograd(*this, input)) return WinogradConv(input, weight, stride);
  if (RunsAsStem(*this, input)) return StemConv(input, weight);
  if (RunsAsMatrix(*this, input)) return ForwardAsMatrix(*this, input);
  if (RunsByWindows(*this, input)) return ForwardByWindows(*this, input);
  if (IsLargeProductOfPixels(*this, input)) return ForwardAsProductOfPixels(*this, input);
  if (ReadsSinglePixelsOfFewChannels(*this, input)) {
    return at::conv2d(EveryNthPixel(input, stride), weight, bias, at::IntArrayRef({1, 1}), at::IntArrayRef({0, 0}),
                      /*dilation=*/{1, 1}, groups);
  }
  return at::conv2d(input, weight, bias, {stride, stride}, {padding, padding}, /*dilation=*/{1, 1}, groups);
}

void ConvLayer::List(const std::string& prefix, ModelTensors* tensors) const {
  tensors->push_back({prefix + "weight", weight, TensorRole::kWeight});
  if (bias.defined()) tensors->push_back({prefix + "bias", bias, TensorRole::kWeight});
}

ConvLayer MakeConv(const ConvShape& shape, ConvInit init, at::Generator& generator) {
  ConvLayer layer;
  layer.stride = shape.stride;
  layer.padding = shape.kernel / 2;
  layer.groups = shape.groups;
  const double area = static_cast<double>(shape.kernel * shape.kernel);
  at::Tensor weight = at::empty({shape.out, shape.in / shape.groups, shape.kernel, shape.kernel}, at::kFloat);
  if (init == ConvInit::kKaimingFanOut) {
    weight.normal_(0.0, std::sqrt(2.0 / (static_cast<double>(shape.out) * area)), generator);
  } else {
    const double bound = 1.0 / std::sqrt(static_cast<double>(weight.size(1)) * area);
    weight.uniform_(-bound, bound, generator);
  }
  layer.weight = weight.contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  return layer;
}

at::Tensor BatchNormLayer::Forward(const at::Tensor& input, NormMode mode) const {
  CheckHasValuesToNormalize(*this, input, mode);
  if (group != nullptr && mode != NormMode::kEvaluation) return ForwardOverRanks(*this, input, mode);
  if (mode == NormMode::kRecompute) {
    return at::batch_norm(input, weight, bias, /*running_mean=*/{}, /*running_var=*/{}, /*training=*/true, momentum,
                          eps,
                          /*cudnn_enabled=*/true);
  }
  const bool training = mode == NormMode::kTraining;
  if (training) num_batches_tracked.add_(1);
  return at::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                        /*cudnn_enabled=*/true);
}

void BatchNormLayer::List(const std::string& prefix, ModelTensors* tensors) const {
  tensors->push_back({prefix + "weight", weight, TensorRole::kNorm});
  tensors->push_back({prefix + "bias", bias, TensorRole::kNorm});
  tensors->push_back({prefix + "running_mean", running_mean, TensorRole::kBuffer});
  tensors->push_back({prefix + "running_var", running_var, TensorRole::kBuffer});
  tensors->push_back({prefix + "num_batches_tracked", num_batches_tracked, TensorRole::kBuffer});
}

BatchNormLayer MakeBatchNorm(int64_t channels, double eps, double momentum) {
  BatchNormLayer layer;
  layer.weight = at::ones({channels}, at::kFloat).requires_grad_();
  layer.bias = at::zeros({channels}, at::kFloat).requires_grad_();
  layer.running_mean = at::zeros({channels}, at::kFloat);
  layer.running_var = at::ones({channels}, at::kFloat);
  layer.num_batches_tracked = at::zeros({}, at::kLong);
  layer.eps = eps;
  layer.momentum = momentum;
  return layer;
}

at::Tensor GroupNormLayer::Forward(const at::Tensor& input) const {
  return at::group_norm(input, groups, weight, bias, eps, /*cudnn_enabled=*/true);
}

void GroupNormLayer::List(const std::string& prefix, ModelTensors* tensors) const {
  tensors->push_back({prefix + "weight", weight, TensorRole::kNorm});
  tensors->push_back({prefix + "bias", bias, TensorRole::kNorm});
}

GroupNormLayer MakeGroupNorm(int64_t channels, int64_t groups) {
  GroupNormLayer layer;
  layer.weight = at::ones({channels}, at::kFloat).requires_grad_();
  layer.bias = at::zeros({channels}, at::kFloat).requires_grad_();
  layer.groups = groups;
  return layer;
}

}  // namespace ssl
