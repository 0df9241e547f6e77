// SPDX-License-Identifier: Apache-2.0
//
// Batches of the loader for an accelerator, the stand-in of the tests: pinned, 8-bit where they can, one ahead.
#include "ssl/core/read_ahead.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/config/node.h"
#include "ssl/core/batch.h"
#include "ssl/core/device_batch_source.h"
#include "ssl/core/packed_images.h"
#include "ssl/data/collators/collators.h"
#include "ssl/data/datasets/synthetic_dataset.h"
#include "ssl/data/loader/data_loader.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/sample.h"
#include "ssl/data/samplers/distributed_sampler.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/img_pil_to_multi_crop.h"
#include "ssl/data/transforms/random_erasing.h"
#include "ssl/data/transforms/random_horizontal_flip.h"
#include "ssl/data/transforms/to_tensor.h"
#include "ssl/kernels/view_plan.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_pinned_memory.h"
#include "ssl/testing/standin_streams.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kSamples = 60;
constexpr int64_t kBatchSize = 16;
constexpr int64_t kBatches = 4;  // the last of 12 samples
constexpr int64_t kTensors = 4;  // pinned ones of a batch: three views and targets

struct Parts {
  int workers = 2;
  bool erases = false;
  std::string collator = "multicrop_collator";
  bool augments_on_device = false;
  bool for_accelerator = false;
};

// Whose images all cannot be read.
class BrokenDataset : public SyntheticDataset {
 public:
  using SyntheticDataset::SyntheticDataset;
  absl::Status Get(int64_t index, Sample* sample) const override {
    const absl::Status status = SyntheticDataset::Get(index, sample);
    sample->fault = ReadFault::kDamaged;
    return status;
  }
};

absl::Status Admit(const BatchMemory&) { return absl::OkStatus(); }

std::unique_ptr<DataLoader> MakeLoader(const Parts& parts, AdmitBatchMemory admit = Admit) {
  SyntheticDatasetOptions dataset;
  dataset.size = kSamples;
  dataset.side = 20;
  dataset.channels = 3;
  dataset.num_classes = 10;
  const RandomCropRule large = {12, 12, {0.3, 1.0}};
  const RandomCropRule small =
      parts.collator == "siamese_collator" ? RandomCropRule{12, 12, {0.1, 0.3}} : RandomCropRule{6, 6, {0.1, 0.3}};
  std::vector<std::unique_ptr<Transform>> transforms;
  transforms.push_back(std::make_unique<ImgPilToMultiCrop>(std::vector<RandomCropRule>{large, small, small}));
  transforms.push_back(std::make_unique<RandomHorizontalFlip>(0.5));
  transforms.push_back(std::make_unique<ToTensor>());
  transforms.push_back(
      std::make_unique<Normalize>(std::vector<double>{0.485, 0.456, 0.406}, std::vector<double>{0.229, 0.224, 0.225}));
  if (parts.erases) transforms.push_back(std::make_unique<RandomErasing>(ErasingRule()));
  Pipeline pipeline(std::make_unique<BrokenDataset>(dataset), std::move(transforms), LabelType::kStandard, 3);
  DistributedSamplerOptions order;
  order.dataset_size = kSamples;
  DataLoaderOptions options;
  options.batch_size = kBatchSize;
  options.num_workers = parts.workers;
  options.augments_on_device = parts.augments_on_device;
  options.for_accelerator = parts.for_accelerator;
  options.collator = MakeCollator(parts.collator, ConfigNode::Map(), "").value();
  return DataLoader::Create(std::move(pipeline), std::make_unique<DistributedSampler>(order), options, admit).value();
}

// Copies on the host of all tensors of the batches to the end of the epoch.
std::vector<at::Tensor> ReadOn(BatchSource& source) {
  std::vector<at::Tensor> tensors;
  while (true) {
    const absl::StatusOr<const Batch*> batch = source.Next();
    EXPECT_OK(batch);
    if (!batch.ok() || *batch == nullptr) return tensors;
    EXPECT_THAT((*batch)->normalizations, IsEmpty());
    for (const at::Tensor& view : (*batch)->views) tensors.push_back(view.clone().to(at::kCPU));
    if ((*batch)->targets.defined()) tensors.push_back((*batch)->targets.clone().to(at::kCPU));
    tensors.push_back((*batch)->indices.clone());
  }
}

