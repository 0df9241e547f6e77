// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/data_loader.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/synthetic_dataset.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/sample.h"
#include "ssl/data/sampler.h"
#include "ssl/data/samplers/distributed_sampler.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/img_pil_to_multi_crop.h"
#include "ssl/data/transforms/random_horizontal_flip.h"
#include "ssl/data/transforms/to_tensor.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 103;
constexpr int64_t kBatchSize = 25;

// Bytes of all tensors, and their shapes, so that two batches can be compared bit by bit.
std::string Bytes(const Batch& batch) {
  std::vector<at::Tensor> tensors = batch.views;
  tensors.push_back(batch.indices);
  if (batch.targets.defined()) tensors.push_back(batch.targets);
  std::string bytes;
  for (const at::Tensor& tensor : tensors) {
    for (int64_t size : tensor.sizes()) absl::StrAppend(&bytes, size, " ");
    bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  return bytes;
}

// Delegates, and fails in the way that `failure` says at chosen samples.
class FaultyDataset : public Dataset {
 public:
  enum class Failure { kStatus, kException };
  FaultyDataset(std::unique_ptr<Dataset> dataset, std::set<int64_t> bad, Failure failure)
      : dataset_(std::move(dataset)), bad_(std::move(bad)), failure_(failure) {}

  int64_t size() const override { return dataset_->size(); }
  bool has_labels() const override { return true; }
  std::string description() const override { return "faulty"; }
  absl::Status Get(int64_t index, Sample* sample) const override {
    if (bad_.count(index) > 0 && failure_ == Failure::kException) throw std::runtime_error("decoder gave up");
    if (bad_.count(index) > 0) return absl::DataLossError("image is damaged");
    return dataset_->Get(index, sample);
  }

 private:
  std::unique_ptr<Dataset> dataset_;
  std::set<int64_t> bad_;
  Failure failure_;
};

std::unique_ptr<Dataset> Images() {
  SyntheticDatasetOptions options;
  options.size = kSamples;
  options.side = 20;
  options.channels = 1;
  options.num_classes = 10;
  return std::make_unique<SyntheticDataset>(options);
}

Pipeline MakePipeline(std::unique_ptr<Dataset> dataset) {
  std::vector<std::unique_ptr<Transform>> transforms;
  const RandomCropRule large = {12, 12, {0.3, 1.0}};
  const RandomCropRule small = {6, 6, {0.1, 0.3}};
  transforms.push_back(std::make_unique<ImgPilToMultiCrop>(std::vector<RandomCropRule>{large, small, small}));
  transforms.push_back(std::make_unique<RandomHorizontalFlip>(0.5));
  transforms.push_back(std::make_unique<ToTensor>());
  return Pipeline(std::move(dataset), std::move(transforms), LabelType::kStandard, /*seed=*/3);
}

std::unique_ptr<Sampler> Shuffled() {
  DistributedSamplerOptions options;
  options.dataset_size = kSamples;
  return std::make_unique<DistributedSampler>(options);
}

DataLoaderOptions LoaderOptions(int workers) {
  DataLoaderOptions options;
  options.batch_size = kBatchSize;
  options.num_workers = workers;
  return options;
}

std::unique_ptr<DataLoader> MakeLoader(int workers, std::unique_ptr<Dataset> dataset = Images()) {
  return DataLoader::Create(MakePipeline(std::move(dataset)), Shuffled(), LoaderOptions(workers)).value();
}

// All batches from `first_batch` to the end of the epoch.
std::vector<std::string> ReadEpoch(DataLoader& loader, int64_t epoch, int64_t first_batch = 0) {
  EXPECT_OK(loader.StartEpoch(epoch, first_batch));
  std::vector<std::string> batches;
  while (true) {
    const absl::StatusOr<const Batch*> batch = loader.Next();
    EXPECT_OK(batch);
    if (!batch.ok() || *batch == nullptr) return batches;
    batches.push_back(Bytes(**batch));
  }
}

TEST(DataLoader, AnyNumberOfWorkers_GivesBitwiseEqualBatches) {
  const std::unique_ptr<DataLoader> reference = MakeLoader(0);
  const std::vector<std::string> first = ReadEpoch(*reference, 0);
  const std::vector<std::string> second = ReadEpoch(*reference, 1);
  ASSERT_EQ(first.size(), 5u);
  EXPECT_NE(first, second);

  for (int workers : {1, 2, 4, 9}) {
    const std::unique_ptr<DataLoader> loader = MakeLoader(workers);
    EXPECT_EQ(ReadEpoch(*loader, 0), first) << workers;
    EXPECT_EQ(ReadEpoch(*loader, 1), second) << workers;
  }
}

TEST(DataLoader, StartInTheMiddle_ContinuesExactly) {
  for (int workers : {0, 3}) {
    const std::vector<std::string> whole = ReadEpoch(*MakeLoader(workers), 2);
    for (int64_t first = 0; first <= 5; ++first) {
      const std::vector<std::string> rest = ReadEpoch(*MakeLoader(workers), 2, first);
      EXPECT_EQ(rest, std::vector<std::string>(whole.begin() + first, whole.end())) << first;
    }
  }
}

TEST(DataLoader, RestartWhileBatchesAreInFlight_DropsThem) {
  const std::vector<std::string> expected = ReadEpoch(*MakeLoader(0), 7);
  const std::unique_ptr<DataLoader> loader = MakeLoader(4);
  for (int64_t round = 0; round < 20; ++round) {
    ASSERT_OK(loader->StartEpoch(round, round % 5));
    if (round % 2 == 0) {
      ASSERT_OK(loader->Next());
    }
  }
  EXPECT_EQ(ReadEpoch(*loader, 7), expected);
}

TEST(DataLoader, Epoch_VisitsEverySampleOnceAndEndsWithNull) {
  const std::unique_ptr<DataLoader> loader = MakeLoader(2);
  EXPECT_EQ(loader->batches_per_epoch(), 5);
  EXPECT_EQ(loader->dataset_size(), kSamples);
  ASSERT_OK(loader->StartEpoch(0, 0));
  std::set<int64_t> seen;
  std::vector<int64_t> sizes;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const Batch* batch, loader->Next());
    if (batch == nullptr) break;
    sizes.push_back(batch->size());
    for (int64_t row = 0; row < batch->size(); ++row) {
      const int64_t index = batch->indices[row].item<int64_t>();
      EXPECT_TRUE(seen.insert(index).second);
      EXPECT_EQ(batch->targets[row].item<int64_t>(), index % 10);
    }
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), kSamples);
  EXPECT_EQ(sizes, (std::vector<int64_t>{25, 25, 25, 25, 3}));
  ASSERT_OK_AND_ASSIGN(const Batch* after_the_end, loader->Next());
  EXPECT_EQ(after_the_end, nullptr);
}

