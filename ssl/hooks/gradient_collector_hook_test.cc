// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/gradient_collector_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/hook.h"
#include "ssl/core/recompute_policy.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

NamedParameter Parameter(const std::string& name, int64_t size, double gradient) {
  at::Tensor value = at::zeros({size}).set_requires_grad(true);
  value.mutable_grad() = at::full({size}, gradient);
  return {name, value};
}

class GradientCollectorHookTest : public ::testing::Test {
 protected:
  GradientCollectorHookTest() {
    step_.model.parameters = {Parameter("trunk.layer1.weight", 4, 1.5), Parameter("trunk.layer1.bias", 1, -4.0),
                              Parameter("trunk.layer2.weight", 9, 2.0)};
    options_.freq = 2;
  }

  // What is reported for the update after `iteration`.
  std::map<std::string, double> Values(GradientCollectorHook& hook, int64_t iteration) {
    step_.state.iteration = iteration;
    EXPECT_OK(hook.OnBackward(step_.context));
    const absl::StatusOr<MetricReport> report = step_.metrics.Report(iteration, 0, step_.context.communicator);
    EXPECT_OK(report);
    return report.ok() ? report->values : std::map<std::string, double>();
  }

  FakeStep step_;
  GradientCollectorOptions options_;
};

TEST_F(GradientCollectorHookTest, Norms_AreThoseOfTheMatchedParametersAndOfAllTogether) {
  options_.hook_module = {"layer1"};
  GradientCollectorHook hook(options_);
  ASSERT_OK(hook.OnStart(step_.context));
  EXPECT_THAT(Values(hook, 0), IsEmpty()) << "the first update of two";
  EXPECT_THAT(Values(hook, 1), ElementsAre(Pair("Gradients/together", DoubleNear(5.0, 1e-6)),
                                           Pair("Gradients/trunk.layer1.bias", DoubleNear(4.0, 1e-6)),
                                           Pair("Gradients/trunk.layer1.weight", DoubleNear(3.0, 1e-6))));
}

TEST_F(GradientCollectorHookTest, Patterns_AreRe2AndInstancesHaveTheirNames) {
  options_.hook_module = {R"(\.bias$)", "layer2\\.w.*"};
  GradientCollectorHook hook(options_);
  hook.set_instance_name("second");
  ASSERT_OK(hook.OnStart(step_.context));
  EXPECT_THAT(Values(hook, 1), ElementsAre(Pair("Gradients/second/together", DoubleNear(std::sqrt(52.0), 1e-5)),
                                           Pair("Gradients/second/trunk.layer1.bias", DoubleNear(4.0, 1e-6)),
                                           Pair("Gradients/second/trunk.layer2.weight", DoubleNear(6.0, 1e-6))));
}

TEST_F(GradientCollectorHookTest, EmptyList_MeansAllAndWhatHasNoGradientIsLeftOut) {
  GradientCollectorHook hook(options_);
  ASSERT_OK(hook.OnStart(step_.context));
  EXPECT_THAT(Values(hook, 1), SizeIs(4));
  step_.model.parameters[2].value.mutable_grad() = at::Tensor();
  EXPECT_THAT(Values(hook, 3), SizeIs(3));
  step_.context.found_inf = at::full({}, 1.0, at::kFloat);
  EXPECT_THAT(Values(hook, 5), IsEmpty()) << "gradients that overflowed";
  step_.context.found_inf.zero_();
  EXPECT_THAT(Values(hook, 7), SizeIs(3));
}

TEST_F(GradientCollectorHookTest, EntryWithoutAParameter_IsNamed) {
  options_.hook_module = {"layer1", "trunk.layer3.weight"};
  EXPECT_THAT(GradientCollectorHook(options_).OnStart(step_.context),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("'trunk.layer3.weight'"), HasSubstr("did you mean 'trunk.layer"))));
  EXPECT_THAT(OpenTinyRun("hooks: [{type: gradient_collector, kwargs: {hook_module: ['(']}}]").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hook_module")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       OpenTinyRun("hooks: [{type: gradient_collector, kwargs: {hook_module: [layer9]}}]"));
  EXPECT_THAT(session->Start(), StatusIs(absl::StatusCode::kNotFound,
                                         HasSubstr("test.yaml:1: config.hooks.0.kwargs.hook_module has 'layer9'")));
}

TEST(GradientCollectorInARun, Norms_AreInTheReportsAndTrainingIsTheSame) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  ASSERT_OK_AND_ASSIGN(const TinyRunResult watched,
                       TrainTinyRun("hooks: [{type: gradient_collector, kwargs: {hook_module: heads, freq: 5}}]"));
  EXPECT_EQ(watched.state.at("model.safetensors"), plain.state.at("model.safetensors"));
  EXPECT_THAT(watched.Values("Gradients/together"), SizeIs(2));
  EXPECT_GT(watched.Values("Gradients/heads.0.clf.0.weight").at(0), 0.0);
}

TEST(GradientCollectorInARun, Histograms_AreInTheReports) {
  ASSERT_OK_AND_ASSIGN(
      const TinyRunResult watched,
      TrainTinyRun("hooks: [{type: gradient_collector, kwargs: {hook_module: ['clf.0.weight'], freq: 5, measure: "
                   "histogram}}]"));
  EXPECT_EQ(watched.HistogramNames(), (std::set<std::string>{"Gradients/heads.0.clf.0.weight"}));
  EXPECT_THAT(watched.Values("Gradients/heads.0.clf.0.weight"), IsEmpty());
  EXPECT_THAT(watched.Values("Gradients/together"), SizeIs(2));
}

