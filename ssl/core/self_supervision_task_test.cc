// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/self_supervision_task.h"

#include <ATen/ops/arange.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/register_core.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Its classes have names.
class NamedSource : public FakeSource {
 public:
  NamedSource() : FakeSource(40, 4, 0, 1) {}
  std::vector<std::string> ClassNames() const override { return {"ant", "bee"}; }
};

// Sample i has the label i.
class LabelledSource : public FakeSource {
 public:
  LabelledSource() : FakeSource(40, 4, 0, 1) {}
  absl::StatusOr<const Batch*> Next() override {
    SSL_ASSIGN_OR_RETURN(const Batch* const batch, FakeSource::Next());
    labelled_ = *batch;
    labelled_.targets = at::arange(first_, first_ + 4);
    first_ += 4;
    return &labelled_;
  }

 private:
  int64_t first_ = 0;
  Batch labelled_;
};

class Classifier : public Method {
 public:
  absl::Status ComputeLoss(StepContext& context) override { return absl::OkStatus(); }
  bool labels_are_classes() const override { return true; }
};

// Three groups of the same parameter: the schedule alone, half of it with a decay, none.
class ThreeGroups : public ParameterGrouper {
 public:
  absl::StatusOr<std::vector<ParameterGroup>> Group(std::vector<NamedParameter> parameters) const override {
    ParameterGroup group{"plain", {parameters[0].name}, {parameters[0].value}, 0.3, 0.1};
    std::vector<ParameterGroup> groups(3, group);
    groups[1].learning_rate_scale = 0.5;
    groups[1].weight_decay_schedule = "wd";
    groups[2].learning_rate_schedule = "";
    return groups;
  }
};

class SelfSupervisionTaskTest : public ::testing::Test {
 protected:
  SelfSupervisionTaskTest() : config_(FakeConfig("")) {
    EXPECT_OK(RegisterFakes(&registries_));
    EXPECT_OK(RegisterCore(&registries_));
    EXPECT_OK(registries_.batch_sources.Register(
        "noted",
        [this](const ConfigNode& node, const BuildContext& context) -> absl::StatusOr<std::unique_ptr<BatchSource>> {
          const bool is_test = &node == context.config.FindPath("DATA.TEST");
          made_.push_back(is_test ? "TEST" : "TRAIN");
          return std::make_unique<FakeSource>(is_test ? 24 : 40, 4, 0, 1);
        }));
    for (const char* split : {"TRAIN", "TEST"}) Set(absl::StrCat("DATA.", split, ".BASE_DATASET"), "noted");
  }

  void Set(const std::string& key, const std::string& value) { config_.SetPath(key, ConfigNode::Scalar(value)); }

  absl::StatusOr<std::unique_ptr<SelfSupervisionTask>> Build(HostSources sources = {},
                                                             const c10::Device& device = c10::kCPU) {
    SSL_ASSIGN_OR_RETURN(resolved_, ResolveConfig(config_, registries_));
    SSL_ASSIGN_OR_RETURN(TaskOptions options, ReadTaskOptions(resolved_));
    return SelfSupervisionTask::Build(std::move(options), {resolved_, registries_, *communicator_}, std::move(sources),
                                      device);
  }

  Registries registries_;
  ConfigNode config_;
  ConfigNode resolved_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  std::vector<std::string> made_;  // the splits whose sources were made
};

TEST_F(SelfSupervisionTaskTest, Sources_AreThoseThatItsPhasesRead) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<SelfSupervisionTask> task, Build());
  EXPECT_THAT(made_, ElementsAre("TRAIN"));
  EXPECT_THAT(task->available_splits(), ElementsAre("TRAIN"));

  made_.clear();
  Set("TEST_MODEL", "true");
  ASSERT_OK_AND_ASSIGN(task, Build());
  EXPECT_THAT(made_, ElementsAre("TRAIN", "TEST"));
  EXPECT_THAT(task->available_splits(), ElementsAre("TEST", "TRAIN"));
  EXPECT_EQ(task->num_train_samples(), 40);
  EXPECT_EQ(task->source(/*train=*/false).dataset_size(), 24);
}

TEST_F(SelfSupervisionTaskTest, OfTestsAlone_HasNothingToTrain) {
  Set("TEST_MODEL", "true");
  Set("TEST_ONLY", "true");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SelfSupervisionTask> task, Build());
  EXPECT_THAT(made_, ElementsAre("TEST"));
  EXPECT_THAT(task->available_splits(), ElementsAre("TEST"));
  EXPECT_EQ(task->num_train_samples(), 24) << "those of the test set";
  EXPECT_EQ(task->updates_per_epoch(), 0);
  EXPECT_EQ(task->state().max_iterations, 0);
  EXPECT_EQ(task->phases().size(), 2u);
}

TEST_F(SelfSupervisionTaskTest, SourcesOfAHost_AreTakenInPlaceOfTheConfiguredOnes) {
  Set("TEST_MODEL", "true");
  HostSources sources;
  sources.train = std::make_unique<FakeSource>(8, 4, 0, 1);
  const BatchSource* train = sources.train.get();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SelfSupervisionTask> task, Build(std::move(sources)));
  EXPECT_THAT(made_, ElementsAre("TEST"));
  EXPECT_EQ(&task->source(/*train=*/true), train);
  EXPECT_EQ(task->num_train_samples(), 8);
  EXPECT_EQ(task->state().max_iterations, 4);
}

TEST_F(SelfSupervisionTaskTest, Updates_LeaveOutTheBatchesThatAreTooFew) {
  Set("OPTIMIZER.grad_acc_steps", "3");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SelfSupervisionTask> task, Build());
  EXPECT_EQ(task->source(/*train=*/true).batches_per_epoch(), 10);
  EXPECT_EQ(task->updates_per_epoch(), 3);
  EXPECT_EQ(task->state().max_iterations, 6);
  EXPECT_EQ(task->state().batches_per_update, 3);
}

