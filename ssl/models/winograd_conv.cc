// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/winograd_conv.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ssl/core/autocast.h"
#include "ssl/models/winograd_kernels.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kFewestTiles = 64;
// Transformed tiles of a block, before and behind the products, stay in a core's second cache.
constexpr int64_t kBlockFloats = 1 << 17;
constexpr int64_t kMostBlockGroups = 8;
// The gradient of kernels is summed over parts of the tiles, so that several threads have something to do, and over
// output channels of a panel at a time, whose sums then stay in the second cache.
constexpr int64_t kPartTiles = 1024;
constexpr int64_t kMostParts = 8;
constexpr int64_t kPanelChannels = 64;

int64_t CeilDivide(int64_t value, int64_t by) { return (value + by - 1) / by; }

WinogradMap MapOf(const at::Tensor& tensor) { return {tensor.size(2), tensor.size(3), tensor.size(1)}; }

int64_t BlockGroups(int64_t in, int64_t out) {
  return std::clamp<int64_t>(kBlockFloats / WinogradTileFloats(1, in + out), 1, kMostBlockGroups);
}

at::Tensor Scratch(int64_t floats) { return at::empty({floats}, at::kFloat); }

// Calls body for all blocks of `size` tiles from `first` to `last`.
template <typename Body>
void ForBlocks(int64_t first, int64_t last, int64_t size, const Body& body) {
  for (int64_t tile = first; tile < last; tile += size) body(WinogradTiles{tile, std::min(size, last - tile)});
}

// input: [N, in, h, w]; kernels: [9, in, out], `rotated` by half a turn; returns [N, out, h, w].
at::Tensor Convolve(const at::Tensor& input, const at::Tensor& kernels, bool rotated) {
  const at::Tensor maps = input.contiguous(at::MemoryFormat::ChannelsLast);
  const int64_t in = kernels.size(1);
  const int64_t out = kernels.size(2);
  const at::Tensor u = Scratch(WinogradKernelFloats(in, out));
  TransformKernels(kernels.data_ptr<float>(), rotated, in, out, u.data_ptr<float>());
  const at::Tensor output = at::empty({maps.size(0), out, maps.size(2), maps.size(3)},
                                      maps.options().memory_format(at::MemoryFormat::ChannelsLast));
  const int64_t tiles = maps.size(0) * MapOf(maps).TilesPerMap();
  const int64_t groups = BlockGroups(in, out);
  const int64_t block_tiles = groups * kWinogradGroup;
  at::parallel_for(0, CeilDivide(tiles, block_tiles), 1, [&](int64_t first, int64_t last) {
    const at::Tensor scratch = Scratch(WinogradTileFloats(groups, in + out));
    float* const v = scratch.data_ptr<float>();
    float* const m = v + WinogradTileFloats(groups, in);
    ForBlocks(first * block_tiles, std::min(tiles, last * block_tiles), block_tiles, [&](WinogradTiles block) {
      TransformInput(maps.data_ptr<float>(), MapOf(maps), block, v);
      MultiplyTiles(v, u.data_ptr<float>(), block.Groups(), in, out, m);
      TransformOutput(m, MapOf(output), block, output.data_ptr<float>());
    });
  });
  return output;
}

// Sums over the tiles of a part, for the output channels of a panel.
class KernelGradient {
 public:
  KernelGradient(const at::Tensor& input, const at::Tensor& gradient)
      : input_(input.contiguous(at::MemoryFormat::ChannelsLast)),
        gradient_(gradient.contiguous(at::MemoryFormat::ChannelsLast)),
        in_(input.size(1)),
        out_(gradient.size(1)),
        tiles_(input.size(0) * MapOf(input).TilesPerMap()),
        groups_(BlockGroups(in_, kPanelChannels)) {}

