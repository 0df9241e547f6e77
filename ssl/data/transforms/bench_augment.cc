// SPDX-License-Identifier: Apache-2.0
//
// The time in which a device makes 512 views of 224 pixels of 256 decoded photographs of 500 x 375, as SimCLR
// augments: crop, flip, colours, grey, blur, and normalised floats. Median of batches; decoding and copies to the
// device are not in it.
//
//   bazel run --config=cuda //ssl/data/transforms:bench_augment [-- cuda|cpu]
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/random.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/image.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/register_transforms.h"
#include "ssl/data/transforms/transform_list.h"
#include "ssl/data/transforms/view_planner.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/kernels/augment_views.h"

namespace ssl {
namespace {

constexpr int kImages = 256, kHeight = 375, kWidth = 500, kSide = 224;
constexpr int kWarmUps = 3, kBatches = 21;

constexpr char kTransforms[] = R"(
- {name: ImgReplicatePil, num_times: 2}
- {name: RandomResizedCrop, size: 224}
- {name: RandomHorizontalFlip}
- {name: ImgPilColorDistortion, strength: 1.0}
- {name: ImgPilGaussianBlur, p: 0.5, radius_min: 0.1, radius_max: 2.0}
)";

// The same number of bytes for each.
Image Photograph(uint64_t index) {
  Image image;
  uint8_t* const pixels = image.Allocate(kHeight, kWidth, 3);
  CounterRandom random(0, index, 0, 0, 0);
  for (int64_t i = 0; i < image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(i / 2000 + random.Next() % 64);
  return image;
}

struct Work {
  at::Tensor plans;   // on the host
  at::Tensor images;  // on the device
  at::Tensor result;  // likewise
};

absl::StatusOr<Work> MakeWork(const c10::Device& device) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterTransforms(&registries));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const ConfigNode config = ConfigNode::Map();
  SSL_ASSIGN_OR_RETURN(const ConfigNode list, ParseYaml(kTransforms, "bench", nullptr));
  SSL_ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<Transform>> transforms,
                       MakeTransforms(list, "bench", {config, registries, *communicator}));
  constexpr int64_t kImageBytes = int64_t{kHeight} * kWidth * 3, kValues = int64_t{kSide} * kSide * 3;
  at::Tensor images = at::empty({kImages * kImageBytes}, at::kByte);
  std::vector<ViewPlan> all;
  TransformScratch scratch;
  for (uint64_t index = 0; index < kImages; ++index) {
    const Image image = Photograph(index);
    const int64_t begin = static_cast<int64_t>(index) * kImageBytes;
    std::memcpy(images.mutable_data_ptr<uint8_t>() + begin, image.pixels(), kImageBytes);
    std::vector<ViewPlan> plans(1);
    for (size_t i = 0; i < transforms.size(); ++i) {
      const TransformContext context = {/*seed=*/0, /*epoch=*/0, index, i, scratch};
      SSL_RETURN_IF_ERROR(PlannerOf(*transforms[i])->Plan(context, image, &plans));
    }
    for (ViewPlan& plan : plans) {
      plan.source_begin += begin;
      plan.result_begin = static_cast<int64_t>(all.size()) * kValues;
      all.push_back(plan);
    }
  }
  const auto bytes = static_cast<int64_t>(all.size() * sizeof(ViewPlan));
  Work work;
  work.plans = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(device.is_cuda()));
  std::memcpy(work.plans.mutable_data_ptr(), all.data(), static_cast<size_t>(bytes));
  work.images = images.to(device);
  work.result = at::empty({static_cast<int64_t>(all.size()) * kValues}, at::TensorOptions(at::kFloat).device(device));
  return work;
}

absl::Status Run(const c10::Device& device) {
  SSL_ASSIGN_OR_RETURN(Work work, MakeWork(device));
  const ViewNormalization normalization = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  std::vector<double> times;
  for (int batch = 0; batch < kWarmUps + kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    SSL_RETURN_IF_ERROR(AugmentViews(work.plans, work.images, normalization, &work.result));
    if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    if (batch >= kWarmUps) times.push_back(taken.count());
  }
  std::sort(times.begin(), times.end());
  std::printf("augmentation of %d views of %d on %s: %.3f ms (%.3f-%.3f)\n", 2 * kImages, kSide, device.str().c_str(),
              times[times.size() / 2], times.front(), times.back());
  return absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "cuda";
  const absl::Status status = ssl::GuardTorch("augmentation", [&] {
    return ssl::Run(c10::Device(name == "cpu" ? c10::kCPU : c10::kCUDA, name == "cpu" ? -1 : 0));
  });
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
