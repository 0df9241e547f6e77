// SPDX-License-Identifier: Apache-2.0
//
// How fast batches are made, on the recipe of the quickstart: 256 grey images of 28 x 28 pixels, each cut into 2
// crops of 28 and 4 of 16, flipped, jittered and normalised into 3 channels.
//
//   bench_loader [workers] [folder with IDX files]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ssl/base/random.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/batch.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/idx_dataset.h"
#include "ssl/data/loader/data_loader.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/samplers/distributed_sampler.h"
#include "ssl/data/transforms/color_jitter.h"
#include "ssl/data/transforms/img_pil_to_multi_crop.h"
#include "ssl/data/transforms/random_horizontal_flip.h"
#include "ssl/data/transforms/to_tensor.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

constexpr int64_t kBatchSize = 256;

absl::StatusOr<std::unique_ptr<Dataset>> NoiseImages() {
  ImageArray array;
  array.count = 60000;
  array.height = 28;
  array.width = 28;
  array.pixels.resize(array.count * 28 * 28);
  CounterRandom random(0, 0, 0, 0, 0);
  for (uint8_t& pixel : array.pixels) pixel = static_cast<uint8_t>(random.Next());
  return ArrayDataset::Create(std::move(array), "noise");
}

std::vector<std::unique_ptr<Transform>> Recipe() {
  const RandomCropRule large = {28, 28, {0.3, 1.0}};
  const RandomCropRule small = {16, 16, {0.05, 0.3}};
  ColorJitter::Strength jitter;
  jitter.brightness = jitter.contrast = {0.6, 1.4};
  jitter.probability = 0.8;
  std::vector<std::unique_ptr<Transform>> transforms;
  transforms.push_back(
      std::make_unique<ImgPilToMultiCrop>(std::vector<RandomCropRule>{large, large, small, small, small, small}));
  transforms.push_back(std::make_unique<RandomHorizontalFlip>(0.5));
  transforms.push_back(std::make_unique<ColorJitter>(jitter));
  transforms.push_back(std::make_unique<ToTensor>());
  transforms.push_back(std::make_unique<Normalize>(std::vector<double>{0.286}, std::vector<double>{0.353}));
  return transforms;
}

absl::Status Run(int workers, const std::string& folder) {
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset,
                       folder.empty() ? NoiseImages() : ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain));
  DistributedSamplerOptions order;
  order.dataset_size = dataset->size();
  DataLoaderOptions options;
  options.batch_size = kBatchSize;
  options.drop_last = true;
  options.num_workers = workers;
  Pipeline pipeline(std::move(dataset), Recipe(), LabelType::kStandard, /*seed=*/0);
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<DataLoader> loader,
                       DataLoader::Create(std::move(pipeline), std::make_unique<DistributedSampler>(order), options));

  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    SSL_RETURN_IF_ERROR(loader->StartEpoch(epoch, 0));
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t processor_start = std::clock();
    int64_t batches = 0;
    while (true) {
      SSL_ASSIGN_OR_RETURN(const Batch* batch, loader->Next());
      if (batch == nullptr) break;
      ++batches;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double processor_s = static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
    std::printf("epoch %d, %d workers: %.0f images/s, %.2f ms/batch, %.2f ms/batch of processor time\n",
                static_cast<int>(epoch), workers, batches * kBatchSize / seconds.count(),
                1e3 * seconds.count() / batches, 1e3 * processor_s / batches);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  const int workers = argc > 1 ? std::atoi(argv[1]) : 0;
  const absl::Status status = ssl::Run(workers, argc > 2 ? argv[2] : "");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
