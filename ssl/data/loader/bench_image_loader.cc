// SPDX-License-Identifier: Apache-2.0
//
// How fast batches are made from a folder of image files, and where the time of an image goes. The recipes are those of
// tools/bench/peer_loader.py: swav, 2 crops of 224 pixels and 6 of 96; moco, 2 crops of 224.
//
//   bench_image_loader FOLDER [swav|moco] [threads] [images] [exact|fast] [none|raw|decoded]
//
// The last two are DECODE and CACHE; with a cache the first epoch does not count. With 0 threads it prints the
// processor time of each step besides. With very many images (640000 are 20,000 batches) the growth of memory tells of
// leaks.
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/registries.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/datasets/image_folder.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/loader/batch_buffer.h"
#include "ssl/data/loader/data_loader.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/samplers/distributed_sampler.h"
#include "ssl/data/transforms/register_transforms.h"
#include "ssl/data/transforms/transform_list.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/allocation_count.h"

namespace ssl {
namespace {

constexpr int64_t kBatchSize = 32;
constexpr int64_t kWarmUpBatches = 3;
constexpr int64_t kCacheBytes = int64_t{4} << 30;

constexpr char kSwavCrops[] = R"(
- name: ImgPilToMultiCrop
  total_num_crops: 8
  num_crops: [2, 6]
  size_crops: [224, 96]
  crop_scales: [[0.14, 1.0], [0.05, 0.14]]
- name: RandomHorizontalFlip
- {name: ColorJitter, brightness: 0.8, contrast: 0.8, saturation: 0.8, hue: 0.2, p: 0.8}
)";

constexpr char kMocoCrops[] = R"(
- name: ImgPilToMultiCrop
  total_num_crops: 2
  num_crops: [2]
  size_crops: [224]
  crop_scales: [[0.2, 1.0]]
- name: RandomHorizontalFlip
- {name: ColorJitter, brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1, p: 0.8}
)";

constexpr char kRest[] = R"(
- {name: RandomGrayscale, p: 0.2}
- {name: ImgPilGaussianBlur, p: 0.5, radius_min: 0.1, radius_max: 2.0}
- name: ToTensor
- {name: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
)";

using Transforms = std::vector<std::unique_ptr<Transform>>;

absl::StatusOr<Transforms> MakeRecipe(const std::string& name) {
  if (name != "swav" && name != "moco") {
    return absl::InvalidArgumentError("recipe is '" + name + "', expected swav or moco");
  }
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterTransforms(&registries));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const ConfigNode config = ConfigNode::Map();
  const std::string text = (name == "swav" ? kSwavCrops : kMocoCrops) + std::string(kRest);
  SSL_ASSIGN_OR_RETURN(const ConfigNode list, ParseYaml(text, "bench", nullptr));
  return MakeTransforms(list, "bench", {config, registries, *communicator});
}

double ProcessorSeconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// One batch after the other from the loader, epoch after epoch.
absl::StatusOr<int> ReadBatches(DataLoader* loader, int64_t count, int64_t* epoch) {
  int views = 0;
  for (int64_t i = 0; i < count; ++i) {
    SSL_ASSIGN_OR_RETURN(const Batch* batch, loader->Next());
    if (batch == nullptr) {
      SSL_RETURN_IF_ERROR(loader->StartEpoch(++*epoch, 0));
      SSL_ASSIGN_OR_RETURN(batch, loader->Next());
    }
    views = static_cast<int>(batch->views.size());
  }
  return views;
}

double ResidentMegabytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;  // the second number
  return static_cast<double>(pages * sysconf(_SC_PAGESIZE)) / 1e6;
}

struct Choice {
  std::string recipe = "swav";
  int threads = 0;
  int64_t images = 1000;
  DecodeMode decode = DecodeMode::kExact;
  std::string cache = "none";
};

absl::Status RunLoader(const ImageFolder& folder, const Choice& choice) {
  SSL_ASSIGN_OR_RETURN(Transforms transforms, MakeRecipe(choice.recipe));
  EncodedImageOptions image_options;
  image_options.decode_mode = choice.decode;
  auto dataset = std::make_unique<DiskDataset>(folder.paths, folder.labels, std::move(image_options));
  if (choice.cache != "none") {
    dataset->KeepInMemory({choice.cache == "raw" ? CacheContent::kRaw : CacheContent::kDecoded, kCacheBytes});
  }
  DistributedSamplerOptions order;
  order.dataset_size = dataset->size();
  DataLoaderOptions options;
  options.batch_size = kBatchSize;
  options.drop_last = true;
  options.num_workers = choice.threads;
  Pipeline pipeline(std::move(dataset), std::move(transforms), LabelType::kStandard, /*seed=*/0);
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<DataLoader> loader,
                       DataLoader::Create(std::move(pipeline), std::make_unique<DistributedSampler>(order), options));
  int64_t epoch = 0;
  SSL_RETURN_IF_ERROR(loader->StartEpoch(epoch, 0));
  const int64_t filled = choice.cache == "none" ? 0 : loader->batches_per_epoch();
  SSL_RETURN_IF_ERROR(ReadBatches(loader.get(), filled + kWarmUpBatches, &epoch).status());
  const auto start = std::chrono::steady_clock::now();
  const double processor_start = ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const int64_t allocations_before = AllocationCount();
  const int64_t batches = choice.images / kBatchSize + 2, first_batches = batches / 10 + 1;
  SSL_RETURN_IF_ERROR(ReadBatches(loader.get(), first_batches, &epoch).status());
  const double early_mb = ResidentMegabytes();
  SSL_ASSIGN_OR_RETURN(const int views, ReadBatches(loader.get(), batches - first_batches, &epoch));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double rate = static_cast<double>(batches * kBatchSize) / seconds.count();
  const double processor_s = ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID) - processor_start;
  const auto allocations = static_cast<double>(AllocationCount() - allocations_before);
  const double late_mb = ResidentMegabytes();
  const auto counted = static_cast<double>(batches * kBatchSize);
  std::printf("%.0f MB resident, %+.3f MB per 1,000 batches; %.2f allocations per image\n", late_mb,
              1e3 * (late_mb - early_mb) / static_cast<double>(batches - first_batches), allocations / counted);
  std::printf("%s, %d workers: %.1f images/s, %.0f views/s, %.0f us of processor time per image\n",
              choice.recipe.c_str(), choice.threads, rate, rate * views, 1e6 * processor_s / counted);
  return absl::OkStatus();
}

