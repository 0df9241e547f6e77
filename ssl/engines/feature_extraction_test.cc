// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_extraction.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

absl::StatusOr<FeatureSet> ExtractAlone(BatchSource& source, const FeatureLayers& layers, const std::string& what,
                                        const StopToken& stop) {
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  return ExtractFeatures(source, layers, what, stop, *alone);
}

// Two layers: the pixels, and the images' first rows.
FeatureLayers TwoLayers() {
  return {{"pixels", "rows"}, [](const at::Tensor& images) -> std::vector<at::Tensor> {
            return {images.flatten(1), images.select(2, 0)};
          }};
}

TEST(FeatureExtractionTest, AllSamples_InTheOrderOfTheSource) {
  CountingSource source;
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, ExtractAlone(source, TwoLayers(), "features", StopToken()));
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

// What one of two ranks is given of five samples: rank 0 has 0, 2, 4 and rank 1 has 1, 3 and once more 0.
class ShareSource : public BatchSource {
 public:
  explicit ShareSource(int64_t rank) {
    batch_.indices = at::arange(3, at::kLong).mul(2).add(rank).remainder(5);
    batch_.targets = batch_.indices.add(100);
    batch_.views = {batch_.indices.to(at::kFloat).view({3, 1, 1, 1}).expand({3, 1, 2, 2})};
  }
  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return 5; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    is_given_ = false;
    return absl::OkStatus();
  }
  absl::StatusOr<const Batch*> Next() override { return std::exchange(is_given_, true) ? nullptr : &batch_; }

 private:
  bool is_given_ = false;
  Batch batch_;
};

TEST(FeatureExtractionTest, RanksShareTheWork_AndEachHasAllInTheOrderOfTheData) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) -> absl::Status {
    ShareSource source(communicator.rank());
    const absl::StatusOr<FeatureSet> set = ExtractFeatures(source, TwoLayers(), "features", StopToken(), communicator);
    if (!set.ok()) return set.status();
    EXPECT_TRUE(at::equal(set->indices, at::arange(5, at::kLong)));
    EXPECT_TRUE(at::equal(set->labels, at::arange(100, 105, at::kLong)));
    EXPECT_TRUE(at::equal(set->features[0], at::arange(5, at::kFloat).unsqueeze(1).expand({5, 4})));
    EXPECT_EQ(set->features[1].sizes().vec(), (std::vector<int64_t>{5, 1, 2}));
    return absl::OkStatus();
  }));
}

TEST(FeatureExtractionTest, AStopOnOneRankStopsAll) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) -> absl::Status {
    ShareSource source(communicator.rank());
    StopToken stop;
    if (communicator.rank() == 1) stop.Request(kStopUser);
    const absl::Status status = ExtractFeatures(source, TwoLayers(), "pixels", stop, communicator).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, HasSubstr("pixels: stopped")));
    return absl::OkStatus();
  }));
}

TEST(FeatureExtractionTest, SeveralViews_AreRefused) {
  CountingSource source;
  source.views = 2;
  EXPECT_THAT(ExtractAlone(source, TwoLayers(), "pixels", StopToken()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 views, expected 1")));
}

TEST(FeatureExtractionTest, MissingLabels_AreRefused) {
  CountingSource source;
  source.labelled = false;
  EXPECT_THAT(ExtractAlone(source, TwoLayers(), "pixels", StopToken()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pixels: batches have no labels")));
}

TEST(FeatureExtractionTest, StopRequest_IsCancelled) {
  CountingSource source;
  StopToken stop;
  const FeatureLayers stopping{{"pixels", "rows"}, [&stop](const at::Tensor& images) {
                                 stop.Request(kStopUser);
                                 return TwoLayers().compute(images);
                               }};
  EXPECT_THAT(ExtractAlone(source, stopping, "pixels", stop).status(),
              StatusIs(absl::StatusCode::kCancelled, "pixels: stopped"));
}

TEST(FeatureExtractionTest, FeatureThatIsNotFinite_IsNamedWithItsSample) {
  CountingSource source;
  const FeatureLayers layers{{"res4", "res5"}, [](const at::Tensor& images) -> std::vector<at::Tensor> {
                               const at::Tensor pixels = images.flatten(1);
                               // Pixel 24, the first of sample 6, becomes infinite.
                               return {pixels, pixels.masked_fill(pixels.eq(24), INFINITY)};
                             }};
  EXPECT_THAT(ExtractAlone(source, layers, "features of TEST", StopToken()).status(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("features of TEST: layer 'res5' of sample 6 has values that are not finite")));
}

TEST(FeatureExtractionTest, ExhaustedMemoryOfTheDevice_SaysWhatToLowerInAnEvaluation) {
  CountingSource source;
  const FeatureLayers full{{"rows"}, [](const at::Tensor&) -> std::vector<at::Tensor> {
                             TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory");
                           }};
  const auto says_it = StatusIs(
      absl::StatusCode::kResourceExhausted,
      AllOf(
          HasSubstr("features: CUDA out of memory. Lower config.DATA.TRAIN.BATCHSIZE_PER_REPLICA and config.DATA.TEST"),
          Not(HasSubstr("OPTIMIZER"))));
  EXPECT_THAT(ExtractAlone(source, full, "features", StopToken()), says_it);
  EXPECT_THAT(TryFirstImage(source, full, "features"), says_it);
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
  EXPECT_THAT(ExtractAlone(source, TwoLayers(), "pixels", StopToken()).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("10 samples of 12")));
}

TEST(FeatureExtractionTest, SourceThatGivesTooMuch_IsAnError) {
  CountingSource source;
  source.size = 7;
  EXPECT_THAT(ExtractAlone(source, TwoLayers(), "pixels", StopToken()).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("8 samples of 7")));
}

// Rows of the images 4, 5, 6, whose features are 0, 1, 2.
FeatureSet ThreeRows() {
  return {{at::arange(3, at::kFloat).view({3, 1})}, at::arange(3, at::kLong), at::arange(4, 7, at::kLong)};
}

TEST(DropRowsTest, TakesOutThoseOfTheImages) {
  FeatureSet set = ThreeRows();
  ASSERT_OK(DropRows({{1, ReadFault::kEmpty}, {5, ReadFault::kEmpty}}, "features", &set));
  EXPECT_TRUE(at::equal(set.indices, at::tensor(std::vector<int64_t>{4, 6}, at::kLong)));
  EXPECT_TRUE(at::equal(set.labels, at::tensor(std::vector<int64_t>{0, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(set.features[0].flatten(), at::tensor(std::vector<float>{0, 2})));
}

TEST(DropRowsTest, WithoutLabels) {
  FeatureSet set = ThreeRows();
  set.labels = at::Tensor();
  ASSERT_OK(DropRows({{4, ReadFault::kEmpty}}, "features", &set));
  EXPECT_EQ(set.indices.size(0), 2);
}

TEST(DropRowsTest, NoneLeft_IsAnError) {
  FeatureSet set = ThreeRows();
  EXPECT_THAT(
      DropRows({{4, ReadFault::kEmpty}, {5, ReadFault::kEmpty}, {6, ReadFault::kEmpty}}, "features of TEST", &set),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("features of TEST: none of the 3 images can be read")));
}

}  // namespace
}  // namespace ssl
