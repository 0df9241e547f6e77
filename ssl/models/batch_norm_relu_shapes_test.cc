// SPDX-License-Identifier: Apache-2.0
//
// BatchNormRelu on many shapes, drawn from a seed, against loops in double: sizes that no block, task or vector of the
// kernels divides.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/models/batch_norm_relu.h"
#include "ssl/models/layers.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20251121;
constexpr int64_t kMostFloats = 1 << 18;

struct Shape {
  int64_t batch, channels, height, width;
  bool narrow, residual;
  int64_t rows() const { return batch * height * width; }
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.batch << " x " << shape.channels << " x " << shape.height << " x " << shape.width
             << (shape.narrow ? ", bfloat16" : ", float32") << (shape.residual ? ", residual" : "");
}

// Channels spread evenly over the orders of magnitude, then as large a map as the work allows.
Shape DrawShape(std::mt19937_64* random) {
  const auto draw = [random](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, std::max(least, most))(*random);
  };
  Shape shape;
  shape.channels = std::llround(std::exp(std::uniform_real_distribution<>(0.0, std::log(11000.0))(*random)));
  shape.batch = draw(1, std::min<int64_t>(70, kMostFloats / shape.channels));
  shape.height = draw(1, std::min<int64_t>(57, kMostFloats / (shape.channels * shape.batch)));
  shape.width = draw(1, std::min<int64_t>(57, kMostFloats / (shape.channels * shape.batch * shape.height)));
  shape.narrow = draw(0, 3) == 0;
  shape.residual = draw(0, 1) == 1;
  return shape;
}

// [rows, channels] as the map lies in memory, in double.
using Values = std::vector<double>;

Values ValuesOf(const at::Tensor& map) {
  const at::Tensor rows = map.detach().permute({0, 2, 3, 1}).contiguous().to(at::kDouble);
  return Values(rows.data_ptr<double>(), rows.data_ptr<double>() + rows.numel());
}

at::Tensor RandomMap(const Shape& shape, at::Generator& generator, double mean = 0.0) {
  at::Tensor map =
      at::empty({shape.batch, shape.channels, shape.height, shape.width}, at::kFloat).normal_(mean, 1.0, generator);
  return map.to(shape.narrow ? at::kBFloat16 : at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
}

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
};

Moments MomentsOf(const Values& x, const Shape& shape, int64_t channel) {
  Moments moments;
  const double n = static_cast<double>(shape.rows());
  for (int64_t row = 0; row < shape.rows(); ++row) moments.mean += x[row * shape.channels + channel] / n;
  for (int64_t row = 0; row < shape.rows(); ++row) {
    moments.variance += std::pow(x[row * shape.channels + channel] - moments.mean, 2) / n;
  }
  return moments;
}

struct Case {
  Shape shape;
  BatchNormLayer layer;
  at::Tensor input, residual, output, gradient;
};

Case Run(const Shape& shape, uint64_t seed) {
  at::Generator generator = MakeGenerator(static_cast<int64_t>(seed));
  Case run = {shape, MakeBatchNorm(shape.channels), {}, {}, {}, {}};
  run.layer.weight.detach().normal_(0.0, 1.0, generator);
  run.layer.bias.detach().normal_(0.0, 1.0, generator);
  run.input = RandomMap(shape, generator, 0.5).requires_grad_();
  if (shape.residual) run.residual = RandomMap(shape, generator).requires_grad_();
  run.gradient = RandomMap(shape, generator);
  EXPECT_TRUE(CanFuseBatchNormRelu(run.layer, run.input, run.residual));
  run.output = BatchNormRelu(run.layer, run.input, run.residual, NormMode::kTraining);
  run.output.backward(run.gradient);
  return run;
}

// One channel of a case against the formulas, row by row. bfloat16 has 8 bits.
class ChannelCheck {
 public:
  explicit ChannelCheck(const Case& run)
      : shape_(run.shape),
        layer_(run.layer),
        x_(ValuesOf(run.input)),
        y_(ValuesOf(run.output)),
        g_(ValuesOf(run.gradient)),
        dx_(ValuesOf(run.input.grad())),
        r_(run.shape.residual ? ValuesOf(run.residual) : Values(x_.size())),
        dr_(run.shape.residual ? ValuesOf(run.residual.grad()) : Values()) {}

