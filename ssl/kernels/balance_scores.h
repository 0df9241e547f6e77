// SPDX-License-Identifier: Apache-2.0
//
// Sinkhorn-Knopp as a kernel runs it: SinkhornAssignments (ssl/losses/sinkhorn.h), in float32 and for one rank, with
// all iterations in one call. Teams share the rows, and thread i of a team has the columns i, i + size, i + 2 * size
// ... of each: nothing is added by atomic operations, so results are the same each time. The masses of prototypes are
// summed in two steps, over a team's rows and over the teams, with a wait of all teams after each.
//
// Each iteration reads and writes the matrix once: a row is scaled by its prototypes' factors and to its own mass, and
// added to the columns' sums for the next one.
#ifndef SSL_KERNELS_BALANCE_SCORES_H_
#define SSL_KERNELS_BALANCE_SCORES_H_

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "ssl/kernels/host_device.h"

namespace ssl {

struct BalanceOptions {
  float epsilon = 0.05f;
  int iterations = 3;
  float powerlaw = 0.0f;  // prototype i (from 1) gets mass proportional to 1 / i^powerlaw
};

// n samples, K prototypes.
struct BalanceProblem {
  const float* scores = nullptr;  // [n, K]
  float* assignments = nullptr;   // [n, K], the result; another place than the scores
  float* parts = nullptr;         // [teams, K], for the teams' work
  float* masses = nullptr;        // [K], likewise
  int64_t samples = 0;
  int prototypes = 0;
};

constexpr float kBalanceRepair = 1e-12f;  // VISSL's value

// One thread's work. kColumns: at least the prototypes over the team's size; what is kept for each of them are
// registers in a kernel.
template <typename Team, typename Teams, int kColumns>
class ScoreBalancer {
 public:
  SSL_TEAM_FUNCTION ScoreBalancer(const Team& team, const Teams& teams, const BalanceProblem& problem,
                                  const BalanceOptions& options)
      : team_(team), teams_(teams), problem_(problem), options_(options) {}

  // All of it; every thread of every team calls it. Rows of the result sum to 1.
  SSL_TEAM_FUNCTION void Run() {
    WriteWeights(LargestScore());
    float scale = 1.0f / TotalMass();
    for (int iteration = 1; iteration <= options_.iterations; ++iteration) {
      const bool is_last = iteration == options_.iterations;
      const float repair = SetFactors(scale);
      SweepRows(scale, repair, is_last ? 1.0f : 1.0f / static_cast<float>(problem_.samples));
      if (!is_last) AddSums();
      scale = 1.0f;
    }
  }

 private:
  // visit(j, k) for this thread's columns k; j counts them.
  template <typename Visit>
  SSL_TEAM_FUNCTION void ForColumns(Visit visit) const {
    for (int j = 0; j < kColumns; ++j) {
      const int k = team_.index() + j * team_.size();
      if (k < problem_.prototypes) visit(j, k);
    }
  }

  // visit(first entry) for this team's rows.
  template <typename Visit>
  SSL_TEAM_FUNCTION void ForRows(Visit visit) const {
    for (int64_t i = teams_.index(); i < problem_.samples; i += teams_.size()) visit(i * problem_.prototypes);
  }

  SSL_TEAM_FUNCTION static bool IsInfinite(float value) { return value == value && value - value != 0.0f; }

  // Of all scores over epsilon.
  SSL_TEAM_FUNCTION float LargestScore() {
    float largest = -FLT_MAX;
    ForRows([&](int64_t row) {
      ForColumns([&](int, int k) {
        const float score = problem_.scores[row + k] / options_.epsilon;
        largest = score > largest ? score : largest;
      });
    });
    largest = team_.Max(largest);
    if (team_.index() == 0) problem_.parts[teams_.index()] = largest;
    teams_.Wait();
    for (int i = 0; i < teams_.size(); ++i) largest = problem_.parts[i] > largest ? problem_.parts[i] : largest;
    teams_.Wait();
    return largest;
  }

