// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/winograd_conv.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ssl/core/algorithm_scope.h"
#include "ssl/core/autocast.h"
#include "ssl/core/parallel_for.h"
#include "ssl/models/winograd_kernels.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kFewestTiles = 64;
// Transformed tiles of a block, before and behind the products, stay in a core's second cache.
constexpr int64_t kBlockFloats = 1 << 17;
constexpr int64_t kMostBlockGroups = 8;
// Transformed kernels that are larger than that cache come from the next one for each block: then it has more tiles.
constexpr int64_t kCachedKernelFloats = 1 << 18;
constexpr int64_t kStreamingBlockGroups = 4;
// The gradient of kernels is summed over parts of the tiles, so that several threads have something to do, and over
// a panel of channels on either side at a time, whose sums then stay in the second cache.
constexpr int64_t kPartTiles = 1024;
constexpr int64_t kMostParts = 8;
constexpr int64_t kPanelChannels = 64;

int64_t CeilDivide(int64_t value, int64_t by) { return (value + by - 1) / by; }

WinogradMap MapOf(const at::Tensor& tensor) { return {tensor.size(2), tensor.size(3), tensor.size(1)}; }

int64_t TilesOf(const WinogradForm& form, const at::Tensor& output) {
  return output.size(0) * form.TilesOf(MapOf(output));
}

// What a convolution makes of `side` pixels.
int64_t OutputSide(int64_t side, int64_t stride) { return (side + stride - 1) / stride; }

// How often taps meet pixels of a side, not padding.
int64_t TapsOfSide(int64_t side, int64_t stride) {
  const int64_t outputs = OutputSide(side, stride);
  const bool last_hangs_over = (outputs - 1) * stride + 1 == side;
  return 3 * outputs - 1 - (last_hangs_over ? 1 : 0);
}

// The one with the fewest products of those with kFewestTiles or more, and fewer than the definition; else null.
const WinogradForm* FindForm(const at::Tensor& input, int64_t stride) {
  const WinogradMap map = {OutputSide(input.size(2), stride), OutputSide(input.size(3), stride), input.size(1)};
  const WinogradForm* const whole_maps = &kWinogradForms[kWholeMapsForm];
  const WinogradForm* best = nullptr;
  int64_t fewest = TapsOfSide(input.size(2), stride) * TapsOfSide(input.size(3), stride);
  const auto consider = [&](const WinogradForm& form) {
    const int64_t tiles = form.TilesOf(map);
    const bool fits = &form != whole_maps || (map.height == 2 && map.width == 2);
    if (!fits || tiles * form.positions >= fewest || input.size(0) * tiles < kFewestTiles) return;
    best = &form;
    fewest = tiles * form.positions;
  };
  if (stride == 1) std::for_each(kWinogradForms.begin(), kWinogradForms.end(), consider);
  if (stride == 2) std::for_each(kStridedWinogradForms.begin(), kStridedWinogradForms.end(), consider);
  return best;
}

int64_t BlockGroups(const WinogradForm& form, int64_t in, int64_t out) {
  if (form.KernelFloats(in, out) > kCachedKernelFloats) return kStreamingBlockGroups;
  return std::clamp<int64_t>(kBlockFloats / form.TileFloats(1, in + out), 1, kMostBlockGroups);
}

at::Tensor Scratch(int64_t floats) { return at::empty({floats}, at::kFloat); }

// Calls body for all blocks of `size` tiles from `first` to `last`.
template <typename Body>
void ForBlocks(int64_t first, int64_t last, int64_t size, const Body& body) {
  for (int64_t tile = first; tile < last; tile += size) body(WinogradTiles{tile, std::min(size, last - tile)});
}

// [out, 3, 3, in], without a copy of what is channels-last.
at::Tensor TapsOf(const at::Tensor& weight) { return weight.permute({0, 2, 3, 1}).contiguous(); }

at::Tensor EmptyMaps(int64_t batch, int64_t channels, int64_t height, int64_t width) {
  return at::empty({batch, channels, height, width},
                   at::TensorOptions().dtype(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast));
}

