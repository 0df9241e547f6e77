// SPDX-License-Identifier: Apache-2.0
//
// The convolutions that ConvLayer does not leave to LibTorch, on many shapes drawn from a seed, against the definition
// in double: those of tiny maps, and strided ones of single pixels.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/models/layers.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20251125;
constexpr int64_t kMostProducts = 600'000;
constexpr std::array<std::pair<int64_t, int64_t>, 8> kMaps = {
    {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 3}, {3, 1}, {1, 4}, {4, 1}}};

struct Shape {
  int64_t batch, in, out, kernel, stride, height, width;
  int64_t OutputSide(int64_t side) const { return (side + 2 * (kernel / 2) - kernel) / stride + 1; }
};

Shape DrawShape(std::mt19937_64* random) {
  const auto draw = [random](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, std::max(least, most))(*random);
  };
  const auto draw_channels = [random](int64_t most) {
    return static_cast<int64_t>(std::exp(std::uniform_real_distribution<>(0.0, std::log(most + 1.0))(*random)));
  };
  Shape shape = {};
  std::tie(shape.height, shape.width) = kMaps[draw(0, kMaps.size() - 1)];
  shape.kernel = 1 + 2 * draw(1, 3);
  shape.stride = draw(1, 3);
  const int64_t most = kMostProducts / (16 * shape.kernel);
  shape.in = draw_channels(std::min<int64_t>(11000, most));
  shape.out = draw_channels(std::min<int64_t>(11000, most / shape.in));
  shape.batch = draw(1, std::min<int64_t>(70, most / (shape.in * shape.out)));
  return shape;
}

// Calls body(position in the output, in the input, in the weight) for every product of the convolution, all row-major.
void ForProducts(const Shape& s, const std::function<void(int64_t, int64_t, int64_t)>& body) {
  const int64_t rows = s.OutputSide(s.height);
  const int64_t columns = s.OutputSide(s.width);
  for (int64_t output = 0; output < s.batch * s.out * rows * columns; ++output) {
    const int64_t x = output % columns;
    const int64_t y = output / columns % rows;
    const int64_t o = output / (columns * rows) % s.out;
    const int64_t n = output / (columns * rows * s.out);
    for (int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
      const int64_t in_y = y * s.stride + tap / s.kernel - s.kernel / 2;
      const int64_t in_x = x * s.stride + tap % s.kernel - s.kernel / 2;
      if (in_y < 0 || in_x < 0 || in_y >= s.height || in_x >= s.width) continue;
      for (int64_t c = 0; c < s.in; ++c) {
        body(output, ((n * s.in + c) * s.height + in_y) * s.width + in_x, (o * s.in + c) * s.kernel * s.kernel + tap);
      }
    }
  }
}

std::vector<double> ValuesOf(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kDouble).contiguous();
  return std::vector<double>(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
}

// `terms`: products in a sum, whose rounding grows with their root; each addition rounds a partial sum, which may be as
// large as the whole. On one thread a sum has all its terms in a row.
void ExpectClose(const at::Tensor& actual, const std::vector<double>& expected, int64_t terms, const char* what) {
  const std::vector<double> values = ValuesOf(actual);
  ASSERT_EQ(values.size(), expected.size()) << what;
  constexpr double kUnitRoundoff = std::numeric_limits<float>::epsilon() / 2;
  const double root = std::sqrt(static_cast<double>(terms));
  for (size_t i = 0; i < values.size(); ++i) {
    const double tolerance = 2e-6 * (1.0 + root) + kUnitRoundoff * root * std::fabs(expected[i]);
    ASSERT_NEAR(values[i], expected[i], tolerance) << what << " " << i;
  }
}

void CheckShape(const Shape& s, int64_t seed) {
  SCOPED_TRACE(::testing::Message() << s.batch << " maps of " << s.height << " x " << s.width << ", " << s.in << " to "
                                    << s.out << " channels, kernel " << s.kernel << ", stride " << s.stride);
  at::Generator generator = MakeGenerator(seed);
  const ConvLayer layer = MakeConv({s.in, s.out, s.kernel, s.stride, 1}, ConvInit::kKaimingUniform, generator);
  at::Tensor input = at::empty({s.batch, s.in, s.height, s.width}, at::kFloat).uniform_(-1.0, 1.0, generator);
  input = input.contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const at::Tensor output = layer.Forward(input);
  ASSERT_EQ(output.sizes(), at::IntArrayRef({s.batch, s.out, s.OutputSide(s.height), s.OutputSide(s.width)}));
  const at::Tensor gradient = at::empty(output.sizes(), at::kFloat).uniform_(-1.0, 1.0, generator);
  output.backward(gradient);

  const std::vector<double> x = ValuesOf(input), w = ValuesOf(layer.weight), g = ValuesOf(gradient);
  std::vector<double> y(g.size()), dx(x.size()), dw(w.size());
  ForProducts(s, [&](int64_t out, int64_t in, int64_t tap) {
    y[out] += x[in] * w[tap];
    dx[in] += g[out] * w[tap];
    dw[tap] += g[out] * x[in];
  });
  ExpectClose(output, y, s.in * 4, "output");
  ExpectClose(input.grad(), dx, s.out * 4, "gradient of the input");
  ExpectClose(layer.weight.grad(), dw, s.batch * output.size(2) * output.size(3), "gradient of the weight");
}

TEST(TinyMapConvShapes, DrawnShapes_AgreeWithNaiveLoops) {
  std::mt19937_64 random(kSeed);
  for (int64_t i = 0; i < 60 && !HasFatalFailure(); ++i)
    CheckShape(DrawShape(&random), static_cast<int64_t>(kSeed) + i);
}

// Few input channels, stride 2, and two even sides of 56 pixels or more: LibTorch 2.11 alone writes past its memory
// here.
TEST(StridedPixelConvShapes, FewChannelsOnLargeMaps_AgreeWithNaiveLoops) {
  std::mt19937_64 random(kSeed);
  for (const int64_t in : {1, 2, 3, 4, 7, 8, 12, 15, 16}) {
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{56, 56}, {64, 58}, {55, 57}, {57, 80}}) {
      const int64_t out = std::uniform_int_distribution<int64_t>(1, 40)(random);
      CheckShape({8, in, out, 1, 2, height, width}, static_cast<int64_t>(random() >> 1));
      if (HasFatalFailure()) return;
    }
  }
  CheckShape({3, 5, 9, 1, 3, 61, 58}, static_cast<int64_t>(kSeed));
}

// As many as oneDNN takes the matrix product of.
TEST(StridedPixelConvShapes, ManyChannels_AgreeWithNaiveLoops) {
  CheckShape({16, 64, 128, 1, 2, 27, 28}, static_cast<int64_t>(kSeed));
}

// Of stride 2 or more, on maps of a few pixels, each window is a product: all that may be cut by the border.
TEST(WindowConvShapes, ManyChannelsOnSmallMaps_AgreeWithNaiveLoops) {
  for (const auto& [kernel, stride, height, width] :
       {std::array<int64_t, 4>{3, 2, 4, 4}, {3, 2, 3, 4}, {3, 3, 4, 4}, {5, 2, 3, 3}, {3, 2, 1, 4}, {7, 4, 2, 8}}) {
    CheckShape({64, 128, 130, kernel, stride, height, width}, static_cast<int64_t>(kSeed));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace ssl
