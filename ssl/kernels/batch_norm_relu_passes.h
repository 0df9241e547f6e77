// SPDX-License-Identifier: Apache-2.0
//
// relu(batch_norm(x) + residual) and its backward (ssl/models/batch_norm_relu.h) as teams of threads run them. Each is
// three steps, one behind the other: sums over the map's rows, the numbers of each channel, and the result.
#ifndef SSL_KERNELS_BATCH_NORM_RELU_PASSES_H_
#define SSL_KERNELS_BATCH_NORM_RELU_PASSES_H_

#include <cmath>
#include <cstdint>

#include "ssl/kernels/batch_norm_arithmetic.h"
#include "ssl/kernels/host_device.h"
#include "ssl/kernels/map_part.h"

namespace ssl {

// Pointers to maps are of the shape's type.
struct BatchNormReluLaunch {
  MapShape shape;
  MapGrid grid;
  const void* input = nullptr;
  const void* residual = nullptr;  // or null
  const float* weight = nullptr;   // [channels], as all that is of channels
  const float* bias = nullptr;
  float* running_mean = nullptr;  // null: running statistics stay as they are
  float* running_variance = nullptr;
  int64_t* batches = nullptr;  // likewise; counted
  double momentum = 0.0;
  double epsilon = 0.0;
  void* output = nullptr;
  ChannelNorm* norms = nullptr;  // [channels]: what backward takes
  float* sums = nullptr;         // MapSumsSize of them
};

struct BatchNormReluBackwardLaunch {
  MapShape shape;
  MapGrid grid;
  const void* input = nullptr;
  const void* output = nullptr;  // null without a residual: whether it is 0 follows from the input
  const void* output_gradient = nullptr;
  const float* weight = nullptr;
  const ChannelNorm* norms = nullptr;
  void* input_gradient = nullptr;
  void* residual_gradient = nullptr;  // with `output`, and only with it
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;
  ChannelGradient* gradients = nullptr;  // [channels]
  float* sums = nullptr;                 // MapSumsSize of them
};

// One thread's work of a forward pass; every thread of every team calls a step.
template <typename Team, typename Teams, typename T, bool kHasResidual>
class BatchNormReluForward {
 public:
  static constexpr int kVector = MapPart<Team, Teams, T>::kSize;

  SSL_TEAM_FUNCTION BatchNormReluForward(const Team& team, const Teams& teams, const BatchNormReluLaunch& launch)
      : team_(team), teams_(teams), part_(team, teams, launch.shape, launch.grid), launch_(launch) {}

  // shared: as MapPart::WriteSums takes it. Distances from the first row keep their digits where a channel's mean is
  // large against its spread.
  SSL_TEAM_FUNCTION void AddUp(float* shared) const {
    float sum[kSize] = {}, squares[kSize] = {};
    Vector sample = {};
    if (part_.has_channels()) sample = input()[part_.vector()];
    Vector x[kRowsAtOnce];
    part_.template ForRows<kRowsAtOnce>([&](int slot, int64_t index) { x[slot] = input()[index]; },
                                        [&](int slot, int64_t) {
                                          SSL_UNROLL for (int i = 0; i < kSize; ++i) {
                                            const float distance = x[slot].Get(i) - sample.Get(i);
                                            sum[i] += distance;
                                            squares[i] = fmaf(distance, distance, squares[i]);
                                          }
                                        });
    part_.WriteSums(sum, squares, shared, launch_.sums);
  }

  SSL_TEAM_FUNCTION void SolveChannels() const {
    if (launch_.batches != nullptr && teams_.index() == 0 && team_.index() == 0) ++*launch_.batches;
    ForChannels(team_, teams_, launch_.shape, launch_.grid, launch_.sums,
                [&](int c, double sum, double squares) { Solve(c, sum, squares); });
  }

