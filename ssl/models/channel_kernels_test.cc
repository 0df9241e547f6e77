// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/channel_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

std::vector<float> Wave(int64_t count, double phase) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(0.7 * i + phase));
  return values;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float FromHalf(uint16_t half) {
  float value = 0.0f;
  Widen(&half, 1, &value);
  return value;
}

// What is written for `value`, by the loop over many values and by the one over what is left. It is the d of
// 0 * -1 + 0 * -1 + d: adding -0 changes no value, and the other operands would be bfloat16 already.
uint16_t Narrow(float value) {
  constexpr int64_t kManyAndOne = 17;
  const std::vector<uint16_t> zeros(kManyAndOne);
  const std::vector<float> minus(kManyAndOne, -1.0f);
  const std::vector<float> values(kManyAndOne, value);
  std::vector<uint16_t> out(kManyAndOne);
  CombineGradient(zeros.data(), zeros.data(), 1, kManyAndOne, minus.data(), minus.data(), values.data(), out.data());
  for (const uint16_t bits : out) EXPECT_EQ(bits, out[0]) << value;
  return out[0];
}

std::vector<uint16_t> Halves(const std::vector<float>& values) {
  std::vector<uint16_t> halves;
  for (const float value : values) halves.push_back(Narrow(value));
  return halves;
}

std::vector<float> Widened(const std::vector<uint16_t>& halves) {
  std::vector<float> values(halves.size());
  Widen(halves.data(), static_cast<int64_t>(halves.size()), values.data());
  return values;
}

// Channel counts around the vector widths.
class ChannelKernelsTest : public ::testing::TestWithParam<int64_t> {
 protected:
  const int64_t channels_ = GetParam();
  const int64_t rows_ = 5;
  const std::vector<float> x_ = Wave(rows_ * channels_, 0.1);
  const std::vector<float> y_ = Wave(rows_ * channels_, 1.9);
  const std::vector<float> s_ = Wave(channels_, 0.5);
  const std::vector<float> t_ = Wave(channels_, 2.5);
  const std::vector<float> u_ = Wave(channels_, 4.5);
};

TEST_P(ChannelKernelsTest, AddMoments_AddsDistancesAndTheirSquares) {
  std::vector<float> sum = t_;
  std::vector<float> squares = u_;
  AddMoments(x_.data(), rows_, channels_, s_.data(), sum.data(), squares.data());
  for (int64_t c = 0; c < channels_; ++c) {
    double expected_sum = t_[c];
    double expected_squares = u_[c];
    for (int64_t row = 0; row < rows_; ++row) {
      const double distance = x_[row * channels_ + c] - s_[c];
      expected_sum += distance;
      expected_squares += distance * distance;
    }
    EXPECT_NEAR(sum[c], expected_sum, 1e-5);
    EXPECT_NEAR(squares[c], expected_squares, 1e-5);
  }
}

TEST_P(ChannelKernelsTest, ScaleAddRelu_WithAndWithoutResidual) {
  for (const bool with_residual : {false, true}) {
    std::vector<float> out(x_.size());
    ScaleAddRelu(x_.data(), with_residual ? y_.data() : nullptr, rows_, channels_, s_.data(), t_.data(), out.data());
    for (int64_t i = 0; i < rows_ * channels_; ++i) {
      const double value = x_[i] * s_[i % channels_] + t_[i % channels_] + (with_residual ? y_[i] : 0.0);
      EXPECT_NEAR(out[i], std::max(0.0, value), 1e-6);
    }
  }
}

TEST_P(ChannelKernelsTest, MaskAndAddProducts_KeepsGradientsOfPositiveOutputs) {
  const std::vector<float> given = Wave(rows_ * channels_, 3.3);
  std::vector<float> gradient(given.size());
  std::vector<float> sum(channels_);
  std::vector<float> products(channels_);
  MaskAndAddProducts(x_.data(), y_.data(), given.data(), rows_, channels_, s_.data(), gradient.data(), sum.data(),
                     products.data());
  for (int64_t c = 0; c < channels_; ++c) {
    double expected_sum = 0.0;
    double expected_products = 0.0;
    for (int64_t i = c; i < rows_ * channels_; i += channels_) {
      const float masked = y_[i] > 0.0f ? given[i] : 0.0f;
      EXPECT_EQ(gradient[i], masked);
      expected_sum += masked;
      expected_products += masked * (x_[i] - s_[c]);
    }
    EXPECT_NEAR(sum[c], expected_sum, 1e-5);
    EXPECT_NEAR(products[c], expected_products, 1e-5);
  }
}

