// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/power_law_sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "ssl/base/random.h"

namespace ssl {
namespace {

// Names the stream of the draws among those of the run's seed.
constexpr uint64_t kDraws = 1;

std::vector<int64_t> Permutation(int64_t size, at::Generator generator) {
  const at::Tensor drawn = at::randperm(size, generator, at::kLong);
  const int64_t* positions = drawn.const_data_ptr<int64_t>();
  return std::vector<int64_t>(positions, positions + size);
}

// probability of class c: its weight's part of the sum.
std::vector<double> Normalized(std::vector<double> weights) {
  double sum = 0.0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<double> Probabilities(const PowerLawSamplerOptions& options) {
  std::vector<double> weights;
  if (options.power < 0.0) {
    for (const std::vector<int64_t>& samples : options.class_index) weights.push_back(std::sqrt(samples.size()));
    return Normalized(std::move(weights));
  }
  const int64_t count = static_cast<int64_t>(options.class_index.size());
  const std::vector<int64_t> order =
      Permutation(count, at::detail::createCPUGenerator(static_cast<uint64_t>(options.seed)));
  for (const int64_t place : order) weights.push_back(std::pow(1.0 + static_cast<double>(place), -options.power));
  return Normalized(std::move(weights));
}

// The rank's part of each class, which all ranks shuffle in the same way first.
ClassIndex PartsOf(const PowerLawSamplerOptions& options, int64_t epoch) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(epoch));
  ClassIndex parts;
  for (const std::vector<int64_t>& samples : options.class_index) {
    const int64_t count = static_cast<int64_t>(samples.size());
    std::vector<int64_t> order = Permutation(count, generator);
    for (int64_t& place : order) place = samples[place];
    const int64_t share = count / options.world_size;
    if (share > 0) {
      order.erase(order.begin(), order.begin() + options.rank * share);
      order.resize(share);
    }
    parts.push_back(std::move(order));
  }
  return parts;
}

size_t DrawClass(const std::vector<double>& probabilities, CounterRandom& random) {
  double rest = random.Uniform();
  for (size_t c = 0; c + 1 < probabilities.size(); ++c) {
    rest -= probabilities[c];
    if (rest < 0.0) return c;
  }
  return probabilities.size() - 1;
}

// Appends `count` samples of `part`: different ones, when it has so many. Reorders it.
void DrawSamples(int64_t count, CounterRandom& random, std::vector<int64_t>* part, std::vector<int64_t>* indices) {
  const int64_t size = static_cast<int64_t>(part->size());
  for (int64_t i = 0; i < count; ++i) {
    if (count > size) {
      indices->push_back((*part)[random.UniformInt(0, size - 1)]);
    } else {
      std::swap((*part)[i], (*part)[random.UniformInt(i, size - 1)]);
      indices->push_back((*part)[i]);
    }
  }
}

}  // namespace

PowerLawSampler::PowerLawSampler(PowerLawSamplerOptions options)
    : options_(std::move(options)), probabilities_(Probabilities(options_)) {
  for (const std::vector<int64_t>& samples : options_.class_index) dataset_size_ += samples.size();
}

int64_t PowerLawSampler::size() const {
  return dataset_size_ / (options_.batch_size * options_.world_size) * options_.batch_size;
}

std::vector<int64_t> PowerLawSampler::Indices(int64_t epoch) const {
  ClassIndex parts = PartsOf(options_, epoch);
  std::vector<int64_t> indices;
  for (int64_t batch = 0; batch < size() / options_.batch_size; ++batch) {
    CounterRandom random(options_.seed, epoch, batch, options_.rank, kDraws);
    std::vector<size_t> classes;  // in the order of their first draw
    std::vector<int64_t> counts(parts.size(), 0);
    for (int64_t i = 0; i < options_.batch_size; ++i) {
      const size_t drawn = DrawClass(probabilities_, random);
      if (counts[drawn]++ == 0) classes.push_back(drawn);
    }
    for (const size_t c : classes) DrawSamples(counts[c], random, &parts[c], &indices);
  }
  return indices;
}

}  // namespace ssl
