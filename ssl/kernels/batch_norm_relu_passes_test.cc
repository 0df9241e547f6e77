// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a kernel's blocks do, done by threads of the host, beside plain loops in double precision.
#include "ssl/kernels/batch_norm_relu_passes.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/kernels/batch_norm_arithmetic.h"
#include "ssl/kernels/map_part.h"
#include "ssl/kernels/team.h"
#include "ssl/kernels/testing/thread_team.h"

namespace ssl {

template <>
struct MapValue<c10::BFloat16> {
  static float ToFloat(c10::BFloat16 value) { return value; }
  static c10::BFloat16 FromFloat(float value) { return value; }
};

template <>
struct MapValue<c10::Half> {
  static float ToFloat(c10::Half value) { return value; }
  static c10::Half FromFloat(float value) { return value; }
};

namespace {

constexpr double kMomentum = 0.3;
constexpr double kEpsilon = 1e-5;

// Memory of a map begins at a multiple of 16 bytes.
template <typename T>
class Map {
 public:
  explicit Map(int64_t size) : vectors_(static_cast<size_t>((size * sizeof(T) + 15) / 16)), size_(size) {}

  T* data() { return vectors_.data()->values; }
  const T* data() const { return vectors_.data()->values; }
  int64_t size() const { return size_; }
  double operator[](int64_t i) const { return MapValue<T>::ToFloat(data()[i]); }

 private:
  std::vector<ValueVector<T>> vectors_;
  int64_t size_;
};

// Of few values, which every type has exactly: none comes so near to ReLU's corner that rounding decides.
template <typename T>
Map<T> MakeMap(int64_t rows, int channels, double phase) {
  Map<T> map(rows * channels);
  for (int64_t i = 0; i < map.size(); ++i) {
    map.data()[i] = MapValue<T>::FromFloat(static_cast<float>(std::round(8.0 * std::sin(0.73 * i + phase)) / 8.0));
  }
  return map;
}

struct Layer {
  explicit Layer(int channels) {
    for (int c = 0; c < channels; ++c) {
      weight.push_back(std::sin(static_cast<float>(c)) + 0.4f);  // some negative
      bias.push_back(std::sin(static_cast<float>(c) + 2.0f));
    }
    running_mean.assign(channels, 0.5f);
    running_variance.assign(channels, 2.0f);
  }

  std::vector<float> weight, bias, running_mean, running_variance;
  int64_t batches = 7;
};

// What both passes leave; gradients of the residual where there is one.
struct Results {
  std::vector<double> output, input_gradient, residual_gradient;
  std::vector<double> weight_gradient, bias_gradient, running_mean, running_variance;
  int64_t batches = 0;
};

template <typename T>
struct Problem {
  Problem(int64_t map_rows, int map_channels, bool with_residual)
      : rows(map_rows),
        channels(map_channels),
        has_residual(with_residual),
        input(MakeMap<T>(rows, channels, 1.0)),
        residual(MakeMap<T>(rows, channels, 4.0)),
        output_gradient(MakeMap<T>(rows, channels, 7.0)) {}

