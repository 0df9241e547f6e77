// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/stem_conv.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ssl/core/algorithm_scope.h"
#include "ssl/core/autocast.h"
#include "ssl/core/parallel_for.h"
#include "ssl/models/stem_kernels.h"
#include "ssl/models/winograd_kernels.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kPadding = 3;
constexpr int64_t kFewestTiles = 64;
// Transformed tiles of a block, before and behind the products, stay in a core's second cache.
constexpr int64_t kBlockFloats = 1 << 17;
// Maps are folded so many at a time that few groups of their tiles are filled up with zeros.
constexpr int64_t kFoldedTiles = 192;
// The gradient of the kernels is summed over parts of the batch, so that several threads have something to do.
constexpr int64_t kPartTiles = 1024;
constexpr int64_t kMostParts = 16;

int64_t CeilDivide(int64_t value, int64_t by) { return (value + by - 1) / by; }

StemFold FoldOf(const at::Tensor& input) { return {CeilDivide(input.size(2), 2), CeilDivide(input.size(3), 2)}; }

at::Tensor Scratch(int64_t floats) { return at::empty({floats}, at::kFloat); }
void Clear(const at::Tensor& floats) { std::fill_n(floats.data_ptr<float>(), floats.numel(), 0.0f); }

// A batch of images, folded some at a time.
class Images {
 public:
  Images(const at::Tensor& input, int64_t out)
      : input_(input),
        fold_(FoldOf(input)),
        out_(out),
        maps_(std::max<int64_t>(1, kFoldedTiles / fold_.Tiles())),
        groups_(std::max<int64_t>(1, kBlockFloats / (StemTileFloats(1) + ProductFloats(1)))) {}

  WinogradMap OutputMap() const { return {fold_.height, fold_.width, out_}; }
  int64_t ProductFloats(int64_t groups) const { return groups * kStemPositions * kWinogradGroup * out_; }
  int64_t tiles() const { return input_.size(0) * fold_.Tiles(); }
  int64_t BlockGroups() const { return groups_; }

  // How often images are folded.
  int64_t Folds() const { return CeilDivide(input_.size(0), maps_); }

  // Calls body(tiles, v) for all blocks of the folds from `first` to `last`. tiles: of the whole batch.
  template <typename Body>
  void ForBlocks(int64_t first, int64_t last, const Body& body) const {
    const at::Tensor folded = Scratch(maps_ * fold_.Floats());
    Clear(folded);
    const at::Tensor v = Scratch(StemTileFloats(groups_));
    for (int64_t i = first; i < last; ++i) {
      const int64_t first_map = i * maps_;
      const int64_t maps = std::min(maps_, input_.size(0) - first_map);
      for (int64_t map = 0; map < maps; ++map) {
        FoldImage(ImageAt(first_map + map), fold_, folded.data_ptr<float>() + map * fold_.Floats());
      }
      for (int64_t tile = 0; tile < maps * fold_.Tiles(); tile += groups_ * kWinogradGroup) {
        const int64_t count = std::min(groups_ * kWinogradGroup, maps * fold_.Tiles() - tile);
        TransformStemInput(folded.data_ptr<float>(), fold_, {tile, count}, v.data_ptr<float>());
        body(WinogradTiles{first_map * fold_.Tiles() + tile, count}, v.data_ptr<float>());
      }
    }
  }

 private:
  StemImage ImageAt(int64_t index) const {
    return {input_.data_ptr<float>() + index * input_.stride(0),
            input_.size(2),
            input_.size(3),
            {input_.stride(1), input_.stride(2), input_.stride(3)}};
  }

  const at::Tensor& input_;
  const StemFold fold_;
  const int64_t out_;
  const int64_t maps_;
  const int64_t groups_;
};

at::Tensor Convolve(const at::Tensor& input, const at::Tensor& weight) {
  const int64_t out = weight.size(0);
  const at::Tensor kernels = weight.contiguous();
  const at::Tensor u = Scratch(StemKernelFloats(out));
  TransformStemKernels(kernels.data_ptr<float>(), out, u.data_ptr<float>());
  const Images images(input, out);
  const at::Tensor output =
      at::empty({input.size(0), out, images.OutputMap().height, images.OutputMap().width},
                at::TensorOptions().dtype(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast));
  ParallelFor(images.Folds(), [&](int64_t first, int64_t last) {
    const at::Tensor m = Scratch(images.ProductFloats(images.BlockGroups()));
    images.ForBlocks(first, last, [&](WinogradTiles tiles, const float* v) {
      MultiplyStemTiles(v, u.data_ptr<float>(), tiles.Groups(), out, m.data_ptr<float>());
      TransformStemOutput(m.data_ptr<float>(), images.OutputMap(), tiles, output.data_ptr<float>());
    });
  });
  return output;
}

