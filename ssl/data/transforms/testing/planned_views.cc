// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/testing/planned_views.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/loader/view_floats.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20261124;
const char* const kCrops[] = {
    "name: RandomResizedCrop\nsize: [40, 40]\nscale: [0.14, 1.0]",
    "name: RandomResizedCrop\nsize: [24, 33]\nscale: [0.05, 1.0]\ninterpolation: bicubic",
    "name: RandomResizedCrop\nsize: [90, 70]\nscale: [0.05, 0.4]\nratio: [0.3, 3.0]",
};

const char* const kSteps[] = {
    "name: RandomHorizontalFlip",
    "name: ImgPilColorDistortion\nstrength: 1.0",
    "name: ImgPilGaussianBlur\np: 0.5\nradius_min: 0.1\nradius_max: 6.0",
    "name: ImgPilRandomSolarize\np: 0.4",
    "name: ToTensor",
    "name: Normalize\nmean: [0.485, 0.456, 0.406]\nstd: [0.229, 0.224, 0.225]",
};

// One view of `image`: its plan, and the floats that the transforms make.
absl::Status AddView(const TransformContext& context, int v, const Image& image, int64_t image_begin,
                     PlannedViews* views) {
  std::vector<std::unique_ptr<Transform>> transforms;       // the table of floats belongs to one
  std::vector<ViewPlan> plans(static_cast<size_t>(v) + 1);  // each view draws for itself
  View view;
  view.image.CopyFrom(image);
  for (const char* entry : {kCrops[v], kSteps[0], kSteps[1], kSteps[2], kSteps[3], kSteps[4], kSteps[5]}) {
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Transform> transform, MakeTransform(entry));
    const TransformContext of_step = {context.seed, context.epoch, context.sample, transforms.size(), context.scratch};
    SSL_RETURN_IF_ERROR(transform->as_view_transform()->ApplyToView(of_step, v, &view));
    const ViewPlanner* const planner = PlannerOf(*transform);
    if (planner == nullptr) return absl::InternalError(entry);
    SSL_RETURN_IF_ERROR(planner->Plan(of_step, image, &plans));
    transforms.push_back(std::move(transform));
  }
  ViewPlan plan = plans.back();
  plan.source_begin += image_begin;
  plan.result_begin = static_cast<int64_t>(views->expected.size());
  plan.work_begin = views->work_bytes;
  views->work_bytes += ViewWorkBytes(plan);
  views->plans.push_back(plan);
  views->expected.resize(views->expected.size() + 3 * plan.num_pixels());
  WriteViewFloats(view, 3, views->expected.data() + plan.result_begin);
  return absl::OkStatus();
}

Image Decoded(const std::string& name) {
  const std::string path = absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                                        "/ssl/data/testdata/decode/images/", name);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Image image;
  if (!DecodeImage(bytes, DecodeLimits(), &image).ok()) std::abort();
  return image;
}

Image Drawn(int height, int width, int channels, int reduction) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, channels, reduction);
  CounterRandom random(kSeed, height, width, channels, reduction);
  for (int64_t i = 0; i < image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(random.Next());
  return image;
}

}  // namespace

absl::StatusOr<PlannedViews> PlanViews(const std::vector<Image>& images, int epochs) {
  PlannedViews views;
  views.normalization = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  TransformScratch scratch;
  for (size_t sample = 0; sample < images.size(); ++sample) {
    const Image& image = images[sample];
    const int64_t begin = static_cast<int64_t>(views.images.size());
    views.images.insert(views.images.end(), image.pixels(), image.pixels() + image.size_bytes());
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const TransformContext context = {kSeed, static_cast<uint64_t>(epoch), sample, 0, scratch};
      for (int v = 0; v < 3; ++v) SSL_RETURN_IF_ERROR(AddView(context, v, image, begin, &views));
    }
  }
  return views;
}

std::vector<Image> ImagesToPlan() {
  std::vector<Image> images;
  for (const char* name : {"rgb_q90.jpg", "odd_q50.jpg", "gray.jpg", "progressive.jpg"}) {
    images.push_back(Decoded(name));
  }
  images.push_back(Drawn(120, 90, 1, 1));
  images.push_back(Drawn(7, 300, 3, 1));
  images.push_back(Drawn(500, 30, 3, 1));
  images.push_back(Drawn(1, 1, 3, 1));
  images.push_back(Drawn(333, 451, 3, 2));
  return images;
}

}  // namespace ssl