TEST(DataLoader, Classes_AreThoseOfTheWholeDataSet) {
  EXPECT_THAT(MakeLoader(0)->Classes().value(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));

  auto dataset = std::make_unique<FaultyDataset>(Images(), std::set<int64_t>{}, FaultyDataset::Failure::kStatus);
  EXPECT_THAT(MakeLoader(0, std::move(dataset))->Classes(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("faulty tells no classes")));
}

TEST(DataLoader, DropLast_LeavesOutTheSmallBatch) {
  DataLoaderOptions options = LoaderOptions(2);
  options.drop_last = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DataLoader> loader,
                       DataLoader::Create(MakePipeline(Images()), Shuffled(), options));

  EXPECT_EQ(loader->batches_per_epoch(), 4);
  EXPECT_EQ(ReadEpoch(*loader, 0).size(), 4u);
}

TEST(DataLoader, Batch_KeepsItsContentsUntilTheNextCall) {
  const std::vector<std::string> expected = ReadEpoch(*MakeLoader(0), 0);
  const std::unique_ptr<DataLoader> loader = MakeLoader(4);
  ASSERT_OK(loader->StartEpoch(0, 0));
  for (const std::string& bytes : expected) {
    ASSERT_OK_AND_ASSIGN(const Batch* batch, loader->Next());
    // Other threads fill the following batches meanwhile.
    for (int repeat = 0; repeat < 50; ++repeat) ASSERT_EQ(Bytes(*batch), bytes);
  }
}

TEST(DataLoader, Buffers_AreAllocatedOnce) {
  for (int workers : {0, 4}) {
    const std::unique_ptr<DataLoader> loader = MakeLoader(workers);
    std::set<const void*> buffers;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      ASSERT_OK(loader->StartEpoch(epoch, 0));
      while (true) {
        ASSERT_OK_AND_ASSIGN(const Batch* batch, loader->Next());
        if (batch == nullptr) break;
        buffers.insert(batch->views[0].const_data_ptr());
      }
    }
    EXPECT_EQ(buffers.size(), workers == 0 ? 1u : 3u);
  }
}