class LoaderOnADevice : public ::testing::TestWithParam<Parts> {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  static DeviceBatchSource OnDevice(DataLoader& loader) {
    return DeviceBatchSource(loader, StandinDevice::device(), [](const at::Tensor&) { return absl::OkStatus(); });
  }
};

void ExpectSame(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(actual[i].equal(expected[i])) << i;
}

TEST_P(LoaderOnADevice, Batches_AreThoseOfTheCpu) {
  const std::unique_ptr<DataLoader> reference = MakeLoader(GetParam());
  const std::unique_ptr<DataLoader> loader = MakeLoader(GetParam());
  DeviceBatchSource on_device = OnDevice(*loader);
  for (const auto& [epoch, first_batch] : {std::pair<int64_t, int64_t>{0, 0}, {1, 2}, {2, 0}, {2, 4}}) {
    SCOPED_TRACE(absl::StrCat("epoch ", epoch, " from batch ", first_batch));
    ASSERT_OK(reference->StartEpoch(epoch, first_batch));
    ASSERT_OK(on_device.StartEpoch(epoch, first_batch));
    ExpectSame(ReadOn(on_device), ReadOn(*reference));
  }
}

TEST_P(LoaderOnADevice, LeavingAnEpochInTheMiddle_LosesNothing) {
  const std::unique_ptr<DataLoader> reference = MakeLoader(GetParam());
  ASSERT_OK(reference->StartEpoch(5, 1));
  const std::vector<at::Tensor> expected = ReadOn(*reference);
  const std::unique_ptr<DataLoader> loader = MakeLoader(GetParam());
  DeviceBatchSource on_device = OnDevice(*loader);
  for (int64_t taken = 0; taken < kBatches; ++taken) {
    ASSERT_OK(on_device.StartEpoch(taken, 0));
    for (int64_t b = 0; b < taken; ++b) ASSERT_OK(on_device.Next());
    ASSERT_OK(on_device.StartEpoch(5, 1));
    ExpectSame(ReadOn(on_device), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LoaderOnADevice,
                         ::testing::Values(Parts{}, Parts{0}, Parts{2, true}, Parts{2, false, "cutmixup_collator"},
                                           Parts{2, false, "multicrop_collator", true},
                                           Parts{0, false, "multicrop_collator", true},
                                           Parts{2, false, "siamese_collator", true}));

TEST(LoaderForADevice, CopiesPixels_AndFloatsWhereTheyAreMoreThanPixels) {
  StandinDevice::Install();
  const auto type_of = [](const Parts& parts) {
    const std::unique_ptr<DataLoader> loader = MakeLoader(parts);
    EXPECT_OK(loader->PrepareFor(StandinDevice::device()));
    EXPECT_OK(loader->StartEpoch(0, 0));
    const Batch& batch = **loader->Next();
    EXPECT_THAT(batch.normalizations, SizeIs(batch.views[0].scalar_type() == at::kByte ? 3 : 0));
    for (const at::Tensor& view : batch.views) EXPECT_TRUE(IsPinnedForStandin(view.const_data_ptr()));
    return batch.views[0].scalar_type();
  };
  EXPECT_EQ(type_of({}), at::kByte);
  EXPECT_EQ(type_of({0}), at::kByte);
  EXPECT_EQ(type_of({2, true}), at::kFloat);
  EXPECT_EQ(type_of({2, false, "cutmixup_collator"}), at::kFloat);
}

TEST(LoaderForADevice, ThatAugments_GetsEachImageOnceAndAPlanForEachView) {
  StandinDevice::Install();
  const std::unique_ptr<DataLoader> loader = MakeLoader({2, false, "multicrop_collator", true});
  ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
  ASSERT_OK(loader->StartEpoch(0, 0));
  ASSERT_OK_AND_ASSIGN(const Batch* const batch, loader->Next());
  EXPECT_THAT(batch->views, IsEmpty());
  EXPECT_THAT(batch->normalizations, IsEmpty());
  EXPECT_EQ(batch->targets.size(0), kBatchSize);
  const PackedImages* const images = loader->ImagesOfNext();
  ASSERT_NE(images, nullptr);
  EXPECT_THAT(images->sizes, SizeIs(3));
  EXPECT_EQ(images->plans.numel(), 3 * kBatchSize * static_cast<int64_t>(sizeof(ViewPlan)));
  EXPECT_TRUE(IsPinnedForStandin(images->plans.const_data_ptr()));
  ASSERT_THAT(images->blocks, SizeIs(1));
  EXPECT_TRUE(IsPinnedForStandin(images->blocks[0].const_data_ptr()));
  EXPECT_LE(images->blocks[0].numel(), kBatchSize * 20 * 20 * 3);
}

TEST(LoaderForADevice, ThatAugments_MakesViewsOfItsOwnWithoutPrepareFor) {
  StandinDevice::Install();
  const std::unique_ptr<DataLoader> loader = MakeLoader({2, false, "multicrop_collator", true});
  ASSERT_OK(loader->StartEpoch(0, 0));
  EXPECT_THAT((*loader->Next())->views, SizeIs(3));
  EXPECT_EQ(loader->ImagesOfNext(), nullptr);
}

TEST(LoaderForADevice, PinsItsMemoryOnce) {
  StandinDevice::Install();
  const int64_t before = PinnedAllocations();
  const std::unique_ptr<DataLoader> loader = MakeLoader({});
  EXPECT_EQ(PinnedAllocations(), before);
  ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
  EXPECT_EQ(PinnedAllocations(), before + 3 * kTensors) << "before an epoch starts";
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
    ASSERT_OK(loader->StartEpoch(epoch, 0));
    while (*loader->Next() != nullptr) continue;
  }
  EXPECT_EQ(PinnedAllocations(), before + 3 * kTensors);
}

TEST(LoaderForADevice, MemoryThatCannotBePinned_IsTheHosts) {
  StandinDevice::Install();
  const std::unique_ptr<DataLoader> loader = MakeLoader({});
  FailNextPinning();
  const absl::Status status = loader->PrepareFor(StandinDevice::device());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(StartsWith("memory for batches: 3 of 16 samples"), HasSubstr("not enough memory"),
                                     HasSubstr("bytes of the host's memory were asked for, pinned"))));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
  EXPECT_EQ(DetailOf(status, kDetailMemory), "");
  EXPECT_OK(loader->StartEpoch(0, 0)) << "when there is memory again";
}

