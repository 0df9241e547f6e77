// SPDX-License-Identifier: Apache-2.0
//
// Activation checkpointing under several ranks: gradients that come out of a second forward pass are reduced within
// backward as those of a plain run are, to the bit.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tanh.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/gradient_reducer.h"
#include "ssl/core/model.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/models/recompute.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int64_t kRanks = 2;
constexpr int64_t kBlocks = 3;

// Blocks that each batch goes through at two resolutions, as views of a multi-crop do.
absl::Status Train(Communicator& communicator, std::optional<at::ScalarType> compression, bool recompute,
                   std::vector<at::Tensor>* gradients) {
  CollectiveCounts counts;
  CountingCommunicator counted(communicator, &counts);
  std::vector<NamedParameter> parameters;
  std::vector<Recomputable> blocks;
  for (int64_t i = 0; i < kBlocks; ++i) {
    const at::Tensor weight = (at::arange(36, at::kFloat).view({6, 6}) * (i + 0.3)).sin().requires_grad_(true);
    parameters.push_back({absl::StrCat("block", i), weight});
    blocks.push_back(
        {[weight](const at::Tensor& input, NormMode) { return at::tanh(input.matmul(weight)); }, {weight}});
  }
  GradientReducer reducer(parameters, {1, 1, compression}, counted);
  int64_t started_before_first_block = 0;
  parameters[0].value.register_hook(
      [&](const at::Tensor&) { started_before_first_block = counts.Take()["all-reduce"]; });
  for (int64_t step = 0; step < 2; ++step) {
    at::Tensor loss = at::arange(1, at::kFloat).sum();
    for (const int64_t rows : {8, 3}) {
      at::Tensor value = (at::arange(rows * 6, at::kFloat).view({rows, 6}) + communicator.rank() + step).cos();
      for (const Recomputable& block : blocks) {
        value = recompute ? RunAndRecompute(block, value) : block.run(value, NormMode::kTraining);
      }
      loss = loss + value.pow(2).mean();
    }
    for (NamedParameter& parameter : parameters) parameter.value.mutable_grad().reset();
    SSL_RETURN_IF_ERROR(reducer.StartWithBackward());
    counts.Take();
    loss.backward();
    SSL_RETURN_IF_ERROR(reducer.Reduce());
  }
  if (!recompute) {
    EXPECT_EQ(started_before_first_block, kBlocks - 1);
  }
  for (const NamedParameter& parameter : parameters) gradients->push_back(parameter.value.grad().clone());
  return absl::OkStatus();
}

TEST(RecomputeReduction, GradientsOfASecondPass_AreReducedWithinBackward) {
  EXPECT_OK(ThreadWorld(kRanks, absl::Seconds(30)).Run([](Communicator& communicator) -> absl::Status {
    for (const auto compression : {std::optional<at::ScalarType>(), std::optional<at::ScalarType>(at::kBFloat16)}) {
      std::vector<at::Tensor> plain, recomputed;
      SSL_RETURN_IF_ERROR(Train(communicator, compression, /*recompute=*/false, &plain));
      SSL_RETURN_IF_ERROR(Train(communicator, compression, /*recompute=*/true, &recomputed));
      for (int64_t i = 0; i < kBlocks; ++i) {
        EXPECT_TRUE(at::equal(plain[i], recomputed[i])) << i;
        EXPECT_NE(plain[i].abs().sum().item<float>(), 0.0F);
      }
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
