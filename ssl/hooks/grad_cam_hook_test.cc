// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/grad_cam_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/data/image/decode_png.h"
#include "ssl/data/image/image.h"
#include "ssl/hooks/heat_map.h"
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
using ::testing::SizeIs;

// Scores are the channels' means times `weight`, [channels, classes]; the map is the images themselves.
class LinearModel : public FakeModel {
 public:
  LinearModel()
      : weight(at::tensor({1.0, 0.0, -0.5, 2.0, 0.25, 0.0}, at::kFloat).view({3, 2}).set_requires_grad(true)) {}

  MapAndOutputs ForwardWithMap(const at::Tensor& images, const std::string& stage) override {
    const at::Tensor map = images.detach().clone().set_requires_grad(true);
    return {map, Forward({map})};
  }
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    return {at::matmul(views[0].mean({2, 3}), weight)};
  }
  std::vector<std::string> feature_names() const override { return {"map", "pooled"}; }
  std::vector<std::string> block_names() const override { return {"map.0", "map.1"}; }

  at::Tensor weight;
};

class GradCamHookTest : public ::testing::Test {
 protected:
  GradCamHookTest() {
    options_.layer_name = "map";
    options_.freq = 3;
    batch_.views = {at::rand({2, 3, 8, 8})};
    batch_.targets = at::tensor({1, 0}, at::kLong);
    context_.batch = &batch_;
    step_.state.iteration = 3;
    step_.state.max_iterations = 6;
  }

  absl::Status Run() {
    GradCamHook hook(options_, PosixFileSystem(), {directory_, ""});
    const absl::Status status = hook.OnStart(context_);
    return status.ok() ? hook.OnStep(context_) : status;
  }

  // Whether the drawing of image `index` shows the map [8, 8].
  void ExpectDrawn(int64_t index, const at::Tensor& map) {
    ASSERT_OK_AND_ASSIGN(const std::string bytes,
                         PosixFileSystem().Read(absl::StrCat(directory_, "/iteration_3/grad_cam.map_", index, ".png")));
    Image image;
    ASSERT_OK(DecodePng(bytes, DecodeLimits(), &image));
    const at::Tensor expected =
        DrawOverImages(ResizeMaps(map.unsqueeze(0), 224, Interpolation::kLinear), batch_.views[0].narrow(0, index, 1));
    ASSERT_EQ(image.size_bytes(), expected.numel());
    const uint8_t* pixels = expected.const_data_ptr<uint8_t>();
    int64_t largest = 0;
    for (int64_t i = 0; i < expected.numel(); ++i) {
      largest = std::max<int64_t>(largest, std::abs(int{pixels[i]} - int{image.pixels()[i]}));
    }
    EXPECT_LE(largest, 1) << "image " << index;
  }

  const std::string directory_ = MakeTempDir("grad_cam");
  GradCamOptions options_;
  FakeStep step_;
  LinearModel model_;
  Batch batch_;
  StepContext context_{step_.state, model_, nullptr, step_.context.communicator, step_.metrics, step_.stop, nullptr};
};

// The positive part of the sum over channels k of weights[k] * image[k], stretched.
at::Tensor Expected(const at::Tensor& image, const std::vector<double>& weights) {
  const at::Tensor cam = (image * at::tensor(weights, at::kFloat).view({3, 1, 1})).sum(0).relu();
  return (cam - cam.min()) / (cam.max() - cam.min());
}

TEST_F(GradCamHookTest, ClassMap_WeighsChannelsByTheClassesWeights) {
  ASSERT_OK(Run());
  ExpectDrawn(0, Expected(batch_.views[0][0], {0.0, 2.0, 0.0}));    // class 1
  ExpectDrawn(1, Expected(batch_.views[0][1], {1.0, -0.5, 0.25}));  // class 0
  EXPECT_FALSE(model_.weight.grad().defined()) << "parameters get no gradient";
}

TEST_F(GradCamHookTest, SimilarityMap_IsThatOfTheCosineToTheSecondView) {
  batch_.views.push_back(at::rand({2, 3, 4, 4}));
  options_.num_images = 1;
  ASSERT_OK(Run());
  // d cos(a, b) / d a = b / (|a| |b|) - cos a / |a|^2, and a = mean(map) W.
  const at::Tensor weight = model_.weight.detach();
  const at::Tensor a = at::matmul(batch_.views[0][0].mean({1, 2}), weight);
  const at::Tensor b = at::matmul(batch_.views[1][0].mean({1, 2}), weight);
  const at::Tensor cosine = a.dot(b) / (a.norm() * b.norm());
  const at::Tensor gradient = b / (a.norm() * b.norm()) - cosine * a / a.dot(a);
  const at::Tensor channels = at::matmul(weight, gradient);
  ExpectDrawn(0, Expected(batch_.views[0][0],
                          {channels[0].item<double>(), channels[1].item<double>(), channels[2].item<double>()}));
  EXPECT_THAT(PosixFileSystem().List(directory_ + "/iteration_3").value(), ElementsAre("grad_cam.map_0.png"));
}