  int64_t rows;
  int channels;
  bool has_residual;
  Map<T> input, residual, output_gradient;
};

struct Cut {
  int threads = 1;
  int tile_vectors = 1;
  int row_blocks = 1;
};

template <typename Values>
std::vector<double> Doubles(const Values& values) {
  std::vector<double> doubles;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) doubles.push_back(values[i]);
  return doubles;
}

// The three launches of a pass, of which that in the middle has teams of its own, here with two groups of lanes each.
template <typename Pass, typename Launch>
void RunSteps(const Launch& launch, int threads) {
  const int teams = launch.grid.teams();
  std::vector<std::vector<float>> shared(teams, std::vector<float>(threads * Pass::kVector));
  RunTeams(teams, threads, [&](const ThreadTeam& team, const ThreadTeams& all) {
    Pass(team, all, launch).AddUp(shared[all.index()].data());
  });
  RunTeams(2, 8, [&](const ThreadTeam& team, const ThreadTeams& all) { Pass(team, all, launch).SolveChannels(); });
  RunTeams(teams, threads,
           [&](const ThreadTeam& team, const ThreadTeams& all) { Pass(team, all, launch).WriteResult(); });
}

template <template <typename, typename, typename, bool> class Pass, typename T, typename Launch>
void RunPass(const Launch& launch, bool has_residual, int threads) {
  if (has_residual) {
    RunSteps<Pass<ThreadTeam, ThreadTeams, T, true>>(launch, threads);
  } else {
    RunSteps<Pass<ThreadTeam, ThreadTeams, T, false>>(launch, threads);
  }
}

template <typename T>
Results BothPasses(const Problem<T>& problem, const Cut& cut, bool moves_statistics) {
  const int64_t size = problem.input.size();
  Layer layer(problem.channels);
  BatchNormReluLaunch forward;
  forward.shape.rows = problem.rows;
  forward.shape.channels = problem.channels;
  const int vectors = problem.channels / ValueVector<T>::kSize;
  forward.grid = {cut.tile_vectors, (vectors + cut.tile_vectors - 1) / cut.tile_vectors, cut.row_blocks};
  std::vector<ChannelNorm> norms(problem.channels);
  std::vector<float> sums(MapSumsSize(forward.shape, forward.grid), std::nanf(""));
  Map<T> output(size), input_gradient(size), residual_gradient(size);
  forward.input = problem.input.data();
  forward.residual = problem.has_residual ? problem.residual.data() : nullptr;
  forward.weight = layer.weight.data();
  forward.bias = layer.bias.data();
  if (moves_statistics) {
    forward.running_mean = layer.running_mean.data();
    forward.running_variance = layer.running_variance.data();
    forward.batches = &layer.batches;
  }
  forward.momentum = kMomentum;
  forward.epsilon = kEpsilon;
  forward.output = output.data();
  forward.norms = norms.data();
  forward.sums = sums.data();
  RunPass<BatchNormReluForward, T>(forward, problem.has_residual, cut.threads);

  std::vector<float> weight_gradient(problem.channels), bias_gradient(problem.channels);
  std::vector<ChannelGradient> gradients(problem.channels);
  std::fill(sums.begin(), sums.end(), std::nanf(""));
  BatchNormReluBackwardLaunch backward;
  backward.shape = forward.shape;
  backward.grid = forward.grid;
  backward.input = problem.input.data();
  backward.output = problem.has_residual ? output.data() : nullptr;
  backward.output_gradient = problem.output_gradient.data();
  backward.weight = layer.weight.data();
  backward.norms = norms.data();
  backward.input_gradient = input_gradient.data();
  backward.residual_gradient = problem.has_residual ? residual_gradient.data() : nullptr;
  backward.weight_gradient = weight_gradient.data();
  backward.bias_gradient = bias_gradient.data();
  backward.gradients = gradients.data();
  backward.sums = sums.data();
  RunPass<BatchNormReluBackward, T>(backward, problem.has_residual, cut.threads);
  return {
      Doubles(output),        Doubles(input_gradient),     Doubles(residual_gradient),      Doubles(weight_gradient),
      Doubles(bias_gradient), Doubles(layer.running_mean), Doubles(layer.running_variance), layer.batches};
}

// arXiv 1502.03167, section 3, channel by channel.
template <typename T>
Results Expected(const Problem<T>& problem) {
  const double n = static_cast<double>(problem.rows);
  const Layer layer(problem.channels);
  Results results;
  results.output.resize(problem.input.size());
  results.input_gradient.resize(problem.input.size());
  results.residual_gradient.resize(problem.input.size());
  for (int c = 0; c < problem.channels; ++c) {
    const auto for_rows = [&](auto visit) {
      for (int64_t row = 0; row < problem.rows; ++row) visit(row * problem.channels + c);
    };
    double mean = 0.0, variance = 0.0;
    for_rows([&](int64_t i) { mean += problem.input[i] / n; });
    for_rows([&](int64_t i) { variance += std::pow(problem.input[i] - mean, 2) / n; });
    const double sigma = std::sqrt(variance + kEpsilon);
    const auto normalized = [&](int64_t i) { return (problem.input[i] - mean) / sigma; };
    double of_weight = 0.0, of_bias = 0.0;
    for_rows([&](int64_t i) {
      const double added = problem.has_residual ? problem.residual[i] : 0.0;
      results.output[i] = std::max(0.0, normalized(i) * layer.weight[c] + layer.bias[c] + added);
      const double gradient = results.output[i] > 0.0 ? problem.output_gradient[i] : 0.0;
      if (problem.has_residual) results.residual_gradient[i] = gradient;
      of_weight += gradient * normalized(i);
      of_bias += gradient;
    });
    for_rows([&](int64_t i) {
      const double gradient = results.output[i] > 0.0 ? problem.output_gradient[i] : 0.0;
      results.input_gradient[i] = layer.weight[c] / sigma * (gradient - of_bias / n - normalized(i) * of_weight / n);
    });
    results.weight_gradient.push_back(of_weight);
    results.bias_gradient.push_back(of_bias);
    results.running_mean.push_back(0.5 * (1.0 - kMomentum) + kMomentum * mean);
    results.running_variance.push_back(2.0 * (1.0 - kMomentum) + kMomentum * variance * n / std::max(1.0, n - 1.0));
  }
  results.batches = 8;
  return results;
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected, double unit, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  double scale = 1.0;
  for (const double value : expected) scale = std::max(scale, std::fabs(value));
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], unit * scale) << what << ' ' << i;
}