TEST(LoaderForADevice, MemoryForImagesThatCannotBePinned_IsTheHosts) {
  StandinDevice::Install();
  const std::unique_ptr<DataLoader> loader = MakeLoader({0, false, "multicrop_collator", true});
  ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
  ASSERT_OK(loader->StartEpoch(0, 0));
  FailNextPinning();
  const absl::Status status = loader->Next().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of the host's memory")));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
  EXPECT_EQ(DetailOf(status, kDetailMemory), "");
}

TEST(LoaderForADevice, Destructor_GivesTheSystemWhatWasPinned) {
  StandinDevice::Install();
  std::unique_ptr<DataLoader> loader = MakeLoader({2, false, "multicrop_collator", true});
  ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
  ASSERT_OK(loader->StartEpoch(0, 0));
  ASSERT_OK(loader->Next());
  loader.reset();
  EXPECT_EQ(UnusedPinnedBytes(), 0);
}

TEST(LoaderForADevice, Destructor_WaitsForCopiesOfWhatWasPinned) {
  StandinDevice::Install();
  std::unique_ptr<DataLoader> loader = MakeLoader({});
  ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
  ASSERT_OK(loader->StartEpoch(0, 0));
  ASSERT_OK_AND_ASSIGN(const Batch* const batch, loader->Next());
  const c10::Stream before = ExchangeStandinStream(NewStandinStream());
  const at::Tensor copy =
      batch->views[0].to(StandinDevice::device(), batch->views[0].scalar_type(), /*non_blocking=*/true);
  ExchangeStandinStream(before);
  loader.reset();
  FinishStandinStreams();
  EXPECT_EQ(UnusedPinnedBytes(), 0);
}