  void Check(int64_t channel) const {
    const double n = static_cast<double>(shape_.rows());
    const Moments moments = MomentsOf(x_, shape_, channel);
    const double invstd = 1.0 / std::sqrt(moments.variance + layer_.eps);
    const double weight = layer_.weight[channel].item<double>();
    const double bias = layer_.bias[channel].item<double>();
    // Float rounding of x and of the statistics, enlarged by the slope of the normalisation.
    const double slope = 1.0 + std::abs(weight) * invstd;
    double sum = 0.0;
    double products = 0.0;
    for (int64_t i = channel; i < static_cast<int64_t>(x_.size()); i += shape_.channels) {
      const double y = std::max(0.0, weight * (x_[i] - moments.mean) * invstd + bias + r_[i]);
      ASSERT_NEAR(y_[i], y, 4e-6 * slope + Rounding(y)) << "output of row " << i / shape_.channels;
      // At the kink the operation's own output decides.
      const double g = y_[i] > 0.0 ? g_[i] : 0.0;
      sum += g;
      products += g * (x_[i] - moments.mean) * invstd;
    }
    ASSERT_NEAR(layer_.bias.grad()[channel].item<double>(), sum, 1e-5 * std::sqrt(n) + 1e-5);
    ASSERT_NEAR(layer_.weight.grad()[channel].item<double>(), products, (1e-5 * std::sqrt(n) + 1e-5) * (1.0 + invstd));
    for (int64_t i = channel; i < static_cast<int64_t>(x_.size()); i += shape_.channels) {
      const double g = y_[i] > 0.0 ? g_[i] : 0.0;
      if (shape_.residual) {
        ASSERT_EQ(dr_[i], g) << "gradient of the residual in row " << i / shape_.channels;
      }
      const double normalized = (x_[i] - moments.mean) * invstd;
      const double dx = weight * invstd * (g - sum / n - normalized * products / n);
      ASSERT_NEAR(dx_[i], dx, 4e-6 * slope * (1.0 + invstd) + Rounding(dx))
          << "gradient of row " << i / shape_.channels;
    }
    ASSERT_NEAR(layer_.running_mean[channel].item<double>(), 0.1 * moments.mean, 1e-6);
    ASSERT_NEAR(layer_.running_var[channel].item<double>(), 0.9 + 0.1 * moments.variance * n / std::max(1.0, n - 1.0),
                1e-5);
  }

 private:
  double Rounding(double value) const { return shape_.narrow ? std::abs(value) / 256.0 : 0.0; }

  const Shape shape_;
  const BatchNormLayer layer_;
  const Values x_, y_, g_, dx_, r_, dr_;
};

// All channels when there are few, else the first, the last and some between.
void CheckShape(const Shape& shape, uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << shape << ", seed " << seed);
  const ChannelCheck check(Run(shape, seed));
  const int64_t step = std::max<int64_t>(1, shape.channels / 37);
  for (int64_t channel = 0; channel < shape.channels && !::testing::Test::HasFatalFailure(); channel += step) {
    check.Check(channel);
  }
  check.Check(shape.channels - 1);
}

TEST(BatchNormReluShapes, DrawnShapes_AgreeWithNaiveLoops) {
  std::mt19937_64 random(kSeed);
  for (uint64_t i = 0; i < 40 && !HasFatalFailure(); ++i) CheckShape(DrawShape(&random), kSeed + i);
}

// A task has floor(2^17 / channels) rows. Just above a half or a twelfth of 2^17 channels that floor leaves the most
// floats of a task unused: there are more tasks than rows * channels / 2^17 suggests.
TEST(BatchNormReluShapes, ChannelsThatDivideNoTask_HaveAPartForEachTask) {
  CheckShape({33, 65537, 1, 1, false, true}, kSeed);
  CheckShape({12, 10923, 5, 5, false, false}, kSeed);
}

}  // namespace
}  // namespace ssl