  SSL_TEAM_FUNCTION void WriteResult() const {
    if (!part_.has_channels()) return;
    const auto* const residual = static_cast<const Vector*>(launch_.residual);
    auto* const output = static_cast<Vector*>(launch_.output);
    float scale[kSize], offset[kSize];
    SSL_UNROLL for (int i = 0; i < kSize; ++i) {
      const ChannelNorm& norm = launch_.norms[part_.channel() + i];
      scale[i] = norm.scale;
      offset[i] = norm.offset;
    }
    Vector x[kRowsAtOnce], added[kRowsAtOnce];
    part_.template ForRows<kRowsAtOnce>(
        [&](int slot, int64_t index) {
          x[slot] = input()[index];
          if (kHasResidual) added[slot] = residual[index];
        },
        [&](int slot, int64_t index) {
          Vector y;
          SSL_UNROLL for (int i = 0; i < kSize; ++i) {
            float value = fmaf(x[slot].Get(i), scale[i], offset[i]);
            if (kHasResidual) value += added[slot].Get(i);
            y.Set(i, value > 0.0f || value != value ? value : 0.0f);
          }
          output[index] = y;
        });
  }

 private:
  using Part = MapPart<Team, Teams, T>;
  using Vector = typename Part::Vector;
  static constexpr int kSize = Part::kSize;
  static constexpr int kRowsAtOnce = 4;  // whose loads are under way at the same time

  SSL_TEAM_FUNCTION const Vector* input() const { return static_cast<const Vector*>(launch_.input); }

  SSL_TEAM_FUNCTION void Solve(int c, double sum, double squares) const {
    const double n = static_cast<double>(launch_.shape.rows);
    const double distance = sum / n;
    const double mean = MapValue<T>::ToFloat(static_cast<const T*>(launch_.input)[c]) + distance;
    const double variance = fmax(0.0, squares / n - distance * distance);
    const ChannelNorm norm = NormOf(mean, variance, launch_.epsilon, launch_.weight[c], launch_.bias[c]);
    launch_.norms[c] = norm;
    if (launch_.running_mean == nullptr) return;
    launch_.running_mean[c] = MovedStatistic(launch_.running_mean[c], launch_.momentum, norm.mean);
    launch_.running_variance[c] =
        MovedStatistic(launch_.running_variance[c], launch_.momentum, UnbiasedVariance(variance, n));
  }

  const Team team_;
  const Teams teams_;
  const Part part_;
  const BatchNormReluLaunch& launch_;
};

// Likewise of a backward pass.
template <typename Team, typename Teams, typename T, bool kHasResidual>
class BatchNormReluBackward {
 public:
  static constexpr int kVector = MapPart<Team, Teams, T>::kSize;

  SSL_TEAM_FUNCTION BatchNormReluBackward(const Team& team, const Teams& teams,
                                          const BatchNormReluBackwardLaunch& launch)
      : team_(team), teams_(teams), part_(team, teams, launch.shape, launch.grid), launch_(launch) {}

  // With a residual the mask is in the output; without, the output is computed once more.
  SSL_TEAM_FUNCTION void AddUp(float* shared) const {
    const auto* const output = static_cast<const Vector*>(launch_.output);
    float sum[kSize] = {}, products[kSize] = {};
    float mean[kSize] = {}, scale[kSize] = {}, offset[kSize] = {};
    SSL_UNROLL for (int i = 0; i < kSize; ++i) {
      if (!part_.has_channels()) break;
      const ChannelNorm& norm = launch_.norms[part_.channel() + i];
      mean[i] = norm.mean;
      scale[i] = norm.scale;
      offset[i] = norm.offset;
    }
    Vector x[kRowsAtOnce], y[kRowsAtOnce], g[kRowsAtOnce];
    part_.template ForRows<kRowsAtOnce>(
        [&](int slot, int64_t index) {
          x[slot] = input()[index];
          g[slot] = given()[index];
          if (kHasResidual) y[slot] = output[index];
        },
        [&](int slot, int64_t index) {
          Vector behind = g[slot];
          SSL_UNROLL for (int i = 0; i < kSize; ++i) {
            const float value = x[slot].Get(i);
            const bool is_positive = kHasResidual ? y[slot].Get(i) > 0.0f : IsPositive(value, scale[i], offset[i]);
            const float gradient = is_positive ? g[slot].Get(i) : 0.0f;
            if (kHasResidual) behind.Set(i, gradient);
            sum[i] += gradient;
            products[i] = fmaf(gradient, value - mean[i], products[i]);
          }
          if (kHasResidual) masked()[index] = behind;
        });
    part_.WriteSums(sum, products, shared, launch_.sums);
  }