TEST_F(SelfSupervisionTaskTest, SchedulesWriteWhatIsDue_AndLeaveTheRest) {
  ASSERT_OK(registries_.parameter_groupers.Register("three", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<ParameterGrouper>>(std::make_unique<ThreeGroups>());
  }));
  Set("OPTIMIZER.param_group_constructor", "three");
  Set("OPTIMIZER.param_schedulers.wd.name", "linear_by_epoch");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SelfSupervisionTask> task, Build());
  const std::vector<ParameterGroup>& groups = task->optimizer().groups();
  // Half of the second of two epochs, at three quarters of the run; both schedules fall from 0.02 to 0.
  task->state().iteration = 15;
  task->state().batch_in_phase = 5;

  task->UpdateSchedules(Schedule::UpdateInterval::kStep);
  EXPECT_THAT(groups[0].learning_rate, DoubleEq(0.005));
  EXPECT_THAT(groups[1].learning_rate, DoubleEq(0.0025)) << "its scale";
  EXPECT_THAT(groups[2].learning_rate, DoubleEq(0.3)) << "no schedule";
  for (const ParameterGroup& group : groups) EXPECT_THAT(group.weight_decay, DoubleEq(0.1)) << "not due";

  task->UpdateSchedules(Schedule::UpdateInterval::kEpoch);
  EXPECT_THAT(groups[1].weight_decay, DoubleEq(0.01)) << "the value of the epoch's start";
  EXPECT_THAT(groups[0].weight_decay, DoubleEq(0.1)) << "no schedule";
  EXPECT_THAT(groups[0].learning_rate, DoubleEq(0.005)) << "not due";
}

TEST_F(SelfSupervisionTaskTest, ScheduleThatNobodyNames_IsTheConstantOne) {
  config_.SetPath("OPTIMIZER.param_schedulers", ConfigNode::Map());
  EXPECT_THAT(Build(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'constant'"))) << "the fakes have none";
}

TEST_F(SelfSupervisionTaskTest, Classes_AreNamedWhereTheyAreLearned) {
  ASSERT_OK(registries_.batch_sources.Register("named", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<BatchSource>>(std::make_unique<NamedSource>());
  }));
  ASSERT_OK(registries_.methods.Register("classifier", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Method>>(std::make_unique<Classifier>());
  }));
  Set("DATA.TRAIN.BASE_DATASET", "named");
  Set("DATA.TEST.BASE_DATASET", "named");
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<SelfSupervisionTask> task, Build());
  EXPECT_THAT(task->train_classes(), IsEmpty()) << "the method learns no classes";
  Set("LOSS.name", "classifier");
  ASSERT_OK_AND_ASSIGN(task, Build());
  EXPECT_THAT(task->train_classes(), ElementsAre("ant", "bee"));

  // Nothing says then which number training has given to which name.
  Set("TEST_ONLY", "true");
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(task, Build());
  EXPECT_THAT(task->train_classes(), IsEmpty());
  EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("config.TEST_ONLY: config.DATA.TRAIN is not read")));
}

TEST_F(SelfSupervisionTaskTest, OnADevice_BatchesLieThere_AndTheirLabelsAreCheckedBefore) {
  StandinDevice::Install();
  ASSERT_OK(registries_.methods.Register("classifier", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Method>>(std::make_unique<Classifier>());
  }));
  Set("LOSS.name", "classifier");
  config_.SetPath("MODEL.HEAD.PARAMS", ParseYaml("[[mlp, {dims: [4, 6]}]]", "test.yaml", nullptr).value());
  HostSources sources;
  sources.train = std::make_unique<LabelledSource>();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SelfSupervisionTask> task,
                       Build(std::move(sources), StandinDevice::device()));
  EXPECT_EQ(task->model().Parameters()[0].value.device(), StandinDevice::device());
  task->state().training = true;
  task->state().phase_index = 0;
  ASSERT_OK(task->StartEpoch(/*first_batch=*/0));
  const TransferLog log;
  ASSERT_OK_AND_ASSIGN(const Batch* const batch, task->NextBatch());
  EXPECT_EQ(batch->views[0].device(), StandinDevice::device());
  EXPECT_EQ(batch->targets.device(), StandinDevice::device());
  EXPECT_TRUE(batch->indices.is_cpu());
  EXPECT_THAT(task->NextBatch(), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("sample 2 of the batch has the label 6, expected one of 0 to 5")));
  EXPECT_THAT(log.reads(), IsEmpty());
}

TEST_F(SelfSupervisionTaskTest, State_IsThatOfThePartsThatItHas) {
  const auto scopes = [this] {
    std::set<std::string> found;
    const absl::StatusOr<std::unique_ptr<SelfSupervisionTask>> task = Build();
    EXPECT_OK(task);
    const absl::StatusOr<std::vector<NamedTensor>> state = CollectState(**task);
    for (const NamedTensor& entry : *state) found.insert(entry.name.substr(0, entry.name.rfind('/')));
    return found;
  };
  EXPECT_THAT(scopes(), ElementsAre("method", "model", "optimizer", "train_state"));
  config_.SetPath("METERS.names", ConfigNode::FromStrings({"counting_meter"}));
  Set("MODEL.AMP_PARAMS.USE_AMP", "true");
  EXPECT_THAT(scopes(), ElementsAre("meters/counting_meter", "method", "model", "optimizer", "train_state"));
  Set("MODEL.AMP_PARAMS.AMP_DTYPE", "float16");
  EXPECT_THAT(scopes(), Contains("grad_scaler"));
}

}  // namespace
}  // namespace ssl