  // assignments = exp(scores / epsilon - largest), which cannot overflow, and the masses.
  SSL_TEAM_FUNCTION void WriteWeights(float largest) {
    for (float& sum : sums_) sum = 0.0f;
    ForRows([&](int64_t row) {
      ForColumns([&](int j, int k) { values_[j] = problem_.scores[row + k]; });
      ForColumns([&](int j, int k) {
        const float weight = expf(values_[j] / options_.epsilon - largest);
        problem_.assignments[row + k] = weight;
        sums_[j] += weight;
      });
    });
    AddSums();
  }

  // The sums of all teams become the masses, which every thread sees.
  SSL_TEAM_FUNCTION void AddSums() {
    const int64_t columns = problem_.prototypes;
    ForColumns([&](int j, int k) { problem_.parts[teams_.index() * columns + k] = sums_[j]; });
    teams_.Wait();
    const int64_t begin = columns * teams_.index() / teams_.size();
    const int64_t end = columns * (teams_.index() + 1) / teams_.size();
    for (int64_t k = begin + team_.index(); k < end; k += team_.size()) {
      float sum = 0.0f;
      for (int i = 0; i < teams_.size(); ++i) sum += problem_.parts[i * columns + k];
      problem_.masses[k] = sum;
    }
    teams_.Wait();
  }

  SSL_TEAM_FUNCTION float TotalMass() {
    float sum = 0.0f;
    ForColumns([&](int, int k) { sum += problem_.masses[k]; });
    return team_.Sum(sum);
  }

  // Sets the factors to each prototype's share over its mass, which is masses[k] * scale. Returns what is added to
  // every entry first, when a prototype has no mass. An infinite factor becomes the largest finite one.
  SSL_TEAM_FUNCTION float SetFactors(float scale) {
    float empty = 0.0f, shares = 0.0f;
    ForColumns([&](int, int k) {
      if (problem_.masses[k] * scale == 0.0f) empty = 1.0f;
      shares += Share(k);
    });
    const float repair = team_.Max(empty) * kBalanceRepair;
    shares = team_.Sum(shares);
    float largest = -FLT_MAX;
    ForColumns([&](int j, int k) {
      const float mass = problem_.masses[k] * scale + repair * static_cast<float>(problem_.samples);
      factors_[j] = Share(k) / shares / mass;
      if (!IsInfinite(factors_[j]) && factors_[j] > largest) largest = factors_[j];
    });
    largest = team_.Max(largest);
    for (float& factor : factors_) factor = IsInfinite(factor) ? largest : factor;
    return repair;
  }

  // Of prototype k, beside those of the others.
  SSL_TEAM_FUNCTION float Share(int k) const { return powf(static_cast<float>(k + 1), -options_.powerlaw); }

  // Rows become (row * scale + repair) * factors with a sum of `row_mass`, and their columns are summed.
  SSL_TEAM_FUNCTION void SweepRows(float scale, float repair, float row_mass) {
    for (float& sum : sums_) sum = 0.0f;
    ForRows([&](int64_t row) {
      float* entries = problem_.assignments + row;
      ForColumns([&](int j, int k) { values_[j] = entries[k]; });
      float sum = 0.0f;
      ForColumns([&](int j, int) {
        values_[j] = (values_[j] * scale + repair) * factors_[j];
        sum += values_[j];
      });
      const float to_mass = row_mass / team_.Sum(sum);
      ForColumns([&](int j, int k) {
        entries[k] = values_[j] * to_mass;
        sums_[j] += entries[k];
      });
    });
  }

  const Team team_;
  const Teams teams_;
  const BalanceProblem problem_;
  const BalanceOptions options_;
  float values_[kColumns] = {};   // of a row
  float factors_[kColumns] = {};  // of the prototypes
  float sums_[kColumns] = {};     // of this team's rows
};

}  // namespace ssl

#endif  // SSL_KERNELS_BALANCE_SCORES_H_