// The transformed kernels of a pass that reads `channels`.
at::Tensor Kernels(const WinogradForm& form, const WinogradPass& pass, const at::Tensor& weight, int64_t channels) {
  const int64_t out = weight.size(0);
  const int64_t in = weight.size(1);
  const at::Tensor taps = TapsOf(weight);
  const at::Tensor u = Scratch(form.KernelFloats(in, out));
  ParallelFor(channels / kWinogradChannels, [&](int64_t first, int64_t last) {
    const WinogradSlice rows = {first * kWinogradChannels, (last - first) * kWinogradChannels};
    pass.transform_kernels(taps.data_ptr<float>(), out, in, rows, u.data_ptr<float>());
  });
  return u;
}

// Writes output, [N, out, h, w], from maps of `tiles` tiles, both channels-last.
void RunPass(const WinogradForm& form, const WinogradPass& pass, const at::Tensor& maps, const at::Tensor& weight,
             int64_t tiles, const at::Tensor& output) {
  const int64_t in = maps.size(1);
  const int64_t out = output.size(1);
  const at::Tensor u = Kernels(form, pass, weight, in);
  const int64_t groups = BlockGroups(form, in, out);
  const int64_t block_tiles = groups * kWinogradGroup;
  ParallelFor(CeilDivide(tiles, block_tiles), [&](int64_t first, int64_t last) {
    const at::Tensor scratch = Scratch(form.TileFloats(groups, in + out));
    float* const v = scratch.data_ptr<float>();
    float* const m = v + form.TileFloats(groups, in);
    ForBlocks(first * block_tiles, std::min(tiles, last * block_tiles), block_tiles, [&](WinogradTiles block) {
      pass.transform_input(maps.data_ptr<float>(), MapOf(maps), block, {0, in}, v);
      MultiplyTiles(form.positions, v, u.data_ptr<float>(), block.Groups(), in, out, m);
      pass.transform_output(m, MapOf(output), block, output.data_ptr<float>());
    });
  });
}

at::Tensor Convolve(const at::Tensor& input, const at::Tensor& weight, int64_t stride) {
  const WinogradForm& form = *FindForm(input, stride);
  const at::Tensor maps = input.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor output =
      EmptyMaps(input.size(0), weight.size(0), OutputSide(input.size(2), stride), OutputSide(input.size(3), stride));
  RunPass(form, form.forward, maps, weight, TilesOf(form, output), output);
  return output;
}

// gradient: of the output.
at::Tensor InputGradient(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& gradient,
                         int64_t stride) {
  const WinogradForm& form = *FindForm(input, stride);
  const at::Tensor maps = gradient.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor of_input = EmptyMaps(input.size(0), input.size(1), input.size(2), input.size(3));
  RunPass(form, form.input_gradient, maps, weight, TilesOf(form, maps), of_input);
  return of_input;
}

// Sums over the tiles of a part, for the channels of two panels.
class KernelGradient {
 public:
  KernelGradient(const at::Tensor& input, const at::Tensor& gradient, int64_t stride)
      : input_(input.contiguous(at::MemoryFormat::ChannelsLast)),
        gradient_(gradient.contiguous(at::MemoryFormat::ChannelsLast)),
        form_(*FindForm(input_, stride)),
        in_(input.size(1)),
        out_(gradient.size(1)),
        tiles_(TilesOf(form_, gradient_)),
        groups_(BlockGroups(form_, kPanelChannels, kPanelChannels)) {}