TEST_F(GradCamHookTest, PooledStage_IsRefusedAtTheStart) {
  options_.layer_name = "pooled";
  GradCamHook hook(options_, PosixFileSystem(), {directory_, ""});
  EXPECT_THAT(hook.OnStart(context_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layer_name is 'pooled', which is pooled to one place, expected a stage that is a "
                                 "map: map")));
}

// Of a first batch alone nothing follows for the ones that are drawn.
TEST_F(GradCamHookTest, FirstBatchThatLacksWhatTheTargetNeeds_IsAWarning) {
  const auto warnings = [this] {
    GradCamHook hook(options_, PosixFileSystem(), {directory_, ""});
    const CapturedLog log;
    EXPECT_OK(hook.OnStart(context_));
    context_.outputs = model_.Forward(batch_.views);
    for (int batch = 0; batch < 2; ++batch) {
      EXPECT_OK(hook.OnBatchStart(context_));
      EXPECT_OK(hook.OnForward(context_));
    }
    return log.warnings;
  };
  EXPECT_THAT(warnings(), IsEmpty());
  options_.target = "similarity";
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("grad_cam: the batch has 1 view, so that such batches are not "),
                                            HasSubstr("similarity two views"))));
  batch_.views.push_back(batch_.views[0]);
  EXPECT_THAT(warnings(), IsEmpty());
  options_.target = "class";
  batch_.targets = at::Tensor();
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("images have no classes")));
  step_.state.training = false;
  EXPECT_THAT(warnings(), IsEmpty()) << "nothing is drawn in test phases";
  step_.state.training = true;
  step_.state.max_iterations = 5;
  EXPECT_THAT(warnings(), IsEmpty()) << "updates 4 and 5 are left, and 6 would be drawn next";
}

TEST_F(GradCamHookTest, LaterBatches_AreDrawnWhenTheyHaveIt) {
  options_.target = "similarity";
  GradCamHook hook(options_, PosixFileSystem(), {directory_, ""});
  ASSERT_OK(hook.OnStart(context_));
  ASSERT_OK(hook.OnBatchStart(context_));
  batch_.views.push_back(at::rand({2, 3, 8, 8}));
  ASSERT_OK(hook.OnStep(context_));
  EXPECT_THAT(PosixFileSystem().List(directory_ + "/iteration_3").value(), SizeIs(2));
}

// An observer ends no run over the images of one batch.
TEST_F(GradCamHookTest, BatchThatDoesNotFit_IsLeftOut) {
  options_.freq = 1;
  GradCamHook hook(options_, PosixFileSystem(), {directory_, ""});
  ASSERT_OK(hook.OnStart(context_));
  const CapturedLog log;
  for (const int64_t unlabelled : {2, -1}) {  // of two classes
    batch_.targets = at::tensor({int64_t{1}, unlabelled}, at::kLong);
    ASSERT_OK(hook.OnStep(context_));
  }
  EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("an image's class has no score"))) << "once";
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/iteration_3"));
  batch_.targets = at::tensor({1, 0}, at::kLong);
  ASSERT_OK(hook.OnStep(context_));
  EXPECT_THAT(PosixFileSystem().List(directory_ + "/iteration_3").value(), SizeIs(2));
}

class UnlabelledSource : public BatchSource {
 public:
  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return 2; }
  bool has_labels() const override { return false; }
  absl::Status StartEpoch(int64_t, int64_t) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override { return nullptr; }
};

// Before anything is learned.
TEST_F(GradCamHookTest, ClassesOfASourceWithoutLabels_AreRefused) {
  const UnlabelledSource source;
  context_.source = &source;
  const auto start = [this] {
    return GradCamHook(options_, PosixFileSystem(), {directory_, ""}).OnPhaseStart(context_);
  };
  EXPECT_OK(start()) << "auto";
  options_.target = "class";
  EXPECT_THAT(start(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("the training data have no labels; expected labels")));
  step_.state.max_iterations = 5;
  EXPECT_OK(start()) << "nothing will be drawn";
}

TEST(GradCamInARun, Drawings_AreThereAndTrainingIsBitwiseTheSame) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  ASSERT_OK_AND_ASSIGN(
      const TinyRunResult drawn,
      TrainTinyRun("hooks: [{type: grad_cam, kwargs: {freq: 1, num_images: 2}}, {type: grad_cam, name: "
                   "early, kwargs: {layer_name: res3, freq: 10}}]"));
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(drawn.state.at(file), plain.state.at(file)) << file;
  }
  EXPECT_EQ(drawn.Values("Training/Loss"), plain.Values("Training/Loss"));
  EXPECT_EQ(drawn.ImageNames(), (std::set<std::string>{"grad_cam/res5_0", "grad_cam/res5_1", "early/res3_0",
                                                       "early/res3_1", "early/res3_2", "early/res3_3"}));
  EXPECT_THAT(PosixFileSystem().List(drawn.directory + "/grad_cam/iteration_10").value(),
              ElementsAre("early.res3_0.png", "early.res3_1.png", "early.res3_2.png", "early.res3_3.png",
                          "grad_cam.res5_0.png", "grad_cam.res5_1.png"));
}

}  // namespace
}  // namespace ssl