// unit: of the maps' values; parameters' gradients and statistics are float32.
void ExpectNear(const Results& actual, const Results& expected, double unit) {
  ExpectNear(actual.output, expected.output, unit, "output");
  ExpectNear(actual.input_gradient, expected.input_gradient, unit, "input's gradient");
  ExpectNear(actual.residual_gradient, expected.residual_gradient, unit, "residual's gradient");
  ExpectNear(actual.weight_gradient, expected.weight_gradient, 1e-5, "weight's gradient");
  ExpectNear(actual.bias_gradient, expected.bias_gradient, 1e-5, "bias's gradient");
  ExpectNear(actual.running_mean, expected.running_mean, 1e-6, "running mean");
  ExpectNear(actual.running_variance, expected.running_variance, 1e-6, "running variance");
  EXPECT_EQ(actual.batches, expected.batches);
}

// A thread alone; a team; several of them; tiles beside each other, of which the last has lanes without channels;
// threads that are left over; more row blocks than rows.
constexpr Cut kCuts[] = {{1, 1, 1}, {4, 2, 1}, {4, 1, 3}, {6, 2, 2}, {5, 2, 3}, {3, 3, 2}, {2, 2, 9}};

// What a GPU is given: all channels and rows, and no team without any.
TEST(BatchNormReluPasses, Grid_HasWorkForAllTeams) {
  for (const int64_t rows : {1, 7, 98, 3136, 802816}) {
    for (const int channels : {4, 64, 132, 2048, 16384}) {
      for (const int teams_at_once : {1, 4, 264}) {
        SCOPED_TRACE(::testing::Message() << rows << " rows, " << channels << " channels, " << teams_at_once);
        const MapGrid grid = MapGridFor({MapType::kFloat, rows, channels}, 512, teams_at_once);
        const int vectors = channels / 4;
        EXPECT_GE(grid.tiles * grid.tile_vectors, vectors);
        EXPECT_LT((grid.tiles - 1) * grid.tile_vectors, vectors);
        EXPECT_GE(grid.row_blocks, 1);
        EXPECT_LT(int64_t{grid.row_blocks - 1} * (512 / grid.tile_vectors), rows);
        EXPECT_LE(grid.teams(), std::max(teams_at_once, grid.tiles));
      }
    }
  }
}