// gradient: of the output, channels-last.
at::Tensor WeightGradient(const at::Tensor& input, const at::Tensor& gradient) {
  const int64_t out = gradient.size(1);
  const Images images(input, out);
  const int64_t parts = std::clamp<int64_t>(images.tiles() / kPartTiles, 1, std::min(kMostParts, images.Folds()));
  const at::Tensor sums = Scratch(parts * StemKernelFloats(out));
  Clear(sums);
  ParallelFor(parts, [&](int64_t first, int64_t last) {
    const at::Tensor m = Scratch(images.ProductFloats(images.BlockGroups()));
    for (int64_t part = first; part < last; ++part) {
      float* const u = sums.data_ptr<float>() + part * StemKernelFloats(out);
      images.ForBlocks(
          images.Folds() * part / parts, images.Folds() * (part + 1) / parts, [&](WinogradTiles tiles, const float* v) {
            TransformStemOutputGradient(gradient.data_ptr<float>(), images.OutputMap(), tiles, m.data_ptr<float>());
            AddStemProducts(v, m.data_ptr<float>(), tiles.Groups(), out, u);
          });
    }
  });
  const at::Tensor all = sums.view({parts, StemKernelFloats(out)});
  for (int64_t part = 1; part < parts; ++part) all[0].add_(all[part]);
  const at::Tensor weight = at::empty({out, kImageChannels, kStemKernel, kStemKernel}, at::kFloat);
  TransformStemGradient(sums.data_ptr<float>(), out, weight.data_ptr<float>());
  return weight;
}

// By LibTorch's own convolution.
variable_list OtherGradients(const variable_list& saved, const at::Tensor& gradient, std::array<bool, 3> which) {
  constexpr int64_t kStride[] = {2, 2};
  constexpr int64_t kPaddings[] = {kPadding, kPadding};
  constexpr int64_t kOne[] = {1, 1};
  constexpr int64_t kNone[] = {0, 0};
  auto [input_gradient, weight_gradient, bias_gradient] = at::convolution_backward(
      gradient, saved[0], saved[1], /*bias_sizes=*/at::nullopt, kStride, kPaddings, /*dilation=*/kOne,
      /*transposed=*/false, /*output_padding=*/kNone, /*groups=*/1, which);
  return {input_gradient, weight_gradient};
}

struct StemConvolution : public torch::autograd::Function<StemConvolution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight) {
    context->save_for_backward({input, weight});
    return Convolve(input, weight);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool needs_input = context->needs_input_grad(0);
    const bool needs_weight = context->needs_input_grad(1);
    // A gradient that is differentiated itself, as a penalty on gradients is: these loops leave no graph behind.
    if (at::GradMode::is_enabled()) return OtherGradients(saved, gradients[0], {needs_input, needs_weight, false});
    variable_list results(2);
    if (needs_input) results[0] = OtherGradients(saved, gradients[0], {true, false, false})[0];
    if (needs_weight) {
      results[1] = WeightGradient(saved[0], gradients[0].contiguous(at::MemoryFormat::ChannelsLast))
                       .contiguous(at::MemoryFormat::ChannelsLast);
    }
    return results;
  }
};

bool IsFloat(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.scalar_type() == at::kFloat; }

// How often taps meet pixels of a side, not padding.
int64_t TapsOfSide(int64_t side) {
  int64_t taps = 0;
  for (int64_t first = -kPadding; first + kPadding < side; first += 2) {
    taps += std::min(side, first + kStemKernel) - std::max<int64_t>(0, first);
  }
  return taps;
}

// On small maps most taps meet padding, which the definition leaves out.
bool HasFewerProducts(const at::Tensor& input) {
  const int64_t of_definition = kImageChannels * TapsOfSide(input.size(2)) * TapsOfSide(input.size(3));
  return FoldOf(input).Tiles() * kStemPositions * kFoldedChannels < of_definition;
}

bool HasStemSizes(const at::Tensor& input, const at::Tensor& weight) {
  const int64_t out = weight.size(0);
  return input.dim() == 4 && input.size(1) == kImageChannels && weight.size(1) == kImageChannels &&
         weight.size(2) == kStemKernel && weight.size(3) == kStemKernel && out % kWinogradChannels == 0 && out > 0 &&
         out <= kMostWinogradChannels && HasFewerProducts(input) &&
         input.size(0) * FoldOf(input).Tiles() >= kFewestTiles;
}

}  // namespace

bool TakesStemConv(const at::Tensor& input, const at::Tensor& weight) {
  return IsFloat(input) && IsFloat(weight) && HasStemSizes(input, weight) && CurrentAutocast() == Autocast::kOff &&
         !HasIeeeConvolutions() && HasWinogradKernels();
}

at::Tensor StemConv(const at::Tensor& input, const at::Tensor& weight) {
  const std::vector<c10::IValue> inputs = {input, weight};
  RECORD_FUNCTION("ssl::stem_convolution", inputs);
  const at::Tensor output = StemConvolution::apply(input, weight);
  if (guard.needsOutputs()) guard.setOutputs(std::vector<c10::IValue>{output});
  return output;
}

}  // namespace ssl