  // [9, in, out].
  at::Tensor Sum() const {
    const int64_t parts = std::clamp<int64_t>(tiles_ / kPartTiles, 1, kMostParts);
    const int64_t panels = CeilDivide(out_, kPanelChannels);
    std::vector<at::Tensor> sums;
    for (int64_t part = 0; part < parts; ++part) sums.push_back(at::empty({9, in_, out_}, at::kFloat));
    at::parallel_for(0, parts * panels, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t part = task / panels;
        const int64_t channel = task % panels * kPanelChannels;
        SumPart(tiles_ * part / parts, tiles_ * (part + 1) / parts, {channel, std::min(kPanelChannels, out_ - channel)},
                sums[part].data_ptr<float>());
      }
    });
    for (int64_t part = 1; part < parts; ++part) sums[0].add_(sums[part]);
    return sums[0];
  }

 private:
  void SumPart(int64_t first, int64_t last, WinogradSlice panel, float* kernels) const {
    const at::Tensor scratch = Scratch(WinogradTileFloats(groups_, in_ + panel.count));
    float* const v = scratch.data_ptr<float>();
    float* const m = v + WinogradTileFloats(groups_, in_);
    const at::Tensor u = Scratch(WinogradKernelFloats(in_, panel.count));
    std::fill_n(u.data_ptr<float>(), u.numel(), 0.0f);
    ForBlocks(first, last, groups_ * kWinogradGroup, [&](WinogradTiles block) {
      TransformInput(input_.data_ptr<float>(), MapOf(input_), block, v);
      TransformOutputGradient(gradient_.data_ptr<float>(), MapOf(gradient_), block, panel, m);
      AddTileProducts(v, m, block.Groups(), in_, panel.count, u.data_ptr<float>());
    });
    TransformKernelGradient(u.data_ptr<float>(), in_, out_, panel, kernels);
  }

  const at::Tensor input_;
  const at::Tensor gradient_;
  const int64_t in_;
  const int64_t out_;
  const int64_t tiles_;
  const int64_t groups_;
};

// By LibTorch's own convolution.
variable_list DifferentiableGradients(const variable_list& saved, const at::Tensor& gradient,
                                      const AutogradContext& context) {
  constexpr int64_t kOne[] = {1, 1};
  constexpr int64_t kNone[] = {0, 0};
  auto [input_gradient, weight_gradient, bias_gradient] = at::convolution_backward(
      gradient, saved[0], saved[1], /*bias_sizes=*/at::nullopt, /*stride=*/kOne, /*padding=*/kOne, /*dilation=*/kOne,
      /*transposed=*/false, /*output_padding=*/kNone, /*groups=*/1,
      {context.needs_input_grad(0), context.needs_input_grad(1), false});
  return {input_gradient, weight_gradient};
}

struct WinogradConvolution : public torch::autograd::Function<WinogradConvolution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight) {
    context->save_for_backward({input, weight});
    const at::Tensor kernels = weight.permute({2, 3, 1, 0}).contiguous().view({9, weight.size(1), weight.size(0)});
    return Convolve(input, kernels, /*rotated=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    // A gradient that is differentiated itself, as a penalty on gradients is: these loops leave no graph behind.
    if (at::GradMode::is_enabled()) return DifferentiableGradients(saved, gradients[0], *context);
    at::Tensor input_gradient;
    at::Tensor weight_gradient;
    if (context->needs_input_grad(0)) {
      const at::Tensor kernels = weight.permute({2, 3, 0, 1}).contiguous().view({9, weight.size(0), weight.size(1)});
      input_gradient = Convolve(gradients[0], kernels, /*rotated=*/true);
    }
    if (context->needs_input_grad(1)) {
      weight_gradient = KernelGradient(saved[0], gradients[0])
                            .Sum()
                            .view({3, 3, weight.size(1), weight.size(0)})
                            .permute({3, 2, 0, 1})
                            .contiguous(at::MemoryFormat::ChannelsLast);
    }
    return {input_gradient, weight_gradient};
  }
};

bool IsFloat(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.scalar_type() == at::kFloat; }

bool IsWholeChannels(int64_t channels) {
  return channels % kWinogradChannels == 0 && channels <= kMostWinogradChannels;
}

}  // namespace

bool TakesWinograd(const at::Tensor& input, const at::Tensor& weight) {
  return IsFloat(input) && IsFloat(weight) && input.dim() == 4 && weight.size(2) == 3 && weight.size(3) == 3 &&
         weight.size(1) == input.size(1) && IsWholeChannels(weight.size(0)) && IsWholeChannels(weight.size(1)) &&
         input.size(0) * MapOf(input).TilesPerMap() >= kFewestTiles && CurrentAutocast() == Autocast::kOff &&
         HasWinogradKernels();
}

at::Tensor WinogradConv(const at::Tensor& input, const at::Tensor& weight) {
  const std::vector<c10::IValue> inputs = {input, weight};
  RECORD_FUNCTION("ssl::winograd_convolution", inputs);
  const at::Tensor output = WinogradConvolution::apply(input, weight);
  if (guard.needsOutputs()) guard.setOutputs(std::vector<c10::IValue>{output});
  return output;
}

}  // namespace ssl
