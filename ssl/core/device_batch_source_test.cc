// SPDX-License-Identifier: Apache-2.0
//
// On the stand-in device, where a copy beside the main stream comes as late as it may: who reads too early, or takes
// memory back too early, finds wrong numbers.
#include "ssl/core/device_batch_source.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
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
#include "ssl/core/packed_images.h"
#include "ssl/core/pinned_memory.h"
#include "ssl/core/read_ahead.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_streams.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr int64_t kBatches = 5;
constexpr int64_t kSamples = 18;  // the last batch is not full
constexpr int64_t kBatchSize = 4;
constexpr int64_t kRing = 3;
constexpr int64_t kWrongLabel = 99;

// Batch b of epoch e has the values 100 e + b. Memory that it gets back is written over at once.
class NumbersSource : public BatchSource {
 public:
  int64_t batches_per_epoch() const override { return kBatches; }
  int64_t dataset_size() const override { return kSamples; }

  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    epoch_ = epoch;
    next_ = first_batch;
    for (Batch& batch : ring_) Overwrite(batch);
    StreamLog::Note("the source starts");
    return absl::OkStatus();
  }

  absl::StatusOr<const Batch*> Next() override {
    StreamLog::Note(absl::StrCat("the source's ", next_));
    if (next_ > 0) Overwrite(ring_[(next_ - 1) % kRing]);
    if (next_ == kBatches) return nullptr;
    if (next_ == fails_at) return absl::DataLossError("image is damaged");
    return Fill(next_++);
  }

  int64_t fails_at = -1;
  int64_t wrong_label_at = -1;
  int64_t next() const { return next_; }

 protected:
  const Batch* Fill(int64_t number) {
    Batch& batch = ring_[number % kRing];
    const int64_t rows = std::min(kBatchSize, kSamples - number * kBatchSize);
    batch.views = {images_[number % kRing].narrow(0, 0, rows)};
    batch.named_inputs["other"] = others_[number % kRing].narrow(0, 0, rows);
    batch.targets = labels_[number % kRing].narrow(0, 0, rows);
    batch.indices = at::arange(rows).add_(number * kBatchSize);
    const auto value = static_cast<double>(100 * epoch_ + number);
    batch.views[0].fill_(value);
    batch.named_inputs["other"].fill_(-value);
    batch.targets.fill_(number == wrong_label_at ? kWrongLabel : number);
    return &batch;
  }

  bool has_following() const { return next_ < kBatches && next_ != fails_at; }

 private:
  static void Overwrite(Batch& batch) {
    for (at::Tensor& view : batch.views) view.fill_(-1000.0);
    if (batch.targets.defined()) batch.targets.fill_(-1000);
  }

  static std::vector<at::Tensor> Memory(at::IntArrayRef sizes, at::ScalarType type, at::MemoryFormat format) {
    std::vector<at::Tensor> memory;
    for (int64_t i = 0; i < kRing; ++i) memory.push_back(EmptyPinned(sizes, type, format, StandinDevice::device()));
    return memory;
  }

  int64_t epoch_ = 0;
  int64_t next_ = 0;
  const std::vector<at::Tensor> images_ = Memory({kBatchSize, 3, 2, 2}, at::kFloat, at::MemoryFormat::ChannelsLast);
  const std::vector<at::Tensor> others_ = Memory({kBatchSize, 5}, at::kFloat, at::MemoryFormat::Contiguous);
  const std::vector<at::Tensor> labels_ = Memory({kBatchSize}, at::kLong, at::MemoryFormat::Contiguous);
  Batch ring_[kRing];
};

class NumbersAhead : public NumbersSource, public ReadAhead {
 public:
  absl::Status PrepareFor(const c10::Device& device) override {
    prepared_for = device;
    return absl::OkStatus();
  }
  const Batch* Following() override { return is_ready && has_following() ? Fill(next()) : nullptr; }

  c10::Device prepared_for = c10::kCPU;
  bool is_ready = true;
};