// Below float16's smallest number, an output is 0, and has no gradient.
TEST(BatchNormReluPasses, OutputThatIsRoundedToZero_HasNoGradient) {
  using Backward = BatchNormReluBackward<OneThread, OneThread, c10::Half, false>;
  constexpr int kChannels = ValueVector<c10::Half>::kSize;
  Map<c10::Half> ones(kChannels);
  std::fill_n(ones.data(), kChannels, c10::Half(1.0f));
  std::vector<ChannelNorm> norms(kChannels);
  for (int c = 0; c < kChannels; ++c) norms[c].scale = c == 0 ? 1.0f : 0x1p-26f;
  std::vector<float> sums(2 * kChannels), shared(kChannels);
  BatchNormReluBackwardLaunch launch;
  launch.shape = {MapType::kHalf, 1, kChannels};
  launch.grid = {1, 1, 1};
  launch.input = ones.data();
  launch.output_gradient = ones.data();
  launch.norms = norms.data();
  launch.sums = sums.data();
  Backward(OneThread(), OneThread(), launch).AddUp(shared.data());
  EXPECT_EQ(sums[0], 1.0f);
  for (int c = 1; c < kChannels; ++c) EXPECT_EQ(sums[c], 0.0f) << "channel " << c;
}

template <typename T>
void ExpectAllCutsNear(double unit) {
  for (const int64_t rows : {1, 2, 7, 90}) {
    for (const int vectors : {1, 3, 5}) {
      for (const bool has_residual : {false, true}) {
        const Problem<T> problem(rows, vectors * ValueVector<T>::kSize, has_residual);
        const Results expected = Expected(problem);
        for (const Cut& cut : kCuts) {
          SCOPED_TRACE(::testing::Message() << rows << " rows, " << vectors << " vectors, residual " << has_residual
                                            << ", threads " << cut.threads << ", vectors of a tile " << cut.tile_vectors
                                            << ", row blocks " << cut.row_blocks);
          ExpectNear(BothPasses(problem, cut, true), expected, unit);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(BatchNormReluPasses, Float_AgreesWithLoops) { ExpectAllCutsNear<float>(1e-5); }

TEST(BatchNormReluPasses, Bfloat16_AgreesWithinHalfAUnitOfTheMaps) { ExpectAllCutsNear<c10::BFloat16>(0x1p-8); }

TEST(BatchNormReluPasses, LargeMean_KeepsTheSpread) {
  Problem<float> problem(300, 4, false);
  for (int64_t i = 0; i < problem.input.size(); ++i) problem.input.data()[i] += 4096.0f;
  ExpectNear(BothPasses(problem, {4, 1, 3}, true).output, Expected(problem).output, 1e-3, "output");
}

TEST(BatchNormReluPasses, Recompute_LeavesStatistics) {
  const Problem<float> problem(20, 8, true);
  const Results results = BothPasses(problem, {4, 2, 2}, false);
  EXPECT_EQ(results.running_mean, std::vector<double>(8, 0.5));
  EXPECT_EQ(results.running_variance, std::vector<double>(8, 2.0));
  EXPECT_EQ(results.batches, 7);
  ExpectNear(results.output, Expected(problem).output, 1e-5, "output");
}

TEST(BatchNormReluPasses, SameCut_GivesTheSameBits) {
  const Problem<c10::BFloat16> problem(200, 24, true);
  const Results once = BothPasses(problem, {6, 2, 3}, true);
  const Results again = BothPasses(problem, {6, 2, 3}, true);
  EXPECT_EQ(once.output, again.output);
  EXPECT_EQ(once.input_gradient, again.input_gradient);
  EXPECT_EQ(once.weight_gradient, again.weight_gradient);
  EXPECT_EQ(once.running_variance, again.running_variance);
}

// check_nan finds it by the loss: ReLU must not hide it.
TEST(BatchNormReluPasses, NotANumber_GoesThrough) {
  Problem<float> problem(6, 4, false);
  problem.input.data()[5] = std::numeric_limits<float>::quiet_NaN();
  const Results results = BothPasses(problem, {2, 1, 2}, true);
  EXPECT_TRUE(std::isnan(results.output[1]));
  EXPECT_TRUE(std::isnan(results.running_mean[1]));
  EXPECT_FALSE(std::isnan(results.output[0]));
}

}  // namespace
}  // namespace ssl