// A real model: convolutions, batch norm, two resolutions.
TEST(GradientCollectorRunTest, GradientsOfModules_AreReportedAndTrainingStaysAsItIs) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  for (const std::string type : {"output", "input"}) {
    ASSERT_OK_AND_ASSIGN(const TinyRunResult watched,
                         TrainTinyRun("hooks: [{type: gradient_collector, kwargs: {hook_module: [layer4], grad_type: " +
                                      type + ", freq: 5}}]"));
    EXPECT_EQ(watched.state, plain.state) << type;
    std::set<std::string> names;
    for (const MetricReport& report : watched.reports) {
      for (const auto& [name, value] : report.values) {
        if (absl::StartsWith(name, "Gradients/")) names.insert(name);
      }
    }
    EXPECT_THAT(names, AllOf(Not(IsEmpty()), Each(AllOf(HasSubstr("layer4"), EndsWith("/" + type))))) << type;
    for (const std::string& name : names) EXPECT_THAT(watched.Values(name), Each(Gt(0.0))) << name;
  }
}

// Recomputes everything, as a host's own hook may.
class RecomputingHook : public Hook, public RecomputePolicy {
 public:
  absl::string_view name() const override { return "recomputing"; }
  HookStage stage() const override { return HookStage::kMutate; }
  absl::Status OnStart(StepContext& context) override {
    blocks_ = context.model.block_names().size();
    context.model.SetRecomputePolicy(this);
    return absl::OkStatus();
  }
  absl::Status OnEnd(StepContext& context) override {
    context.model.SetRecomputePolicy(nullptr);
    return absl::OkStatus();
  }
  std::vector<RecomputePlan> Plan(const std::vector<PassShape>& passes) override {
    return std::vector<RecomputePlan>(passes.size(), RecomputePlan{{BlockRange{0, blocks_}}});
  }

 private:
  size_t blocks_ = 0;
};

// They used to be reported, all with the gradient of the part.
TEST(GradientCollectorRunTest, ModulesThatAHostsPolicyRecomputes_AreLeftOutWithAWarning) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       OpenTinyRun("hooks: [{type: gradient_collector, kwargs: {grad_type: output, freq: 1}}]"));
  std::vector<MetricReport> reports;
  session->metrics().AddSink(std::make_unique<MemorySink>(&reports));
  ASSERT_OK(session->AddHook(std::make_unique<RecomputingHook>()));
  const CapturedLog log;
  ASSERT_OK(session->Train());
  std::set<std::string> names;
  for (const MetricReport& report : reports) {
    for (const auto& [name, value] : report.values) {
      if (absl::StartsWith(name, "Gradients/")) names.insert(name);
    }
  }
  EXPECT_THAT(names, AllOf(Not(IsEmpty()), Each(HasSubstr("Gradients/heads."))));
  EXPECT_THAT(log.warnings,
              Contains(AllOf(HasSubstr("gradient_collector: trunk."), HasSubstr(" are left out: each "))));
}

// A first layer's input are images: there is no gradient, and none that vanishes.
TEST(GradientCollectorRunTest, InputsOfTheFirstLayer_AreNotReported) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult watched,
                       TrainTinyRun("hooks: [{type: gradient_collector, kwargs: {hook_module: trunk, grad_type: input, "
                                    "freq: 5}}]"));
  EXPECT_THAT(watched.Values("Gradients/trunk.conv1/input"), IsEmpty());
  EXPECT_THAT(watched.Values("Gradients/trunk.bn1/input"), AllOf(SizeIs(2), Each(Gt(0.0))));
}

// A part that runs again is one operation of the graph: all its modules would have the gradient behind it.
TEST_F(GradientCollectorHookTest, ModulesBesideActivationCheckpointing_AreRefused) {
  const std::string outputs = "{type: gradient_collector, kwargs: {grad_type: output}}";
  const std::string parts =
      "MODEL: {ACTIVATION_CHECKPOINTING: {USE_ACTIVATION_CHECKPOINTING: True, NUM_ACTIVATION_CHECKPOINTING_SPLITS: "
      "2}}\n";
  EXPECT_THAT(OpenTinyRun(parts + "hooks: [" + outputs + "]").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:2: config.hooks.0.kwargs.grad_type is output, and "),
                             HasSubstr("USE_ACTIVATION_CHECKPOINTING is true"), HasSubstr("expected parameter, or"))));
  EXPECT_THAT(OpenTinyRun("hooks: [" + outputs + ", {type: memory_checkpoint}]").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.hooks.1 is memory_checkpoint")));
  EXPECT_OK(OpenTinyRun("hooks: [" + outputs + ", {type: memory_checkpoint, kwargs: {enable: False}}]").status());
  EXPECT_OK(OpenTinyRun(parts + "hooks: [{type: gradient_collector}]").status());
}

TEST_F(GradientCollectorHookTest, HistogramsOfModules_AreRefused) {
  Registries registries;
  ASSERT_OK(RegisterGradientCollectorHook(&registries));
  ASSERT_OK_AND_ASSIGN(const ConfigNode params,
                       ParseYaml("{measure: histogram, grad_type: output}", "test.yaml", nullptr));
  const ConfigNode config = ConfigNode::Map();
  EXPECT_THAT(registries.hooks.Make("gradient_collector", params, {config, registries, step_.context.communicator}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:1: measure is histogram, and grad_type is output")));
}

}  // namespace
}  // namespace ssl