TEST(DataLoader, FailingSample_IsReportedAtItsBatchAndStays) {
  const int64_t bad = Shuffled()->Indices(0)[60];  // in batch 2
  for (int workers : {0, 1, 4}) {
    auto dataset = std::make_unique<FaultyDataset>(Images(), std::set<int64_t>{bad}, FaultyDataset::Failure::kStatus);
    const std::unique_ptr<DataLoader> loader = MakeLoader(workers, std::move(dataset));
    ASSERT_OK(loader->StartEpoch(0, 0));
    EXPECT_OK(loader->Next());
    EXPECT_OK(loader->Next());
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_THAT(loader->Next(), StatusIs(absl::StatusCode::kDataLoss,
                                           HasSubstr(absl::StrCat("sample ", bad, " of faulty: image is damaged"))));
    }
    ASSERT_OK(loader->StartEpoch(0, 3));
    EXPECT_OK(loader->Next());
  }
}

TEST(DataLoader, SeveralFailingSamples_ReportTheFirstByPosition) {
  const std::vector<int64_t> order = Shuffled()->Indices(0);
  const std::set<int64_t> bad = {order[3], order[17], order[24]};
  for (int round = 0; round < 20; ++round) {
    const std::unique_ptr<DataLoader> loader =
        MakeLoader(4, std::make_unique<FaultyDataset>(Images(), bad, FaultyDataset::Failure::kStatus));
    ASSERT_OK(loader->StartEpoch(0, 0));
    EXPECT_THAT(loader->Next(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(absl::StrCat("sample ", order[3], " of"))));
  }
}

TEST(DataLoader, ExceptionOfAWorker_BecomesAStatus) {
  const int64_t bad = Shuffled()->Indices(0)[0];
  ASSERT_NE(bad, 0);  // sample 0 is read when the loader is made
  for (int workers : {0, 2}) {
    auto dataset =
        std::make_unique<FaultyDataset>(Images(), std::set<int64_t>{bad}, FaultyDataset::Failure::kException);
    const std::unique_ptr<DataLoader> loader = MakeLoader(workers, std::move(dataset));
    ASSERT_OK(loader->StartEpoch(0, 0));
    EXPECT_THAT(loader->Next(), StatusIs(absl::StatusCode::kInternal, HasSubstr("decoder gave up")));
  }
}

TEST(DataLoader, Destructor_StopsWorkersInTheMiddleOfABatch) {
  for (int round = 0; round < 20; ++round) {
    const std::unique_ptr<DataLoader> loader = MakeLoader(4);
    if (round % 2 == 0) {
      ASSERT_OK(loader->StartEpoch(round, 0));
    }
  }
}

TEST(DataLoader, NextBeforeStartEpoch_IsAnError) {
  for (int workers : {0, 2}) {
    EXPECT_THAT(MakeLoader(workers)->Next(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("before StartEpoch")));
  }
}

TEST(DataLoader, BatchPastTheEnd_NamesTheNumberOfBatches) {
  EXPECT_THAT(MakeLoader(0)->StartEpoch(0, 6),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("an epoch has 5 batches")));
}

TEST(DataLoader, TooFewSamplesForABatchWithDropLast_NamesBothNumbers) {
  DataLoaderOptions options = LoaderOptions(0);
  options.batch_size = 200;
  options.drop_last = true;
  EXPECT_THAT(DataLoader::Create(MakePipeline(Images()), Shuffled(), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("batch size is 200, but a rank has only 103")));
}

TEST(DataLoader, ImageThatDoesNotFit_IsNamed) {
  DataLoaderOptions options = LoaderOptions(0);
  options.image_channels = 1;
  SyntheticDatasetOptions colours;
  colours.channels = 3;
  auto dataset = std::make_unique<SyntheticDataset>(colours);
  const std::string name = dataset->SampleName(0);
  EXPECT_THAT(DataLoader::Create(MakePipeline(std::move(dataset)), Shuffled(), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name + ": image has 3 channels and")));
}

TEST(DataLoader, WrongPipeline_IsReportedWhenTheLoaderIsMade) {
  EXPECT_THAT(DataLoader::Create(Pipeline(Images(), {}, LabelType::kStandard, 0), Shuffled(), LoaderOptions(2)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected ToTensor")));
}

}  // namespace
}  // namespace ssl
