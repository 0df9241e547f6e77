// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_extraction.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// 10 images of 1x2x2 with the pixels 4i ... 4i+3 and the label i + 100; batches of 4, 4 and 2.
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
    batch_.indices = at::arange(begin_, end, at::kLong);
    batch_.targets = labelled ? batch_.indices.add(100) : at::Tensor();
    begin_ = end;
    return &batch_;
  }

  int64_t size = 10;
  size_t views = 1;
  bool labelled = true;

 private:
  int64_t begin_ = 0;
  Batch batch_;
};

// Two layers: the pixels, and the images' first rows.
FeatureLayers TwoLayers() {
  return {{"pixels", "rows"}, [](const at::Tensor& images) -> std::vector<at::Tensor> {
            return {images.flatten(1), images.select(2, 0)};
          }};
}

TEST(FeatureExtractionTest, AllSamples_InTheOrderOfTheSource) {
  CountingSource source;
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, ExtractFeatures(source, TwoLayers(), "features", StopToken()));
  const at::Tensor pixels = at::arange(40, at::kFloat).view({10, 4});
  ASSERT_EQ(set.features.size(), 2u);
  EXPECT_TRUE(at::equal(set.features[0], pixels));
  EXPECT_TRUE(at::equal(set.features[1], pixels.slice(1, 0, 2).unsqueeze(1)));
  EXPECT_TRUE(at::equal(set.indices, at::arange(10, at::kLong)));
  EXPECT_TRUE(at::equal(set.labels, at::arange(100, 110, at::kLong)));
}

TEST(FeatureExtractionTest, ForEach_NeedsNoLabels) {
  CountingSource source;
  source.labelled = false;
  std::vector<int64_t> sizes;
  ASSERT_OK(ForEachFeatureBatch(source, TwoLayers(), "features", StopToken(), [&](const FeatureBatch& batch) {
    EXPECT_FALSE(batch.labels.defined());
    sizes.push_back(batch.features[0].size(0));
    return absl::OkStatus();
  }));
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
}

TEST(FeatureExtractionTest, ErrorOfTheConsumer_EndsIt) {
  CountingSource source;
  int calls = 0;
  const absl::Status status =
      ForEachFeatureBatch(source, TwoLayers(), "features", StopToken(), [&](const FeatureBatch& batch) {
        ++calls;
        return absl::ResourceExhaustedError("disk full");
      });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "disk full"));
  EXPECT_EQ(calls, 1);
}

TEST(FeatureExtractionTest, SeveralViews_AreRefused) {
  CountingSource source;
  source.views = 2;
  EXPECT_THAT(ExtractFeatures(source, TwoLayers(), "pixels", StopToken()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 views, expected 1")));
}

TEST(FeatureExtractionTest, MissingLabels_AreRefused) {
  CountingSource source;
  source.labelled = false;
  EXPECT_THAT(ExtractFeatures(source, TwoLayers(), "pixels", StopToken()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pixels: batches have no labels")));
}

TEST(FeatureExtractionTest, StopRequest_IsCancelled) {
  CountingSource source;
  StopToken stop;
  const FeatureLayers stopping{{"pixels", "rows"}, [&stop](const at::Tensor& images) {
                                 stop.Request(kStopUser);
                                 return TwoLayers().compute(images);
                               }};
  EXPECT_THAT(ExtractFeatures(source, stopping, "pixels", stop).status(),
              StatusIs(absl::StatusCode::kCancelled, "pixels: stopped"));
}

TEST(FeatureExtractionTest, FeatureThatIsNotFinite_IsNamedWithItsSample) {
  CountingSource source;
  const FeatureLayers layers{{"res4", "res5"}, [](const at::Tensor& images) -> std::vector<at::Tensor> {
                               const at::Tensor pixels = images.flatten(1);
                               // Pixel 24, the first of sample 6, becomes infinite.
                               return {pixels, pixels.masked_fill(pixels.eq(24), INFINITY)};
                             }};
  EXPECT_THAT(ExtractFeatures(source, layers, "features of TEST", StopToken()).status(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("features of TEST: layer 'res5' of sample 6 has values that are not finite")));
}

TEST(FeatureExtractionTest, TryFirstImage_FindsWhatWouldFail) {
  CountingSource source;
  EXPECT_OK(TryFirstImage(source, TwoLayers(), "trying"));
  const FeatureLayers failing{{"rows"}, [](const at::Tensor& images) -> std::vector<at::Tensor> {
                                EXPECT_EQ(images.size(0), 1);
                                return {images.select(9, 0)};
                              }};
  EXPECT_THAT(TryFirstImage(source, failing, "trying"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("trying")));
  source.labelled = false;
  EXPECT_THAT(TryFirstImage(source, TwoLayers(), "trying"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("trying: batches have no labels")));
  source.views = 2;
  EXPECT_THAT(TryFirstImage(source, TwoLayers(), "trying"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("trying: batches have 2 views, expected 1")));
}

TEST(FeatureExtractionTest, SourceThatEndsEarly_IsAnError) {
  CountingSource source;
  source.size = 12;
  EXPECT_THAT(ExtractFeatures(source, TwoLayers(), "pixels", StopToken()).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("10 samples of 12")));
}

TEST(FeatureExtractionTest, SourceThatGivesTooMuch_IsAnError) {
  CountingSource source;
  source.size = 7;
  EXPECT_THAT(ExtractFeatures(source, TwoLayers(), "pixels", StopToken()).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("8 samples of 7")));
}

}  // namespace
}  // namespace ssl
