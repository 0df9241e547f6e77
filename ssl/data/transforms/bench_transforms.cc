// SPDX-License-Identifier: Apache-2.0
//
// The processor time of each transform for one image of 224 x 224 pixels in colour, always applied:
//
//   bazel run -c opt //ssl/data/transforms:bench_transforms
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/random.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/register_transforms.h"
#include "ssl/data/transforms/transform_list.h"
#include "ssl/distributed/local_communicator.h"

namespace ssl {
namespace {

constexpr int kSide = 224;
constexpr int kImages = 300;

constexpr char kTransforms[] = R"(
- {name: RandomResizedCrop, size: 224}
- {name: RandomResizedCrop, size: 224, interpolation: bicubic}
- {name: Resize, size: 256}
- {name: CenterCrop, size: 192}
- {name: RandomCrop, size: 224, padding: 4}
- {name: RandomVerticalFlip, p: 1}
- {name: ColorJitter, brightness: 0.8}
- {name: ColorJitter, contrast: 0.8}
- {name: ColorJitter, saturation: 0.8}
- {name: ColorJitter, hue: 0.2}
- {name: ImgPilRandomColorJitter, p: 1}
- {name: RandomGrayscale, p: 1}
- {name: ImgPilGaussianBlur, p: 1, radius_min: 0.1, radius_max: 2.0}
- {name: ImgPilGaussianBlur, p: 1, radius_min: 8, radius_max: 8}
- {name: ImgPilRandomSolarize, p: 1}
- {name: ImgPilRandomPhotometric, p: 1}
- {name: ImgReplicatePil, num_times: 2}
- name: ImgPilToMultiCrop
  total_num_crops: 8
  num_crops: [2, 6]
  size_crops: [224, 96]
  crop_scales: [[0.14, 1.0], [0.05, 0.14]]
)";

std::vector<uint8_t> SmoothNoise() {
  std::vector<uint8_t> pixels(kSide * kSide * 3);
  CounterRandom random(0, 0, 0, 0, 0);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i / 300 + random.Next() % 64);
  return pixels;
}

absl::StatusOr<double> MicrosecondsPerImage(const Transform& transform, const std::vector<uint8_t>& pixels) {
  TransformScratch scratch;
  Sample sample;
  std::clock_t spent = 0;
  for (uint64_t index = 0; index < kImages; ++index) {
    sample.ResetViews(1);
    std::copy(pixels.begin(), pixels.end(), sample.view(0).image.Allocate(kSide, kSide, 3));
    const TransformContext context{/*seed=*/0, /*epoch=*/0, index, /*operation=*/0, scratch};
    const std::clock_t start = std::clock();
    SSL_RETURN_IF_ERROR(transform.Apply(context, &sample));
    // The first ones grow the buffers.
    if (index >= kImages / 10) spent += std::clock() - start;
  }
  return 1e6 * static_cast<double>(spent) / CLOCKS_PER_SEC / (kImages - kImages / 10);
}

absl::Status Run() {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterTransforms(&registries));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const ConfigNode config = ConfigNode::Map();
  SSL_ASSIGN_OR_RETURN(const ConfigNode list, ParseYaml(kTransforms, "bench", nullptr));
  SSL_ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<Transform>> transforms,
                       MakeTransforms(list, "bench", {config, registries, *communicator}));
  const std::vector<uint8_t> pixels = SmoothNoise();
  for (size_t i = 0; i < transforms.size(); ++i) {
    SSL_ASSIGN_OR_RETURN(const double microseconds, MicrosecondsPerImage(*transforms[i], pixels));
    std::string parameters;
    for (const ConfigNode::Entry& entry : list.items()[i].entries()) {
      if (entry.first != "name" && entry.second.is_scalar())
        parameters += " " + entry.first + "=" + entry.second.text();
    }
    std::printf("%9.1f us  %s%s\n", microseconds, std::string(transforms[i]->name()).c_str(), parameters.c_str());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main() {
  const absl::Status status = ssl::Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