absl::Status CheckLabels(const at::Tensor& targets) {
  EXPECT_TRUE(targets.is_cpu());
  if (!targets.eq(kWrongLabel).any().item<bool>()) return absl::OkStatus();
  return absl::InvalidArgumentError("a wrong label");
}

double ValueOf(const at::Tensor& tensor) {
  EXPECT_EQ(tensor.device(), StandinDevice::device());
  const at::Tensor here = tensor.to(at::kCPU, at::kDouble);
  EXPECT_TRUE(here.eq(here.flatten()[0]).all().item<bool>());
  return here.flatten()[0].item<double>();
}

class DeviceBatchSourceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  static DeviceBatchSource OnDevice(BatchSource& source) {
    return DeviceBatchSource(source, StandinDevice::device(), &CheckLabels);
  }

  // The values of the views to the end of the epoch.
  static std::vector<double> ReadOn(DeviceBatchSource& source) {
    std::vector<double> values;
    while (true) {
      const absl::StatusOr<const Batch*> batch = source.Next();
      EXPECT_OK(batch);
      if (!batch.ok() || *batch == nullptr) return values;
      values.push_back(ValueOf((*batch)->views[0]));
      EXPECT_EQ(ValueOf((*batch)->named_inputs.at("other")), -values.back());
      EXPECT_EQ(ValueOf((*batch)->targets), static_cast<int64_t>(values.back()) % 100);
      EXPECT_TRUE((*batch)->indices.is_cpu());
      EXPECT_EQ((*batch)->views[0].size(0), (*batch)->size());
      EXPECT_TRUE((*batch)->views[0].is_contiguous(at::MemoryFormat::ChannelsLast));
    }
  }

  NumbersAhead ahead_;
  NumbersSource plain_;
};

TEST_F(DeviceBatchSourceTest, Batches_AreTheSources) {
  for (NumbersSource* source : std::vector<NumbersSource*>{&ahead_, &plain_}) {
    DeviceBatchSource on_device = OnDevice(*source);
    ASSERT_OK(on_device.StartEpoch(0, 0));
    EXPECT_THAT(ReadOn(on_device), ElementsAre(0, 1, 2, 3, 4));
    ASSERT_OK(on_device.StartEpoch(1, 2));
    EXPECT_THAT(ReadOn(on_device), ElementsAre(102, 103, 104));
  }
  EXPECT_EQ(ahead_.prepared_for, StandinDevice::device());
}

// What streams are told in two steps that follow steps of the same kind.
std::vector<std::string> LogOfTwoSteps(DeviceBatchSource& source) {
  EXPECT_OK(source.StartEpoch(0, 0));
  const auto step = [&](int number) {
    EXPECT_OK(source.Next());
    StreamLog::Note(absl::StrCat("step ", number));
  };
  step(0);
  step(1);
  const StreamLog log;
  step(2);
  step(3);
  return log.entries();
}

TEST_F(DeviceBatchSourceTest, BatchThatIsAhead_IsCopiedBehindTheStepBefore_AndGivenBackBehindItsEvent) {
  DeviceBatchSource on_device = OnDevice(ahead_);
  EXPECT_THAT(
      LogOfTwoSteps(on_device),
      ElementsAre("main records", "host waits for side", "the source's 2", "main waits for side", "side waits for main",
                  "side copies", "side copies", "side copies", "side records", "step 2", "main records",
                  "host waits for side", "the source's 3", "main waits for side", "side waits for main", "side copies",
                  "side copies", "side copies", "side records", "step 3"));
}

TEST_F(DeviceBatchSourceTest, BatchThatIsDue_IsCopiedBehindTheStepBeforeTheLast) {
  DeviceBatchSource on_device = OnDevice(plain_);
  EXPECT_THAT(LogOfTwoSteps(on_device),
              ElementsAre("main records", "host waits for side", "the source's 2", "side waits for main", "side copies",
                          "side copies", "side copies", "side records", "main waits for side", "step 2",  //
                          "main records", "host waits for side", "the source's 3", "side waits for main", "side copies",
                          "side copies", "side copies", "side records", "main waits for side", "step 3"));
}

