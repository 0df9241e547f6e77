// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_to_multi_crop.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/draw_view_plan.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/random_resized_crop.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgPilToMultiCropOptions : public Options {
  int64_t total_num_crops = 0;
  std::vector<int64_t> num_crops;
  std::vector<int64_t> size_crops;
  ConfigNode crop_scales;
  ConfigNode crop_ratios;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("total_num_crops", &total_num_crops, Doc("Number of views: the sum of num_crops.").Between(1, 1024));
    visitor.Field("num_crops", &num_crops, Doc("Number of crops of each kind.").Between(1, 1024));
    visitor.Field("size_crops", &size_crops, Doc("Side of the crops of each kind.").Between(1, 65535).Unit("pixels"));
    visitor.Field("crop_scales", &crop_scales, Doc("Parts of the area, [smallest, largest], of each kind."));
    visitor.Field("crop_ratios", &crop_ratios, Doc("Width / height, [smallest, largest], of each kind."));
  }
};

// A list of pairs of numbers, one for each kind of crop.
absl::StatusOr<std::vector<Interval>> ReadIntervals(const ConfigNode& entry, absl::string_view key, size_t kinds,
                                                    double limit) {
  const ConfigNode* list = entry.Find(key);
  if (list == nullptr || !list->is_list() || list->items().size() != kinds) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, key), " is ",
                                                   list == nullptr ? "missing" : list->Describe(), ", expected ", kinds,
                                                   " pairs [smallest, largest], as num_crops has ", kinds, " entries"));
  }
  std::vector<Interval> intervals;
  for (const ConfigNode& item : list->items()) {
    std::vector<double> pair;
    for (const ConfigNode& number : item.items()) {
      SSL_ASSIGN_OR_RETURN(const double value, number.AsDouble());
      pair.push_back(value);
    }
    SSL_ASSIGN_OR_RETURN(const Interval interval, ParseInterval(entry, key, pair, limit));
    intervals.push_back(interval);
  }
  return intervals;
}

absl::Status CheckCounts(const ConfigNode& entry, const ImgPilToMultiCropOptions& options) {
  if (options.num_crops.size() != options.size_crops.size()) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "size_crops"), " has ",
                                                   options.size_crops.size(), " entries, expected ",
                                                   options.num_crops.size(), " as num_crops"));
  }
  int64_t sum = 0;
  for (int64_t count : options.num_crops) sum += count;
  if (sum != options.total_num_crops) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "total_num_crops"), " is ",
                                                   options.total_num_crops, ", expected ", sum,
                                                   ", the sum of num_crops"));
  }
  return absl::OkStatus();
}

}  // namespace

NeededPixels ImgPilToMultiCrop::Needs(const TransformContext& context, int, int height, int width) const {
  NeededPixels needed = NeededForCrop(context, 0, crops_[0], height, width);
  for (size_t v = 1; v < crops_.size(); ++v) {
    needed = Union(needed, NeededForCrop(context, static_cast<int>(v), crops_[v], height, width));
  }
  return needed;
}

absl::Status ImgPilToMultiCrop::Apply(const TransformContext& context, Sample* sample) const {
  if (sample->num_views() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("makes crops of one image, but gets ", sample->num_views()));
  }
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(sample->view(0)));
  ApplyFlip(&sample->view(0));
  Image& source = context.scratch.image;
  std::swap(source, sample->view(0).image);
  sample->ResetViews(static_cast<int>(crops_.size()));
  for (int v = 0; v < sample->num_views(); ++v) {
    DrawCrop(context, v, crops_[v], source, &sample->view(v).image);
  }
  return absl::OkStatus();
}

absl::Status ImgPilToMultiCrop::Plan(const TransformContext& context, const Image& image,
                                     std::vector<ViewPlan>* plans) const {
  SSL_RETURN_IF_ERROR(CheckUntouched(*plans));
  plans->assign(crops_.size(), ViewPlan());
  for (size_t v = 0; v < crops_.size(); ++v) {
    CounterRandom random = context.Random(static_cast<int>(v));
    DrawCropPlan(&random, crops_[v], image, &(*plans)[v]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilToMultiCrop(const ConfigNode& entry, const BuildContext& context) {
  ImgPilToMultiCropOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  SSL_RETURN_IF_ERROR(CheckCounts(entry, options));
  const size_t kinds = options.num_crops.size();
  SSL_ASSIGN_OR_RETURN(const std::vector<Interval> scales, ReadIntervals(entry, "crop_scales", kinds, 1.0));
  std::vector<Interval> ratios(kinds, RandomCropRule().ratio);
  if (!options.crop_ratios.is_null()) {
    SSL_ASSIGN_OR_RETURN(ratios, ReadIntervals(entry, "crop_ratios", kinds, 1000.0));
  }
  std::vector<RandomCropRule> crops;
  for (size_t kind = 0; kind < kinds; ++kind) {
    const int side = static_cast<int>(options.size_crops[kind]);
    crops.insert(crops.end(), options.num_crops[kind], RandomCropRule{side, side, scales[kind], ratios[kind]});
  }
  return std::make_unique<ImgPilToMultiCrop>(std::move(crops));
}

std::unique_ptr<Options> MakeImgPilToMultiCropOptions() { return std::make_unique<ImgPilToMultiCropOptions>(); }

}  // namespace ssl
