// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/held_batches.h"

#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/no_model.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// A source with one buffer, as loaders have it: each batch takes the place of the one before, with a seed of its own.
class BufferedBatches : public UpdateBatches {
 public:
  explicit BufferedBatches(StepContext* context) : context_(*context) {}

  absl::Status Next() override {
    const double value = static_cast<double>(++taken);
    buffer_.views = {at::full({rows, 2}, value), at::full({rows, 3}, -value)};
    buffer_.targets = at::full({rows}, taken, at::kLong);
    buffer_.indices = at::full({rows}, 10 * taken, at::kLong);
    if (has_gaps) buffer_.views[0] = at::full({rows, 6}, value).narrow(1, 0, 2);
    if (has_gaps) buffer_.targets = at::full({1, 1}, taken, at::kLong).expand({rows, 2});
    context_.batch = &buffer_;
    SeedForBatch(/*seed=*/1, /*rank=*/0, /*phase=*/0, taken);
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    ++finished;
    return absl::OkStatus();
  }
  void Count() override { ++counted; }

  int64_t rows = 4;
  bool has_gaps = false;
  int64_t taken = 0;
  int finished = 0;
  int counted = 0;

 private:
  StepContext& context_;
  Batch buffer_;
};

class HeldBatchesTest : public ::testing::Test {
 protected:
  HeldBatchesTest() { context_.batches_per_update = 2; }

  TrainState state_;
  NoModel model_;
  MetricStore metrics_;
  StopToken stop_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  StepContext context_{state_, model_, nullptr, *communicator_, metrics_, stop_, nullptr};
  BufferedBatches batches_{&context_};
  std::vector<Batch> slots_;
};

TEST_F(HeldBatchesTest, EachBatchIsThereWhenTheNextOneHasCome) {
  HeldBatches held(&slots_, batches_, context_);
  ASSERT_OK(held.Take());
  for (const double value : {1.0, 2.0}) {
    ASSERT_OK(held.Next());
    EXPECT_EQ(context_.batch->views.at(1)[0][0].item<double>(), -value);
    EXPECT_EQ(context_.batch->targets[0].item<double>(), value);
    EXPECT_EQ(context_.batch->indices[0].item<double>(), 10 * value);
    EXPECT_EQ(context_.batch_in_update, static_cast<int64_t>(value) - 1);
    ASSERT_OK(held.Finish());
  }
  EXPECT_EQ(batches_.finished, 2);
  EXPECT_FALSE(held.Next().ok());
}

TEST_F(HeldBatchesTest, TensorsStayWhileTheyFit) {
  ASSERT_OK(HeldBatches(&slots_, batches_, context_).Take());
  const std::vector<Batch> first = slots_;
  ASSERT_OK(HeldBatches(&slots_, batches_, context_).Take());
  EXPECT_TRUE(slots_[0].views[0].is_same(first[0].views[0]));
  EXPECT_TRUE(slots_[1].targets.is_same(first[1].targets));
  EXPECT_EQ(first[1].views[0][0][0].item<double>(), 4.0) << "written over";
  batches_.rows = 3;
  ASSERT_OK(HeldBatches(&slots_, batches_, context_).Take());
  EXPECT_FALSE(slots_[0].views[0].is_same(first[0].views[0]));
  EXPECT_EQ(slots_[0].views[0].size(0), 3);
  EXPECT_EQ(first[0].views[0][0][0].item<double>(), 3.0) << "left alone";
}

TEST_F(HeldBatchesTest, TensorsWithGapsOrOverlaps_StayToo) {
  batches_.has_gaps = true;
  ASSERT_OK(HeldBatches(&slots_, batches_, context_).Take());
  const std::vector<Batch> first = slots_;
  ASSERT_OK(HeldBatches(&slots_, batches_, context_).Take());
  EXPECT_TRUE(slots_[0].views[0].is_same(first[0].views[0]));
  EXPECT_TRUE(slots_[0].targets.is_same(first[0].targets));
  EXPECT_EQ(first[0].views[0][0][0].item<double>(), 3.0) << "written over";
  EXPECT_EQ(first[0].targets[3][1].item<double>(), 3.0) << "written over";
}

TEST_F(HeldBatchesTest, EachBatchDrawsItsOwnNumbers) {
  std::vector<double> expected;
  for (const int64_t batch : {1, 2}) {
    SeedForBatch(1, 0, 0, batch);
    expected.push_back(at::rand({1}).item<double>());
  }
  HeldBatches held(&slots_, batches_, context_);
  ASSERT_OK(held.Take());
  std::vector<double> found;
  for (int batch = 0; batch < 2; ++batch) {
    ASSERT_OK(held.Next());
    found.push_back(at::rand({1}).item<double>());
    held.Count();
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(batches_.counted, 2);
  EXPECT_TRUE(held.drew_numbers());
}

TEST_F(HeldBatchesTest, OneBatchWhoseNumbersAreDrawnInPlace_IsNothingToTell) {
  context_.batches_per_update = 1;
  HeldBatches held(&slots_, batches_, context_);
  ASSERT_OK(held.Take());
  ASSERT_OK(held.Next());
  SeedForBatch(1, 0, 0, 1);
  at::rand({1});
  ASSERT_OK(held.Finish());
  EXPECT_FALSE(held.drew_numbers());
}

TEST_F(HeldBatchesTest, BatchesThatDrawNothing_AreNothingToTell) {
  HeldBatches held(&slots_, batches_, context_);
  ASSERT_OK(held.Take());
  for (int batch = 0; batch < 2; ++batch) {
    ASSERT_OK(held.Next());
    ASSERT_OK(held.Finish());
  }
  EXPECT_FALSE(held.drew_numbers());
}

}  // namespace
}  // namespace ssl