TEST(LoaderForADevice, AskedFor_IsWhatItPins) {
  constexpr int64_t kPixels = 3 * 12 * 12 * kBatchSize;  // of a batch's large views
  constexpr int64_t kSmallPixels = 3 * 6 * 6 * kBatchSize;
  const auto bytes_for = [](Parts parts, bool for_accelerator) {
    BatchMemory asked;
    parts.for_accelerator = for_accelerator;
    MakeLoader(parts, [&asked](const BatchMemory& batches) {
      asked = batches;
      return absl::OkStatus();
    });
    EXPECT_EQ(asked.batches, 3);
    return asked.bytes;
  };
  EXPECT_EQ(bytes_for({}, false), 3 * 4 * (kPixels + 2 * kSmallPixels));
  EXPECT_EQ(bytes_for({}, true), 3 * (8192 + 2 * 2048)) << "6912 and twice 1728 bytes";
  EXPECT_EQ(bytes_for({2, true}, true), 3 * (32768 + 2 * 8192)) << "floats";
  EXPECT_EQ(bytes_for({2, false, "siamese_collator"}, true), 3 * 32768) << "20736 bytes in one tensor";
}

TEST(LoaderForADevice, AskedFor_IsAnEstimateByTheFirstImage_WhereTheDeviceAugments) {
  BatchMemory asked;
  const std::unique_ptr<DataLoader> loader =
      MakeLoader({2, false, "multicrop_collator", true, true}, [&asked](const BatchMemory& batches) {
        asked = batches;
        return absl::OkStatus();
      });
  EXPECT_TRUE(asked.is_estimate);
  EXPECT_EQ(asked.bytes / 3, 32768) << "of 16 images of 20 x 20, of which views may read less: 19200 bytes";
}

TEST(LoaderForADevice, WithoutPrepareFor_NothingIsPinned) {
  StandinDevice::Install();
  const int64_t before = PinnedAllocations();
  const std::unique_ptr<DataLoader> loader = MakeLoader({});
  ASSERT_OK(loader->StartEpoch(0, 0));
  EXPECT_EQ((*loader->Next())->views[0].scalar_type(), at::kFloat);
  EXPECT_EQ(PinnedAllocations(), before);
}

TEST(LoaderForADevice, PrepareFor_AsksForANewEpoch) {
  StandinDevice::Install();
  const std::unique_ptr<DataLoader> loader = MakeLoader({});
  ASSERT_OK(loader->StartEpoch(0, 0));
  ASSERT_OK(loader->Next());
  ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
  EXPECT_EQ(loader->Following(), nullptr);
  EXPECT_THAT(loader->Next(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// The following one, when it is ready.
const Batch& AwaitFollowing(DataLoader& loader) {
  const Batch* following = nullptr;
  while (following == nullptr) following = loader.Following();
  return *following;
}

TEST(LoaderForADevice, Following_IsWhatNextHandsOut) {
  StandinDevice::Install();
  const std::unique_ptr<DataLoader> loader = MakeLoader({});
  EXPECT_EQ(loader->Following(), nullptr) << "no epoch has started";
  ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
  ASSERT_OK(loader->StartEpoch(0, 0));
  for (int64_t b = 0; b < kBatches; ++b) {
    const Batch& following = AwaitFollowing(*loader);
    EXPECT_THAT(loader->replaced_images(), SizeIs(b * kBatchSize)) << "those of batches that were handed out";
    const void* const memory = following.views[0].const_data_ptr();
    const at::Tensor pixels = following.views[0].clone();
    ASSERT_OK_AND_ASSIGN(const Batch* const batch, loader->Next());
    EXPECT_EQ(batch->views[0].const_data_ptr(), memory);
    EXPECT_TRUE(batch->views[0].equal(pixels));
  }
  EXPECT_EQ(loader->Following(), nullptr);
  EXPECT_EQ(*loader->Next(), nullptr);
}

TEST(LoaderForADevice, WithoutWorkers_NothingIsAhead) {
  StandinDevice::Install();
  const std::unique_ptr<DataLoader> loader = MakeLoader({0});
  ASSERT_OK(loader->PrepareFor(StandinDevice::device()));
  ASSERT_OK(loader->StartEpoch(0, 0));
  EXPECT_EQ(loader->Following(), nullptr);
  ASSERT_OK(loader->Next());
  EXPECT_EQ(loader->Following(), nullptr);
}

}  // namespace
}  // namespace ssl
