// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/labelled_features.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/replaced_images.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 7;

// Sample i, of class i, is an image of one pixel with value 10 + i. A rank has one batch: samples rank, rank + ranks,
// ..., of which the first ones come again to fill it. It tells of broken images once it has handed them out.
class NumberedImages : public BatchSource, public ReplacedImages {
 public:
  NumberedImages(std::map<int64_t, ReadFault> broken, const Communicator& communicator)
      : broken_(std::move(broken)), rank_(communicator.rank()), ranks_(communicator.size()) {}

  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return kSamples; }
  absl::Status StartEpoch(int64_t, int64_t) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override {
    const int64_t samples = (kSamples + ranks_ - 1) / ranks_;
    batch_.indices = (at::arange(samples) * ranks_ + rank_).remainder(kSamples);
    batch_.targets = batch_.indices.clone();
    batch_.views = {batch_.indices.add(10).to(at::kFloat).view({samples, 1, 1, 1})};
    for (int64_t i = 0; i < samples; ++i) {
      const auto found = broken_.find(batch_.indices[i].item<int64_t>());
      if (found != broken_.end()) replaced_.insert(*found);
    }
    return &batch_;
  }
  const std::map<int64_t, ReadFault>& replaced_images() const override { return replaced_; }
  std::string ImageName(int64_t) const override { return ""; }

 private:
  const std::map<int64_t, ReadFault> broken_;
  const int64_t rank_;
  const int64_t ranks_;
  std::map<int64_t, ReadFault> replaced_;
  Batch batch_;
};

absl::StatusOr<std::optional<LabelledFeatures>> Collect(std::map<int64_t, ReadFault> broken,
                                                        Communicator& communicator) {
  auto images = std::make_unique<NumberedImages>(std::move(broken), communicator);
  LabelledSource source;
  source.images = images.get();
  source.batches = std::move(images);
  return CollectLabelledFeatures(
      source, "config.DATA.TEST", [](const at::Tensor& images) { return images.flatten(1); }, nullptr, communicator);
}

std::vector<int64_t> Values(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kLong).flatten().contiguous();
  return {values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel()};
}

// Sample 0 is also the last one of rank 1 of two, because 7 are odd.
TEST(LabelledFeaturesTest, ImagesThatCannotBeRead_AreLeftOutOnAnyNumberOfRanks) {
  for (const int64_t ranks : {1, 2}) {
    ThreadWorld world(ranks, absl::Seconds(30));
    EXPECT_OK(world.Run([](Communicator& communicator) -> absl::Status {
      const auto all = Collect({{0, ReadFault::kEmpty}, {3, ReadFault::kDamaged}}, communicator);
      EXPECT_OK(all);
      if (!all.ok() || !all->has_value()) return all.status();
      EXPECT_THAT(Values((*all)->labels), ElementsAre(1, 2, 4, 5, 6));
      EXPECT_THAT(Values((*all)->features), ElementsAre(11, 12, 14, 15, 16));
      EXPECT_EQ((*all)->unreadable, 2);
      return absl::OkStatus();
    })) << ranks
        << " ranks";
  }
}

TEST(LabelledFeaturesTest, AllImagesBroken_IsAnErrorOfAllRanks) {
  std::map<int64_t, ReadFault> broken;
  for (int64_t i = 0; i < kSamples; ++i) broken[i] = ReadFault::kMissing;
  ThreadWorld world(2, absl::Seconds(30));
  EXPECT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    EXPECT_THAT(Collect(broken, communicator).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("config.DATA.TEST: none of the 7 images can be read")));
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
