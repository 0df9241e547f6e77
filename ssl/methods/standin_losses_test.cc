// SPDX-License-Identifier: Apache-2.0
//
// Every registered loss on fixed outputs: on a device, loss and gradients are the CPU's, bit for bit, and a step passes
// nothing between host and device. The device is the stand-in of the tests (docs/devices.md).
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/one_hot.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/method.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/methods/register_methods.h"
#include "ssl/methods/testing/head_model.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kBatch = 8;
constexpr int64_t kUpdates = 3;

// They need a model of their own: whole runs, in ssl/testing/standin_methods_test.cc.
const std::set<std::string>& LossesOfWholeRuns() {
  static const auto* const names = new std::set<std::string>{"moco_loss", "swav_loss"};
  return *names;
}

// LOSS.<name> of losses that read embeddings of two views; all others get scores of one, and labels.
const std::map<std::string, std::string>& LossesOfTwoViews() {
  static const auto* const sections = new std::map<std::string, std::string>{
      {"barlow_twins_loss", "{embedding_dim: 3}"},
      {"multicrop_simclr_info_nce_loss", "{num_crops: 2, buffer_params: {embedding_dim: 3}}"},
      {"simclr_info_nce_loss", "{buffer_params: {embedding_dim: 3}}"},
  };
  return *sections;
}

// Class numbers, or a value for each score.
at::Tensor Targets(bool are_classes) {
  const at::Tensor numbers = at::arange(kBatch, at::kLong).remainder(kDim);
  return are_classes ? numbers : at::one_hot(numbers, kDim);
}

// Losses and gradients of a few batches.
struct Steps {
  std::vector<at::Tensor> tensors;
  TransferCounts reads;
  TransferCounts uploads;  // but of the first step, which may bring constants
};

class StandinLossesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StandinDevice::Install();
    ASSERT_OK(RegisterMethods(&registries_));
  }

  std::unique_ptr<Method> Make(const std::string& name) {
    const auto section = LossesOfTwoViews().find(name);
    const std::string text = section != LossesOfTwoViews().end() ? section->second : "{}";
    const ConfigNode params = ParseYaml(text, "test.yaml", nullptr).value();
    const ConfigNode config = registries_.options.Defaults();
    absl::StatusOr<std::unique_ptr<Method>> method =
        registries_.methods.Make(name, params, {config, registries_, *communicator_, /*seed=*/1, ""});
    EXPECT_OK(method);
    return method.ok() ? *std::move(method) : nullptr;
  }

  void Step(Method& method, const at::Tensor& outputs, StepContext& context, Steps* steps) {
    context.outputs = {outputs};
    ASSERT_OK(method.ComputeLoss(context));
    context.loss.backward();
    ASSERT_OK(method.Advance(context));
    steps->tensors.push_back(context.loss.detach());
    steps->tensors.push_back(outputs.grad());
  }

  Steps Run(const std::string& name, const at::Device& device) {
    Steps steps;
    const std::unique_ptr<Method> method = Make(name);
    if (method == nullptr) return steps;
    const int64_t views = static_cast<int64_t>(LossesOfTwoViews().count(name)) + 1;
    HeadModel model;
    TrainState state;
    MetricStore metrics;
    StopToken stop;
    Batch batch;
    batch.indices = at::arange(kBatch, at::kLong);
    batch.targets = Targets(method->labels_are_classes()).to(device);
    batch.views.resize(static_cast<size_t>(views));
    StepContext context{state, model, nullptr, *communicator_, metrics, stop, nullptr};
    context.batch_size = kBatch;
    context.batch = &batch;
    EXPECT_OK(method->Prepare(context));
    std::vector<at::Tensor> outputs;
    for (int64_t i = 0; i < kUpdates; ++i) {
      outputs.push_back(Wave(views * kBatch, 0.3 * static_cast<double>(i)).to(device).requires_grad_());
    }
    const TransferLog log;
    Step(*method, outputs[0], context, &steps);
    const TransferLog later;
    for (int64_t i = 1; i < kUpdates; ++i) Step(*method, outputs[static_cast<size_t>(i)], context, &steps);
    steps.reads = log.reads();
    steps.uploads = later.uploads();
    return steps;
  }

  Registries registries_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(StandinLossesTest, EachLoss_IsTheCpusAndPassesNothing) {
  for (const std::string& name : registries_.methods.Names()) {
    if (LossesOfWholeRuns().count(name) > 0) continue;
    SCOPED_TRACE(name);
    const Steps expected = Run(name, at::kCPU);
    const Steps found = Run(name, StandinDevice::device());
    EXPECT_THAT(found.reads, IsEmpty());
    EXPECT_THAT(found.uploads, IsEmpty());
    ASSERT_EQ(expected.tensors.size(), static_cast<size_t>(2 * kUpdates));
    ASSERT_EQ(found.tensors.size(), expected.tensors.size());
    for (size_t i = 0; i < expected.tensors.size(); ++i) {
      EXPECT_EQ(found.tensors[i].device(), StandinDevice::device()) << i;
      EXPECT_TRUE(at::equal(found.tensors[i].to(at::kCPU), expected.tensors[i])) << i;
    }
    EXPECT_FALSE(at::equal(expected.tensors[0], expected.tensors[2])) << "batches differ";
  }
}

}  // namespace
}  // namespace ssl