TEST_F(DeviceBatchSourceTest, FollowingBatchThatIsNotReady_IsCopiedWhenItIsDue) {
  ahead_.is_ready = false;
  DeviceBatchSource on_device = OnDevice(ahead_);
  ASSERT_OK(on_device.StartEpoch(0, 0));
  const TransferLog log;
  ASSERT_OK(on_device.Next());
  EXPECT_EQ(log.uploads().begin()->second, 1);
  ahead_.is_ready = true;
  ASSERT_OK(on_device.Next());
  EXPECT_EQ(log.uploads().begin()->second, 3);
  EXPECT_THAT(ReadOn(on_device), ElementsAre(2, 3, 4));
}

TEST_F(DeviceBatchSourceTest, HostsOwnSource_IsAskedForABatchWhenItIsDue) {
  DeviceBatchSource on_device = OnDevice(plain_);
  ASSERT_OK(on_device.StartEpoch(0, 0));
  for (int64_t step = 0; step < 3; ++step) {
    ASSERT_OK(on_device.Next());
    EXPECT_EQ(plain_.next(), step + 1);
  }
}

TEST_F(DeviceBatchSourceTest, BuffersOnTheDevice_TakeTurns) {
  DeviceBatchSource on_device = OnDevice(ahead_);
  std::set<const void*> buffers;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    ASSERT_OK(on_device.StartEpoch(epoch, 0));
    for (int64_t b = 0; b < kBatches; ++b) {
      ASSERT_OK_AND_ASSIGN(const Batch* const batch, on_device.Next());
      buffers.insert(batch->views[0].const_data_ptr());
    }
  }
  EXPECT_THAT(buffers, SizeIs(2));
}

TEST_F(DeviceBatchSourceTest, ErrorOfTheFollowingBatch_ComesWhenItIsDue) {
  ahead_.fails_at = 2;
  DeviceBatchSource on_device = OnDevice(ahead_);
  ASSERT_OK(on_device.StartEpoch(0, 0));
  ASSERT_OK(on_device.Next());
  ASSERT_OK_AND_ASSIGN(const Batch* const batch, on_device.Next());
  EXPECT_EQ(ValueOf(batch->views[0]), 1.0);
  EXPECT_THAT(on_device.Next(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("image is damaged")));
}

// Images of batch 1 that cannot be packed.
class ImagesThatThrow : public NumbersAhead {
 public:
  const PackedImages* ImagesOfNext() const override { return next() == 2 ? &images_ : nullptr; }
  const PackedImages* ImagesOfFollowing() const override { return next() == 1 ? &images_ : nullptr; }

 private:
  const PackedImages images_ = {{at::full({2, 3}, 1, at::kByte)}, at::full({0}, 0, at::kByte), {{1, 3, 1, 1}}, {}};
};

TEST_F(DeviceBatchSourceTest, CopyAheadThatThrows_EndsItsOwnStep_AndIsWaitedFor) {
  ImagesThatThrow source;
  const StreamLog log;
  {
    DeviceBatchSource on_device = OnDevice(source);
    ASSERT_OK(on_device.StartEpoch(0, 0));
    ASSERT_OK_AND_ASSIGN(const Batch* const batch, on_device.Next());
    EXPECT_EQ(ValueOf(batch->views[0]), 0.0);
    EXPECT_EQ(log.entries().back(), "side records") << "behind the copies that were queued";
    EXPECT_THAT(on_device.Next(), StatusIs(absl::StatusCode::kInternal, HasSubstr("on its way to the device")));
  }
  EXPECT_EQ(log.entries().back(), "host waits for side");
}

class WrongNormalizations : public NumbersAhead {
 public:
  explicit WrongNormalizations(size_t count) : count_(count) {}

  absl::StatusOr<const Batch*> Next() override {
    absl::StatusOr<const Batch*> batch = NumbersAhead::Next();
    if (!batch.ok() || *batch == nullptr) return batch;
    batch_ = **batch;
    batch_.normalizations.resize(count_);
    return &batch_;
  }