// The processor time of each step, in the order of a sample's way.
class Steps {
 public:
  void Begin() { last_ = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID); }
  // What passed since the last call belongs to the step `number`.
  void End(size_t number, absl::string_view name) {
    const double now = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID);
    if (number == steps_.size()) steps_.push_back({std::string(name), 0.0});
    steps_[number].seconds += now - last_;
    last_ = now;
  }
  void Forget() {
    for (Step& step : steps_) step.seconds = 0.0;
  }
  void Print(int64_t images) const {
    double sum = 0.0;
    for (const Step& step : steps_) {
      std::printf("%9.1f us  %s\n", 1e6 * step.seconds / static_cast<double>(images), step.name.c_str());
      sum += step.seconds;
    }
    std::printf("%9.1f us  all steps\n", 1e6 * sum / static_cast<double>(images));
  }

 private:
  struct Step {
    std::string name;
    double seconds;
  };
  double last_ = 0.0;
  std::vector<Step> steps_;
};

absl::Status ReadAndDecode(const std::string& path, DecodeMode mode, NeededRegion needed, std::string* bytes,
                           Image* image, Steps* steps) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, PosixFileSystem().OpenRead(path));
  bytes->resize(static_cast<size_t>(file->size()));
  SSL_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(&(*bytes)[0], bytes->size())));
  steps->End(0, "read");
  SSL_RETURN_IF_ERROR(DecodeImageRegion(*bytes, DecodeLimits(), mode, needed, image));
  steps->End(1, "decode");
  return absl::OkStatus();
}

absl::Status RunSteps(const ImageFolder& folder, const Choice& choice) {
  SSL_ASSIGN_OR_RETURN(const Transforms transforms, MakeRecipe(choice.recipe));
  Steps steps;
  TransformScratch scratch;
  Sample sample;
  std::string bytes;
  BatchLayout layout;
  layout.batch_size = kBatchSize;
  std::unique_ptr<BatchBuffer> batch;
  const int64_t warm_up = kBatchSize * kWarmUpBatches;
  for (int64_t i = 0; i < warm_up + choice.images; ++i) {
    if (i == warm_up) steps.Forget();
    sample.ResetViews(1);
    sample.index = i * 37 % folder.paths.size();  // not one class after the other
    const auto context = [&](size_t operation) {
      return TransformContext{/*seed=*/0, static_cast<uint64_t>(i), static_cast<uint64_t>(sample.index), operation,
                              scratch};
    };
    const auto needed = [&](int height, int width) { return transforms[0]->Needs(context(0), 1, height, width); };
    steps.Begin();
    SSL_RETURN_IF_ERROR(
        ReadAndDecode(folder.paths[sample.index], choice.decode, needed, &bytes, &sample.view(0).image, &steps));
    for (size_t t = 0; t < transforms.size(); ++t) {
      SSL_RETURN_IF_ERROR(transforms[t]->Apply(context(t), &sample));
      steps.End(2 + t, transforms[t]->name());
    }
    if (batch == nullptr) {
      SSL_ASSIGN_OR_RETURN(layout, LayoutFor(sample, layout));
      batch = std::make_unique<BatchBuffer>(layout);
    }
    SSL_RETURN_IF_ERROR(batch->Write(sample, i % kBatchSize));
    steps.End(2 + transforms.size(), "normalised into the batch");
  }
  steps.Print(choice.images);
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return absl::InvalidArgumentError(
        "usage: bench_image_loader FOLDER [swav|moco] [threads] [images] [exact|fast] [none|raw|decoded]");
  }
  const auto argument = [&](size_t i, const char* otherwise) {
    return i < arguments.size() ? arguments[i] : otherwise;
  };
  Choice choice;
  choice.recipe = argument(1, "swav");
  choice.threads = std::atoi(argument(2, "0").c_str());
  choice.images = std::atoi(argument(3, "1000").c_str());
  choice.decode = argument(4, "exact") == "fast" ? DecodeMode::kFast : DecodeMode::kExact;
  choice.cache = argument(5, "none");
  SSL_ASSIGN_OR_RETURN(const ImageFolder folder, ScanImageFolder(arguments[0]));
  SSL_RETURN_IF_ERROR(RunLoader(folder, choice));
  return choice.threads == 0 && choice.cache == "none" ? RunSteps(folder, choice) : absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  const absl::Status status = ssl::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