  SSL_TEAM_FUNCTION void SolveChannels() const {
    ForChannels(team_, teams_, launch_.shape, launch_.grid, launch_.sums, [&](int c, double sum, double products) {
      const ChannelNorm& norm = launch_.norms[c];
      const GradientSums sums = {sum, products};
      const ChannelGradient gradient =
          GradientOf(sums, sums, static_cast<double>(launch_.shape.rows), launch_.weight[c], norm.mean, norm.invstd);
      launch_.gradients[c] = gradient;
      launch_.weight_gradient[c] = gradient.weight;
      launch_.bias_gradient[c] = gradient.bias;
    });
  }

  SSL_TEAM_FUNCTION void WriteResult() const {
    if (!part_.has_channels()) return;
    auto* const input_gradient = static_cast<Vector*>(launch_.input_gradient);
    float a[kSize], b[kSize], d[kSize], scale[kSize], offset[kSize];
    SSL_UNROLL for (int i = 0; i < kSize; ++i) {
      const ChannelGradient& gradient = launch_.gradients[part_.channel() + i];
      a[i] = gradient.a;
      b[i] = gradient.b;
      d[i] = gradient.d;
      const ChannelNorm& norm = launch_.norms[part_.channel() + i];
      scale[i] = norm.scale;
      offset[i] = norm.offset;
    }
    Vector x[kRowsAtOnce], g[kRowsAtOnce];
    part_.template ForRows<kRowsAtOnce>(
        [&](int slot, int64_t index) {
          x[slot] = input()[index];
          g[slot] = kHasResidual ? masked()[index] : given()[index];
        },
        [&](int slot, int64_t index) {
          Vector result;
          SSL_UNROLL for (int i = 0; i < kSize; ++i) {
            const float value = x[slot].Get(i);
            const bool is_positive = kHasResidual || IsPositive(value, scale[i], offset[i]);
            const float gradient = is_positive ? g[slot].Get(i) : 0.0f;
            result.Set(i, fmaf(a[i], gradient, fmaf(b[i], value, d[i])));
          }
          input_gradient[index] = result;
        });
  }

 private:
  using Part = MapPart<Team, Teams, T>;
  using Vector = typename Part::Vector;
  static constexpr int kSize = Part::kSize;
  static constexpr int kRowsAtOnce = 2;  // more is kept in registers than forward

  // As forward has stored it: a small value is 0 in float16.
  SSL_TEAM_FUNCTION static bool IsPositive(float value, float scale, float offset) {
    return MapValue<T>::ToFloat(MapValue<T>::FromFloat(fmaf(value, scale, offset))) > 0.0f;
  }
  SSL_TEAM_FUNCTION const Vector* input() const { return static_cast<const Vector*>(launch_.input); }
  SSL_TEAM_FUNCTION const Vector* given() const { return static_cast<const Vector*>(launch_.output_gradient); }
  SSL_TEAM_FUNCTION Vector* masked() const { return static_cast<Vector*>(launch_.residual_gradient); }

  const Team team_;
  const Teams teams_;
  const Part part_;
  const BatchNormReluBackwardLaunch& launch_;
};

}  // namespace ssl

#endif  // SSL_KERNELS_BATCH_NORM_RELU_PASSES_H_