 private:
  const size_t count_;
  Batch batch_;
};

TEST_F(DeviceBatchSourceTest, AnotherNumberOfNormalizationsThanOfImages_IsRefused) {
  for (const size_t count : {1, 3}) {
    WrongNormalizations source(count);
    DeviceBatchSource on_device = OnDevice(source);
    ASSERT_OK(on_device.StartEpoch(0, 0));
    EXPECT_THAT(on_device.Next(), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr(absl::StrCat(count,
                                                                  " normalizations, expected one for each of "
                                                                  "its 2"))));
  }
}

TEST_F(DeviceBatchSourceTest, WrongLabels_AreFoundBeforeTheCopy_WhenTheyAreDue) {
  for (NumbersSource* source : std::vector<NumbersSource*>{&ahead_, &plain_}) {
    source->wrong_label_at = 1;
    DeviceBatchSource on_device = OnDevice(*source);
    ASSERT_OK(on_device.StartEpoch(0, 0));
    const TransferLog log;
    ASSERT_OK(on_device.Next());
    EXPECT_THAT(on_device.Next(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a wrong label")));
    EXPECT_THAT(log.uploads(), SizeIs(3));
    for (const auto& [what, count] : log.uploads()) EXPECT_EQ(count, 1) << what;
    EXPECT_THAT(log.reads(), IsEmpty());
  }
}

TEST_F(DeviceBatchSourceTest, NewEpoch_WaitsForWhatWasAhead) {
  DeviceBatchSource on_device = OnDevice(ahead_);
  ASSERT_OK(on_device.StartEpoch(0, 0));
  ASSERT_OK(on_device.Next());
  const StreamLog log;
  ASSERT_OK(on_device.StartEpoch(2, 3));
  EXPECT_THAT(log.entries(), ElementsAre("host waits for side", "host waits for side", "the source starts"));
  EXPECT_THAT(ReadOn(on_device), ElementsAre(203, 204));
}

TEST_F(DeviceBatchSourceTest, End_WaitsForWhatWasAhead) {
  const StreamLog log;
  {
    DeviceBatchSource on_device = OnDevice(ahead_);
    ASSERT_OK(on_device.StartEpoch(0, 0));
    ASSERT_OK(on_device.Next());
    EXPECT_THAT(log.entries(), Not(testing::Contains("host waits for side")));
  }
  EXPECT_EQ(log.entries().back(), "host waits for side");
}

// Its batches have no targets and lie on the device, but for one input.
class DeviceTensors : public BatchSource {
 public:
  DeviceTensors() {
    batch_.views = {at::full({2, 3}, 7.0f).to(StandinDevice::device())};
    batch_.named_inputs["of the host"] = at::full({2, 3}, 8.0f);
  }
  int64_t batches_per_epoch() const override { return 4; }
  int64_t dataset_size() const override { return 8; }
  bool has_labels() const override { return false; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override { return &batch_; }
  const Batch& batch() const { return batch_; }

 private:
  Batch batch_;
};

TEST_F(DeviceBatchSourceTest, WhatLiesOnTheDevice_StaysWhereItIs) {
  DeviceTensors source;
  DeviceBatchSource on_device(source, StandinDevice::device(), [](const at::Tensor& targets) {
    EXPECT_FALSE(targets.defined());
    return absl::OkStatus();
  });
  EXPECT_FALSE(on_device.has_labels());
  EXPECT_EQ(on_device.dataset_size(), 8);
  ASSERT_OK(on_device.StartEpoch(0, 0));
  const TransferLog log;
  for (int step = 0; step < 3; ++step) {
    ASSERT_OK_AND_ASSIGN(const Batch* const batch, on_device.Next());
    EXPECT_TRUE(batch->views[0].is_same(source.batch().views[0]));
    EXPECT_EQ(ValueOf(batch->named_inputs.at("of the host")), 8.0);
    EXPECT_FALSE(batch->targets.defined());
  }
  EXPECT_THAT(log.uploads(), SizeIs(1));
}

}  // namespace
}  // namespace ssl