TEST_P(ChannelKernelsTest, CombineGradient_IsLinearInGradientAndInput) {
  std::vector<float> gradient = y_;
  CombineGradient(x_.data(), gradient.data(), rows_, channels_, s_.data(), t_.data(), u_.data(), gradient.data());
  for (int64_t i = 0; i < rows_ * channels_; ++i) {
    const int64_t c = i % channels_;
    EXPECT_NEAR(gradient[i], y_[i] * s_[c] + x_[i] * t_[c] + u_[c], 1e-5);
  }
}

// In bfloat16 all of them compute what they compute in float32, and round what they write.
TEST_P(ChannelKernelsTest, Bfloat16_IsFloatRounded) {
  const std::vector<uint16_t> x = Halves(x_);
  const std::vector<uint16_t> y = Halves(y_);
  const std::vector<float> wide_x = Widened(x);
  const std::vector<float> wide_y = Widened(y);
  const size_t size = x.size();
  std::vector<float> sums[] = {t_, u_, t_, u_};
  AddMoments(x.data(), rows_, channels_, s_.data(), sums[0].data(), sums[1].data());
  AddMoments(wide_x.data(), rows_, channels_, s_.data(), sums[2].data(), sums[3].data());
  EXPECT_EQ(sums[0], sums[2]);
  EXPECT_EQ(sums[1], sums[3]);

  std::vector<uint16_t> out(size);
  std::vector<float> wide_out(size);
  ScaleAddRelu(x.data(), y.data(), rows_, channels_, s_.data(), t_.data(), out.data());
  ScaleAddRelu(wide_x.data(), wide_y.data(), rows_, channels_, s_.data(), t_.data(), wide_out.data());
  EXPECT_EQ(out, Halves(wide_out));

  MaskAndAddProducts(x.data(), y.data(), x.data(), rows_, channels_, s_.data(), out.data(), sums[0].data(),
                     sums[1].data());
  MaskAndAddProducts(wide_x.data(), wide_y.data(), wide_x.data(), rows_, channels_, s_.data(), wide_out.data(),
                     sums[2].data(), sums[3].data());
  EXPECT_EQ(out, Halves(wide_out));
  EXPECT_EQ(sums[0], sums[2]);
  EXPECT_EQ(sums[1], sums[3]);

  CombineGradient(x.data(), y.data(), rows_, channels_, s_.data(), t_.data(), u_.data(), out.data());
  CombineGradient(wide_x.data(), wide_y.data(), rows_, channels_, s_.data(), t_.data(), u_.data(), wide_out.data());
  EXPECT_EQ(out, Halves(wide_out));
}

// One register, several, a row of more than a group, and what is left.
INSTANTIATE_TEST_SUITE_P(Channels, ChannelKernelsTest, ::testing::Values(1, 3, 8, 16, 17, 64, 100, 130));

TEST(Bfloat16, Narrowing_RoundsToNearestEven) {
  EXPECT_EQ(Narrow(1.0f), 0x3f80);
  EXPECT_EQ(Narrow(FromBits(0x3f808000)), 0x3f80) << "a tie goes to the even neighbour below";
  EXPECT_EQ(Narrow(FromBits(0x3f818000)), 0x3f82) << "a tie goes to the even neighbour above";
  EXPECT_EQ(Narrow(FromBits(0x3f808001)), 0x3f81);
  EXPECT_EQ(Narrow(-2.5f), 0xc020);
}

TEST(Bfloat16, SpecialValues_Survive) {
  EXPECT_EQ(Narrow(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(Narrow(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_TRUE(std::isnan(FromHalf(Narrow(FromBits(0x7fffffff))))) << "a NaN that rounding up would make a zero";
}

TEST(Bfloat16, EveryValue_SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t value = static_cast<uint16_t>(bits);
    const float widened = FromHalf(value);
    if (!std::isnan(widened)) {
      ASSERT_EQ(Narrow(widened), value);
    }
  }
}

TEST(ScaleAddRelu, Nan_IsNotHidden) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float one = 1.0f;
  float out = 0.0f;
  ScaleAddRelu(&nan, static_cast<const float*>(nullptr), 1, 1, &one, &one, &out);
  EXPECT_TRUE(std::isnan(out));
}

}  // namespace
}  // namespace ssl
