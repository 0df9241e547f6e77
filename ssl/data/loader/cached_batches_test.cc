// SPDX-License-Identifier: Apache-2.0
//
// Batches of a loader whose images are kept in memory are bitwise those of one that reads its files, for any number of
// threads, in every epoch, and after a restart within one.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/loader/data_loader.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/samplers/distributed_sampler.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int kRepeats = 8;

std::unique_ptr<DiskDataset> Images(DecodeMode mode) {
  PathList paths;
  for (int i = 0; i < kRepeats; ++i) {
    for (const char* name :
         {"rgb_q90.jpg", "rgb_q75_444.jpg", "progressive.jpg", "gray.jpg", "rgb.png", "missing.jpg"}) {
      paths.Add(absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                             "/ssl/data/testdata/decode/images/", name));
    }
  }
  EncodedImageOptions options;
  options.decode_mode = mode;
  options.max_broken_fraction = 0.9;
  return std::make_unique<DiskDataset>(std::move(paths), std::vector<int64_t>(), std::move(options));
}

std::unique_ptr<DataLoader> MakeLoader(DecodeMode mode, int threads, const DatasetCache* cache) {
  std::vector<std::unique_ptr<Transform>> transforms;
  for (const char* entry :
       {"{name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [1, 2], size_crops: [24, 8], "
        "crop_scales: [[0.3, 1.0], [0.05, 0.3]]}",
        "name: RandomHorizontalFlip", "{name: ColorJitter, brightness: 0.4, p: 0.8}", "name: ToTensor"}) {
    transforms.push_back(MakeTransform(entry).value());
  }
  DistributedSamplerOptions order;
  order.shuffle = true;
  std::unique_ptr<DiskDataset> images = Images(mode);
  order.dataset_size = images->size();
  Pipeline pipeline(std::move(images), std::move(transforms), LabelType::kSampleIndex, /*seed=*/11);
  pipeline.set_replacement(Replacement::kSample);
  if (cache != nullptr) pipeline.KeepInMemory(*cache);
  DataLoaderOptions options;
  options.batch_size = 7;
  options.num_workers = threads;
  return DataLoader::Create(std::move(pipeline), std::make_unique<DistributedSampler>(order), options).value();
}

// The batches of an epoch from `first_batch` on.
std::vector<Batch> ReadEpoch(DataLoader* loader, int64_t epoch, int64_t first_batch) {
  EXPECT_OK(loader->StartEpoch(epoch, first_batch));
  std::vector<Batch> batches;
  while (true) {
    const absl::StatusOr<const Batch*> batch = loader->Next();
    EXPECT_OK(batch.status());
    if (!batch.ok() || *batch == nullptr) return batches;
    Batch copy;
    for (const at::Tensor& view : (*batch)->views) copy.views.push_back(view.clone());
    copy.targets = (*batch)->targets.clone();
    batches.push_back(std::move(copy));
  }
}

void ExpectEqual(const std::vector<Batch>& batches, const std::vector<Batch>& expected) {
  ASSERT_EQ(batches.size(), expected.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    EXPECT_TRUE(batches[i].targets.equal(expected[i].targets)) << "batch " << i;
    ASSERT_EQ(batches[i].views.size(), expected[i].views.size());
    for (size_t v = 0; v < batches[i].views.size(); ++v) {
      EXPECT_TRUE(batches[i].views[v].equal(expected[i].views[v])) << "batch " << i << ", view " << v;
    }
  }
}

struct Choice {
  DecodeMode mode;
  DatasetCache cache;
};

class CachedBatches : public ::testing::TestWithParam<Choice> {};

TEST_P(CachedBatches, AreThoseOfFilesForAnyThreadsAndAfterARestart) {
  const std::unique_ptr<DataLoader> files = MakeLoader(GetParam().mode, 0, nullptr);
  for (const int threads : {0, 3}) {
    const std::unique_ptr<DataLoader> cached = MakeLoader(GetParam().mode, threads, &GetParam().cache);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      SCOPED_TRACE(::testing::Message() << threads << " threads, epoch " << epoch);
      ExpectEqual(ReadEpoch(cached.get(), epoch, 0), ReadEpoch(files.get(), epoch, 0));
    }
    EXPECT_EQ(cached->replaced_images(), files->replaced_images());
    const std::unique_ptr<DataLoader> restarted = MakeLoader(GetParam().mode, threads, &GetParam().cache);
    ExpectEqual(ReadEpoch(restarted.get(), 1, 3), ReadEpoch(files.get(), 1, 3));
    ExpectEqual(ReadEpoch(restarted.get(), 2, 0), ReadEpoch(files.get(), 2, 0));
  }
}

constexpr int64_t kPlenty = int64_t{1} << 30, kRoomForSome = 60000;

INSTANTIATE_TEST_SUITE_P(Choices, CachedBatches,
                         ::testing::Values(Choice{DecodeMode::kExact, {CacheContent::kDecoded, kPlenty}},
                                           Choice{DecodeMode::kExact, {CacheContent::kDecoded, kRoomForSome}},
                                           Choice{DecodeMode::kExact, {CacheContent::kRaw, kPlenty}},
                                           Choice{DecodeMode::kFast, {CacheContent::kRaw, kRoomForSome}}));

}  // namespace
}  // namespace ssl
