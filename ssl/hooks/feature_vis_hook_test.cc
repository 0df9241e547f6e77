// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/feature_vis_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Files(const std::string& directory) {
  return PosixFileSystem().List(directory).value_or(std::vector<std::string>());
}

// Three hooks share a folder. res5 is a map of one pixel here, of which each of them warns once.
TEST(FeatureVisInARun, Drawings_AreThereAndTrainingIsBitwiseTheSame) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  const std::string hook = "{type: feature_vis, kwargs: {layer_name: [conv1, res5], freq: 4, num_images: 2}}";
  const std::string same = "{type: feature_vis, name: last, kwargs: {interpolation: area, freq: 8}}";
  const std::string other = "{type: grad_cam, kwargs: {save_dir: feat_vis, freq: 8, num_images: 1}}";
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const TinyRunResult drawn, TrainTinyRun("hooks: [" + hook + ", " + same + ", " + other + "]"));
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(drawn.state.at(file), plain.state.at(file)) << file;
  }
  EXPECT_EQ(drawn.Values("Training/Loss"), plain.Values("Training/Loss"));
  EXPECT_EQ(drawn.ImageNames(), (std::set<std::string>{"feature_vis/conv1_0", "feature_vis/conv1_1",
                                                       "feature_vis/res5_0", "feature_vis/res5_1", "grad_cam/res5_0",
                                                       "last/res5_0", "last/res5_1", "last/res5_2", "last/res5_3"}));
  EXPECT_THAT(Files(drawn.directory + "/feat_vis"), ElementsAre("iteration_4", "iteration_8"));
  EXPECT_THAT(Files(drawn.directory + "/feat_vis/iteration_4"),
              ElementsAre("feature_vis.conv1_0.png", "feature_vis.conv1_1.png", "feature_vis.res5_0.png",
                          "feature_vis.res5_1.png"));
  EXPECT_THAT(Files(drawn.directory + "/feat_vis/iteration_8"),
              ElementsAre("feature_vis.conv1_0.png", "feature_vis.conv1_1.png", "feature_vis.res5_0.png",
                          "feature_vis.res5_1.png", "grad_cam.res5_0.png", "last.res5_0.png", "last.res5_1.png",
                          "last.res5_2.png", "last.res5_3.png"));
  EXPECT_THAT(log.warnings, UnorderedElementsAre(AllOf(HasSubstr("feature_vis: stage 'res5' is a map of one pixel"),
                                                       HasSubstr("layer_name names another stage")),
                                                 HasSubstr("last: stage 'res5' is a map of one pixel"),
                                                 HasSubstr("grad_cam: stage 'res5' is a map of one pixel")));
}

TEST(FeatureVisInARun, StageThatIsNone_IsNamedAtTheStart) {
  const std::string directory = MakeTempDir("feature_vis");
  const auto start = [&](const std::string& kwargs) {
    const auto session =
        OpenTinyRun("CHECKPOINT: {DIR: " + directory + "}\nhooks: [{type: feature_vis, kwargs: {" + kwargs + "}}]");
    return session.ok() ? (*session)->Start() : session.status();
  };
  EXPECT_THAT(
      start("layer_name: [res9]"),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("hook 'feature_vis'"), HasSubstr("layer_name is 'res9'"), HasSubstr("did you mean"))));
  EXPECT_THAT(OpenTinyRun("hooks: [{type: feature_vis}]").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("expected a run directory")));
}

TEST(FeatureVisInARun, FolderOutsideTheRun_IsRefused) {
  const std::string directory = MakeTempDir("feature_vis");
  for (const std::string hook : {"feature_vis", "grad_cam"}) {
    for (const std::string folder :
         {"..", "../other", "a/../../other", "/tmp/other", "''", ".", "checkpoints", "./checkpoints/step_3"}) {
      EXPECT_THAT(
          OpenTinyRun("CHECKPOINT: {DIR: " + directory + "}\nhooks: [{type: " + hook +
                      ", kwargs: {save_dir: " + folder + "}}]")
              .status(),
          StatusIs(absl::StatusCode::kInvalidArgument,
                   AllOf(HasSubstr("test.yaml:2: config.hooks.0.kwargs.save_dir is '"), HasSubstr("inside the run's"))))
          << hook << " " << folder;
    }
  }
}

TEST(FeatureVisInARun, PooledStage_IsAnError) {
  EXPECT_THAT(TrainTinyRun("hooks: [{type: feature_vis, kwargs: {layer_name: [res5avg], freq: 1}}]").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hook 'feature_vis' (OnStart"), HasSubstr("'res5avg', which is pooled"),
                             HasSubstr("res4, res5"))));
}

// The stage "map" is the images.
class MapModel : public FakeModel {
 public:
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override {
    return std::vector<at::Tensor>(requests.size(), images);
  }
  std::vector<std::string> feature_names() const override { return {"map", "c", "b_c"}; }
  std::vector<std::string> block_names() const override { return feature_names(); }
  void SetTraining(bool training) override { modes.push_back(training); }
  std::vector<bool> modes;
};

TEST(FeatureVisHook, TwoRanks_OneDrawsAndAnErrorStopsBoth) {
  const std::string directory = MakeTempDir("feature_vis");
  std::vector<absl::Status> statuses(2);
  ThreadWorld world(2, absl::Seconds(30));
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    FeatureVisOptions options;
    options.layer_name = {"map"};
    options.freq = 1;
    FeatureVisHook hook(options, PosixFileSystem(), {directory, ""});
    FakeStep step(communicator);
    MapModel model;
    Batch batch;
    batch.views = {at::rand({3, 3, 8, 8})};
    StepContext context{step.state, model, nullptr, communicator, step.metrics, step.stop, nullptr};
    context.batch = &batch;
    context.state.iteration = 1;
    absl::Status status = hook.OnStart(context);
    status.Update(hook.OnStep(context));
    EXPECT_THAT(model.modes,
                communicator.rank() == 0 ? ElementsAre(false, true) : testing::Matcher<std::vector<bool>>(IsEmpty()));
    batch.views.clear();
    statuses[communicator.rank()] = hook.OnStep(context);
    return status;
  }));
  EXPECT_THAT(Files(directory + "/iteration_1"),
              ElementsAre("feature_vis.map_0.png", "feature_vis.map_1.png", "feature_vis.map_2.png"));
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("0 views")));
  EXPECT_THAT(statuses[1], StatusIs(absl::StatusCode::kAborted, HasSubstr("failed on rank ")));
}

TEST(FeatureVisHook, NamesThatJoinToTheSame_AreTwoFiles) {
  const std::string directory = MakeTempDir("feature_vis");
  FakeStep step;
  MapModel model;
  Batch batch;
  batch.views = {at::rand({1, 3, 8, 8})};
  StepContext context{step.state, model, nullptr, step.context.communicator, step.metrics, step.stop, nullptr};
  context.batch = &batch;
  context.state.iteration = 1;
  for (const auto& [name, stage] : {std::pair("a", "b_c"), std::pair("a_b", "c")}) {
    FeatureVisOptions options;
    options.layer_name = {stage};
    options.freq = 1;
    FeatureVisHook hook(options, PosixFileSystem(), {directory, ""});
    hook.set_instance_name(name);
    ASSERT_OK(hook.OnStart(context));
    ASSERT_OK(hook.OnStep(context));
  }
  EXPECT_THAT(Files(directory + "/iteration_1"), ElementsAre("a.b_c_0.png", "a_b.c_0.png"));
}

}  // namespace
}  // namespace ssl