  // [out, 9, in].
  at::Tensor Sum() const {
    const int64_t parts = std::clamp<int64_t>(tiles_ / kPartTiles, 1, kMostParts);
    const int64_t in_panels = CeilDivide(in_, kPanelChannels);
    const int64_t panels = in_panels * CeilDivide(out_, kPanelChannels);
    std::vector<at::Tensor> sums;
    for (int64_t part = 0; part < parts; ++part) sums.push_back(at::empty({out_, 9, in_}, at::kFloat));
    ParallelFor(parts * panels, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t part = task / panels;
        SumPart(tiles_ * part / parts, tiles_ * (part + 1) / parts, Panel(task % in_panels, in_),
                Panel(task % panels / in_panels, out_), sums[part].data_ptr<float>());
      }
    });
    for (int64_t part = 1; part < parts; ++part) sums[0].add_(sums[part]);
    return sums[0];
  }

 private:
  static WinogradSlice Panel(int64_t index, int64_t channels) {
    return {index * kPanelChannels, std::min(kPanelChannels, channels - index * kPanelChannels)};
  }

  void SumPart(int64_t first, int64_t last, WinogradSlice in, WinogradSlice out, float* weight) const {
    const at::Tensor scratch = Scratch(form_.TileFloats(groups_, in.count + out.count));
    float* const v = scratch.data_ptr<float>();
    float* const m = v + form_.TileFloats(groups_, in.count);
    const at::Tensor u = Scratch(form_.KernelFloats(in.count, out.count));
    std::fill_n(u.data_ptr<float>(), u.numel(), 0.0f);
    ForBlocks(first, last, groups_ * kWinogradGroup, [&](WinogradTiles block) {
      form_.forward.transform_input(input_.data_ptr<float>(), MapOf(input_), block, in, v);
      form_.transform_output_gradient(gradient_.data_ptr<float>(), MapOf(gradient_), block, out, m);
      AddTileProducts(form_.positions, m, v, block.Groups(), out.count, in.count, u.data_ptr<float>());
    });
    form_.transform_kernel_gradient(u.data_ptr<float>(), out, in, in_, weight);
  }

  const at::Tensor input_;
  const at::Tensor gradient_;
  const WinogradForm& form_;
  const int64_t in_;
  const int64_t out_;
  const int64_t tiles_;
  const int64_t groups_;
};

// By LibTorch's own convolution.
variable_list DifferentiableGradients(const variable_list& saved, const at::Tensor& gradient,
                                      const AutogradContext& context, int64_t stride) {
  constexpr int64_t kOne[] = {1, 1};
  constexpr int64_t kNone[] = {0, 0};
  const int64_t strides[] = {stride, stride};
  auto [input_gradient, weight_gradient, bias_gradient] = at::convolution_backward(
      gradient, saved[0], saved[1], /*bias_sizes=*/at::nullopt, strides, /*padding=*/kOne, /*dilation=*/kOne,
      /*transposed=*/false, /*output_padding=*/kNone, /*groups=*/1,
      {context.needs_input_grad(0), context.needs_input_grad(1), false});
  return {input_gradient, weight_gradient, at::Tensor()};
}

struct WinogradConvolution : public torch::autograd::Function<WinogradConvolution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            int64_t stride) {
    context->save_for_backward({input, weight});
    context->saved_data["stride"] = stride;
    return Convolve(input, weight, stride);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const int64_t stride = context->saved_data["stride"].toInt();
    const at::Tensor& weight = saved[1];
    // A gradient that is differentiated itself, as a penalty on gradients is: these loops leave no graph behind.
    if (at::GradMode::is_enabled()) return DifferentiableGradients(saved, gradients[0], *context, stride);
    at::Tensor input_gradient;
    at::Tensor weight_gradient;
    if (context->needs_input_grad(0)) input_gradient = InputGradient(saved[0], weight, gradients[0], stride);
    if (context->needs_input_grad(1)) {
      weight_gradient = KernelGradient(saved[0], gradients[0], stride)
                            .Sum()
                            .view({weight.size(0), 3, 3, weight.size(1)})
                            .permute({0, 3, 1, 2});
    }
    return {input_gradient, weight_gradient, at::Tensor()};
  }
};

bool IsFloat(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.scalar_type() == at::kFloat; }

bool IsWholeChannels(int64_t channels) {
  return channels % kWinogradChannels == 0 && channels <= kMostWinogradChannels;
}

}  // namespace

bool TakesWinograd(const at::Tensor& input, const at::Tensor& weight, int64_t stride) {
  return IsFloat(input) && IsFloat(weight) && input.dim() == 4 && weight.size(2) == 3 && weight.size(3) == 3 &&
         weight.size(1) == input.size(1) && IsWholeChannels(weight.size(0)) && IsWholeChannels(weight.size(1)) &&
         FindForm(input, stride) != nullptr && CurrentAutocast() == Autocast::kOff && !HasIeeeConvolutions() &&
         HasWinogradKernels();
}

at::Tensor WinogradConv(const at::Tensor& input, const at::Tensor& weight, int64_t stride) {
  const std::vector<c10::IValue> inputs = {input, weight};
  RECORD_FUNCTION("ssl::winograd_convolution", inputs);
  const at::Tensor output = WinogradConvolution::apply(input, weight, stride);
  if (guard.needsOutputs()) guard.setOutputs(std::vector<c10::IValue>{output});
  return output;
}

}  // namespace ssl
