// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_extraction.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// 10 images of 1x2x2 with the pixels 4i ... 4i+3 and the label i; batches of 4, 4 and 2.
class CountingSource : public BatchSource {
 public:
  int64_t batches_per_epoch() const override { return 3; }
  int64_t dataset_size() const override { return size; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    begin_ = 4 * first_batch;
    return absl::OkStatus();
  }
  absl::StatusOr<const Batch*> Next() override {
    if (begin_ >= 10) return nullptr;
    const int64_t end = std::min<int64_t>(begin_ + 4, 10);
    const at::Tensor images = at::arange(40, at::kFloat).view({10, 1, 2, 2}).slice(0, begin_, end);
    batch_.views.assign(views, images);
    batch_.targets = at::arange(begin_, end, at::kLong);
    batch_.indices = batch_.targets;
    begin_ = end;
    return &batch_;
  }

  int64_t size = 10;
  size_t views = 1;

 private:
  int64_t begin_ = 0;
  Batch batch_;
};

// Its stages are multiples of the pixels.
class ScalingModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return {views[0]}; }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override {
    was_training = training_;
    std::vector<at::Tensor> stages;
    for (const FeatureRequest& request : requests) stages.push_back(images.mul(request.pool_size));
    return stages;
  }
  std::vector<NamedParameter> Parameters() override { return {}; }
  void SetTraining(bool training) override { training_ = training; }

  bool was_training = true;

 private:
  bool training_ = true;
};

TEST(FeatureExtractionTest, WithoutModel_GivesThePixelsInOrder) {
  CountingSource source;
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, ExtractFeatures(nullptr, source, {{}, false, "pixels"}, StopToken()));
  EXPECT_TRUE(at::equal(set.features, at::arange(40, at::kFloat).view({10, 4})));
  EXPECT_TRUE(at::equal(set.labels, at::arange(10, at::kLong)));
}

TEST(FeatureExtractionTest, OneStage_IsTakenAsItIsInEvaluationMode) {
  CountingSource source;
  ScalingModel model;
  ASSERT_OK_AND_ASSIGN(const FeatureSet set,
                       ExtractFeatures(&model, source, {{{"res4", 2}}, false, "features"}, StopToken()));
  EXPECT_TRUE(at::equal(set.features, at::arange(40, at::kFloat).view({10, 4}).mul(2)));
  EXPECT_FALSE(model.was_training);
}

TEST(FeatureExtractionTest, SeveralStages_AreNormalizedAndJoined) {
  CountingSource source;
  ScalingModel model;
  ASSERT_OK_AND_ASSIGN(const FeatureSet set,
                       ExtractFeatures(&model, source, {{{"a", 1}, {"b", 3}}, false, "features"}, StopToken()));
  ASSERT_EQ(set.features.sizes(), at::IntArrayRef({10, 8}));
  EXPECT_NEAR(set.features[5].norm().item<double>(), std::sqrt(2.0), 1e-6);
  EXPECT_TRUE(at::allclose(set.features.slice(1, 0, 4), set.features.slice(1, 4, 8)));
}

TEST(FeatureExtractionTest, SeveralViews_AreRefused) {
  CountingSource source;
  source.views = 2;
  EXPECT_THAT(ExtractFeatures(nullptr, source, {{}, false, "pixels"}, StopToken()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 views and labels, expected 1 view")));
}

TEST(FeatureExtractionTest, StopRequest_IsCancelled) {
  CountingSource source;
  StopToken stop;
  stop.Request(kStopUser);
  EXPECT_THAT(ExtractFeatures(nullptr, source, {{}, false, "pixels"}, stop).status(),
              StatusIs(absl::StatusCode::kCancelled, "pixels: stopped"));
}

TEST(FeatureExtractionTest, SourceThatEndsEarly_IsAnError) {
  CountingSource source;
  source.size = 12;
  EXPECT_THAT(ExtractFeatures(nullptr, source, {{}, false, "pixels"}, StopToken()).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("10 samples of 12")));
}

TEST(ParseFeatureRequestsTest, StageAndPooledSize) {
  ASSERT_OK_AND_ASSIGN(const std::vector<FeatureRequest> requests, ParseFeatureRequests({"res4:2", "res5avg"}));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].name, "res4");
  EXPECT_EQ(requests[0].pool_size, 2);
  EXPECT_EQ(requests[1].name, "res5avg");
  EXPECT_EQ(requests[1].pool_size, 0);
}

TEST(ParseFeatureRequestsTest, PooledSizeThatIsNoNumber_IsRefused) {
  EXPECT_THAT(ParseFeatureRequests({"res4:two"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("feature 'res4:two'")));
}

}  // namespace
}  // namespace ssl
