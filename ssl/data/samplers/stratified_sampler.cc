// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/stratified_sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

namespace ssl {
namespace {

int64_t Count(const ClassIndex& classes) { return static_cast<int64_t>(classes.size()); }

std::vector<int64_t> Permutation(int64_t size, at::Generator generator) {
  const at::Tensor drawn = at::randperm(size, generator, at::kLong);
  const int64_t* positions = drawn.const_data_ptr<int64_t>();
  return std::vector<int64_t>(positions, positions + size);
}

at::Generator GeneratorOf(int64_t seed) { return at::detail::createCPUGenerator(static_cast<uint64_t>(seed)); }

}  // namespace

// VISSL keeps one seed for the run and raises it with every order, so that the orders of an epoch follow from how many
// there were before.
class StratifiedSampler::ClassOrder {
 public:
  ClassOrder(const StratifiedSamplerOptions& options, int64_t orders_before)
      : options_(options), orders_(orders_before) {
    Restart();
  }

  // The first of the batch's classes, which are neighbours in the order.
  const int64_t* classes() const { return order_.data() + place_; }
  int64_t orders() const { return orders_; }

  void Next() {
    const int64_t step = options_.unique ? options_.classes * options_.world_size : options_.classes;
    place_ += step;
    const int64_t first = place_ - First();  // of all ranks
    if (first + step > Count(options_.class_index)) Restart();
  }

 private:
  int64_t First() const { return options_.unique ? options_.rank * options_.classes : 0; }

  void Restart() {
    ++orders_;
    order_ = Permutation(Count(options_.class_index), GeneratorOf(options_.seed + orders_));
    place_ = First();
  }

  const StratifiedSamplerOptions& options_;
  int64_t orders_;  // drawn so far
  std::vector<int64_t> order_;
  int64_t place_ = 0;
};

int64_t StratifiedSampler::batches_per_pass() const {
  const int64_t classes = options_.unique ? options_.classes * options_.world_size : options_.classes;
  return Count(options_.class_index) / classes;
}

int64_t StratifiedSampler::size() const {
  return options_.passes * batches_per_pass() * options_.classes * options_.samples_per_class;
}

ClassIndex StratifiedSampler::SamplesOfPass(int64_t epoch, int64_t pass) const {
  at::Generator generator = GeneratorOf(options_.seed + pass + options_.passes * options_.rank +
                                        epoch * options_.passes * options_.world_size);
  ClassIndex samples;
  for (const std::vector<int64_t>& all : options_.class_index) {
    std::vector<int64_t> own = all;
    const int64_t share = static_cast<int64_t>(all.size()) / options_.world_size;
    if (!options_.unique && share > 0) {
      own.assign(all.begin() + options_.rank * share, all.begin() + (options_.rank + 1) * share);
    }
    std::vector<int64_t> order = {0};
    if (own.size() > 1) order = Permutation(static_cast<int64_t>(own.size()), generator);
    for (int64_t& place : order) place = own[place];
    samples.push_back(std::move(order));
  }
  return samples;
}

std::vector<int64_t> StratifiedSampler::Indices(int64_t epoch) const {
  // One order at the epoch's start, and one after each pass.
  const int64_t orders_per_epoch = options_.passes + 1;
  ClassOrder order(options_, epoch * orders_per_epoch);
  std::vector<int64_t> indices;
  for (int64_t pass = 0; pass < options_.passes; ++pass) {
    const ClassIndex samples = SamplesOfPass(epoch, pass);
    std::vector<int64_t> used(samples.size(), 0);
    for (int64_t batch = 0; batch < batches_per_pass(); ++batch) {
      const std::vector<int64_t> classes(order.classes(), order.classes() + options_.classes);
      for (int64_t i = 0; i < options_.samples_per_class; ++i) {
        for (const int64_t c : classes) indices.push_back(samples[c][used[c]++]);
      }
      order.Next();
    }
  }
  return indices;
}

}  // namespace ssl
