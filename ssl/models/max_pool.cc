// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/max_pool.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "ssl/models/channel_kernels.h"
#include "ssl/models/map_rows.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kKernel = 3;
constexpr int64_t kStride = 2;
// Values of a map per task of the thread pool.
constexpr int64_t kTaskValues = 1 << 15;

// A map and its pooled one, both as lines: N * H of them, of W pixels each.
struct Lines {
  Lines(const at::Tensor& map_tensor, const at::Tensor& pooled_tensor)
      : map(map_tensor),
        pooled(pooled_tensor),
        height(map_tensor.size(2)),
        width(map_tensor.size(3)),
        pooled_height(pooled_tensor.size(2)),
        pooled_width(pooled_tensor.size(3)) {}

  int64_t channels() const { return map.channels(); }
  int64_t values() const { return width * channels(); }                // of a line of the map
  int64_t pooled_values() const { return pooled_width * channels(); }  // of a pooled line

  const MapRows map;
  const MapRows pooled;
  const int64_t height;
  const int64_t width;
  const int64_t pooled_height;
  const int64_t pooled_width;
};

// Of one task, each for one line.
struct Buffers {
  explicit Buffers(const Lines& lines)
      : line(static_cast<size_t>(lines.values())),
        pooled_line(static_cast<size_t>(lines.pooled_values())),
        taps(pooled_line.size()) {}

  std::vector<float> line;
  std::vector<float> pooled_line;
  std::vector<int32_t> taps;
};

// Calls body(line, buffers) for `count` lines, in parallel.
template <typename Body>
void ForLines(int64_t count, const Lines& lines, const Body& body) {
  at::parallel_for(0, count, std::max<int64_t>(1, kTaskValues / lines.values()), [&](int64_t begin, int64_t end) {
    Buffers buffers(lines);
    for (int64_t line = begin; line < end; ++line) body(line, buffers);
  });
}

// A pooled line, and the tap that each value comes from: 3 * row + column within its window. Rows outside of the map
// take no part; neither do columns, in MaxOfTaps.
void PoolLine(const Lines& lines, int64_t line, uint8_t* taps, Buffers& buffers) {
  const int64_t image = line / lines.pooled_height;
  const int64_t top = line % lines.pooled_height * kStride - 1;
  float* const best = lines.pooled.Target(line * lines.pooled_width, &buffers.pooled_line);
  std::fill_n(best, lines.pooled_values(), -std::numeric_limits<float>::infinity());
  std::fill(buffers.taps.begin(), buffers.taps.end(), 0);
  for (int64_t y = std::max<int64_t>(0, top); y < std::min(lines.height, top + kKernel); ++y) {
    const int64_t pixel = (image * lines.height + y) * lines.width;
    MaxOfTaps(lines.map.Read(pixel, lines.width, &buffers.line), lines.width, lines.channels(), lines.pooled_width,
              (y - top) * kKernel, best, buffers.taps.data());
  }
  lines.pooled.Store(best, line * lines.pooled_width, lines.pooled_width);
  std::copy(buffers.taps.begin(), buffers.taps.end(), taps + line * lines.pooled_values());
}

// A line of the map's gradient: from the one or two lines of windows that it lies in, in their order.
void SpreadLine(const Lines& lines, int64_t line, const uint8_t* taps, Buffers& buffers) {
  const int64_t image = line / lines.height;
  const int64_t y = line % lines.height;
  float* const sum = lines.map.Target(line * lines.width, &buffers.line);
  std::fill_n(sum, lines.values(), 0.0f);
  for (int64_t window = y / kStride; window <= std::min((y + 1) / kStride, lines.pooled_height - 1); ++window) {
    const int64_t pooled_line = image * lines.pooled_height + window;
    std::copy_n(taps + pooled_line * lines.pooled_values(), lines.pooled_values(), buffers.taps.begin());
    AddToTaps(lines.pooled.Read(pooled_line * lines.pooled_width, lines.pooled_width, &buffers.pooled_line),
              buffers.taps.data(), lines.width, lines.channels(), lines.pooled_width,
              (y - window * kStride + 1) * kKernel, sum);
  }
  lines.map.Store(sum, line * lines.width, lines.width);
}

struct MaxPoolFunction : public torch::autograd::Function<MaxPoolFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input) {
    RECORD_FUNCTION("ssl::max_pool", std::vector<c10::IValue>());
    const at::Tensor output =
        at::empty({input.size(0), input.size(1), (input.size(2) + 1) / kStride, (input.size(3) + 1) / kStride},
                  input.options().memory_format(at::MemoryFormat::ChannelsLast));
    const at::Tensor taps = at::empty({output.numel()}, input.options().dtype(at::kByte));
    const Lines lines(input, output);
    ForLines(output.size(0) * lines.pooled_height, lines,
             [&](int64_t line, Buffers& buffers) { PoolLine(lines, line, taps.data_ptr<uint8_t>(), buffers); });
    context->save_for_backward({taps});
    context->saved_data["height"] = lines.height;
    context->saved_data["width"] = lines.width;
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_FUNCTION("ssl::max_pool_backward", std::vector<c10::IValue>());
    const at::Tensor given = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor taps = context->get_saved_variables()[0];
    const at::Tensor input_gradient = at::empty(
        {given.size(0), given.size(1), context->saved_data["height"].toInt(), context->saved_data["width"].toInt()},
        given.options().memory_format(at::MemoryFormat::ChannelsLast));
    const Lines lines(input_gradient, given);
    ForLines(given.size(0) * lines.height, lines,
             [&](int64_t line, Buffers& buffers) { SpreadLine(lines, line, taps.data_ptr<uint8_t>(), buffers); });
    return {input_gradient};
  }
};

}  // namespace

at::Tensor MaxPool(const at::Tensor& input) {
  if (!HasRows(input)) return at::max_pool2d(input, {kKernel, kKernel}, {kStride, kStride}, {1, 1});
  return MaxPoolFunction::apply(input);
}

}  // namespace ssl
