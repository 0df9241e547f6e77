// SPDX-License-Identifier: Apache-2.0
//
// The gradients of two ranks on a device: their mean is the CPU's, and nothing is read back, whoever has a gradient.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/gradient_reducer.h"
#include "ssl/core/model.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kLayers = 3;
constexpr int64_t kSteps = 6;

// Which layers have a gradient: the set of each rank changes alone, and for both together.
bool HasGradient(int64_t rank, int64_t step, int64_t layer) {
  constexpr bool kOfLayerOne[2][kSteps] = {{true, true, false, false, false, true},
                                           {true, false, false, true, false, true}};
  return layer != 1 || kOfLayerOne[rank][step];
}

using Gradients = std::vector<at::Tensor>;  // of steps and layers, copies where they lie

absl::Status ReduceSteps(const at::Device& device, const GradientReducerOptions& options, Communicator& communicator,
                         Gradients* gradients) {
  std::vector<NamedParameter> layers;
  for (int64_t i = 0; i < kLayers; ++i) {
    layers.push_back({absl::StrCat("layer", i), at::arange(8, at::kFloat).to(device).requires_grad_(true)});
  }
  GradientReducer reducer(layers, options, communicator);
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<at::Tensor> terms;
    for (int64_t i = 0; i < kLayers; ++i) {
      if (!HasGradient(communicator.rank(), step, i)) continue;
      terms.push_back((layers[i].value * layers[i].value).sum() * (0.1 * (communicator.rank() + 1 + step + i)));
    }
    at::Tensor loss = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) loss = loss + terms[i];
    SSL_RETURN_IF_ERROR(reducer.StartWithBackward());
    loss.backward();
    SSL_RETURN_IF_ERROR(reducer.Reduce());
    for (NamedParameter& layer : layers) {
      const at::Tensor& gradient = layer.value.grad();
      gradients->push_back(gradient.defined() ? gradient.clone() : at::Tensor());
      layer.value.mutable_grad().reset();
    }
  }
  return absl::OkStatus();
}

// Of each rank.
std::vector<Gradients> ReducedOn(const at::Device& device, const GradientReducerOptions& options) {
  std::vector<Gradients> gradients(2);
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    return ReduceSteps(device, options, communicator, &gradients[static_cast<size_t>(communicator.rank())]);
  }));
  return gradients;
}

void ExpectSame(const Gradients& found, const Gradients& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].defined(), expected[i].defined()) << i;
    if (!found[i].defined()) continue;
    EXPECT_TRUE(at::equal(found[i].cpu(), expected[i])) << i;
  }
}

TEST(StandinReducer, GradientsThatComeAndGo_AreTheCpusAndNothingIsRead) {
  StandinDevice::Install();
  for (const std::optional<at::ScalarType> compression :
       {std::optional<at::ScalarType>(), std::optional<at::ScalarType>(at::kBFloat16)}) {
    CapturedLog warned;
    const GradientReducerOptions options{/*bucket_bytes=*/1, /*first_bucket_bytes=*/1, compression};
    const std::vector<Gradients> expected = ReducedOn(at::kCPU, options);
    const TransferLog log;
    const std::vector<Gradients> found = ReducedOn(StandinDevice::device(), options);
    EXPECT_THAT(log.reads(), IsEmpty());
    for (size_t rank = 0; rank < 2; ++rank) ExpectSame(found[rank], expected[rank]);
    ExpectSame(expected[0], expected[1]);
    ASSERT_THAT(warned.warnings, SizeIs(2)) << "once on each device";
    EXPECT_THAT(warned.warnings[1], HasSubstr("layer1"));
  }
}

}  // namespace
}  // namespace ssl
