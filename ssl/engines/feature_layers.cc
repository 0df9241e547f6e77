// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_layers.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/device_tensors.h"
#include "ssl/data/loader/denormalizer.h"

namespace ssl {
namespace {

constexpr char kPooled[] = "res5avg";
constexpr int64_t kLargestSide = 32;  // pixels, of the pixel baseline

// images: [B, C, H, W]. Returns [B, C, h, w].
at::Tensor AveragedDown(const at::Tensor& images) {
  const int64_t height = std::min(images.size(2), kLargestSide);
  const int64_t width = std::min(images.size(3), kLargestSide);
  const bool fits = height == images.size(2) && width == images.size(3);
  return fits ? images : at::adaptive_avg_pool2d(images, {height, width});
}

// images: [N, C, h, w].
bool IsGrey(const at::Tensor& images) {
  return images.size(1) == 3 && at::equal(images, images.slice(1, 0, 1).expand_as(images));
}

}  // namespace

absl::StatusOr<std::vector<FeatureRequest>> ParseFeatureRequests(const std::vector<std::string>& texts) {
  std::vector<FeatureRequest> requests;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
    FeatureRequest request;
    request.name = parts.first;
    int64_t side = 0;
    const bool pooled = !parts.second.empty();
    if (pooled && (!absl::SimpleAtoi(parts.second, &side) || side < 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("feature '", text, "' has no pooled size after ':', expected a stage like res4 or res4:2"));
    }
    if (pooled) request.pool = {FeaturePool::Kind::kAdaptiveAverage, {side, side}, {}, {}};
    requests.push_back(request);
  }
  return requests;
}

std::vector<std::string> LayerNames(const std::vector<FeatureRequest>& requests) {
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const FeatureRequest& request : requests) {
    const int earlier = seen[request.name]++;
    names.push_back(earlier == 0 ? request.name : absl::StrCat(request.name, "_", earlier));
  }
  return names;
}

std::vector<FeatureRequest> UsualFeatures(const Model& model, const ConfigNode& config) {
  std::vector<FeatureRequest> configured = model.configured_features();
  if (!configured.empty()) return configured;
  const std::vector<std::string> stages = model.feature_names();
  const ConfigNode* evaluates = config.Section("MODEL.FEATURE_EVAL_SETTINGS").Find("EVAL_MODE_ON");
  const bool wants_heads = evaluates != nullptr && evaluates->AsBool().value_or(false);
  FeatureRequest request;
  request.name = stages.empty() || wants_heads ? kHeads : stages.back();
  // The same feature has a second name after it, "flatten"; this one is how it is known.
  if (!wants_heads && std::find(stages.begin(), stages.end(), kPooled) != stages.end()) request.name = kPooled;
  return {request};
}

absl::Status CheckFeatureNames(const Model& model, const std::vector<FeatureRequest>& requests, const std::string& key,
                               const ConfigNode& config) {
  std::vector<std::string> known = model.feature_names();
  known.emplace_back(kHeads);
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string& name = requests[i].name;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const ConfigNode* list = config.FindPath(key);
    const bool is_listed = list != nullptr && i < list->items().size();
    const SourceLocation place = is_listed ? list->items()[i].location() : SourceLocation();
    return absl::InvalidArgumentError(absl::StrCat(place.ToString(), ": config.", key, " has '", name,
                                                   "', expected stages of the network: ", absl::StrJoin(known, ", "),
                                                   DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

FeatureLayers ChooseFeatureLayers(Model& model, std::vector<FeatureRequest> requests, Autocast autocast) {
  FeatureLayers layers;
  layers.names = LayerNames(requests);
  layers.device = DeviceOf(model);
  layers.compute = [&model, requests = std::move(requests), autocast, device = layers.device](const at::Tensor& batch) {
    const AutocastScope scope(autocast);
    const at::Tensor images = batch.to(device);
    std::vector<FeatureRequest> stages;
    for (const FeatureRequest& request : requests) {
      if (request.name != kHeads) stages.push_back(request);
    }
    std::vector<at::Tensor> of_stages = model.Features(images, stages);
    std::vector<at::Tensor> features;
    size_t stage = 0;
    for (const FeatureRequest& request : requests) {
      const bool heads = request.name == kHeads;
      const at::Tensor feature = heads ? model.Forward({images}).at(0).flatten(1) : of_stages.at(stage++);
      features.push_back(feature.to(at::kCPU, at::kFloat));
    }
    return features;
  };
  return layers;
}

at::Tensor JoinFeatures(const std::vector<at::Tensor>& features) {
  if (features.size() == 1) return features[0].flatten(1);
  std::vector<at::Tensor> rows;
  for (const at::Tensor& feature : features) {
    const at::Tensor row = feature.flatten(1);
    rows.push_back(row.div(row.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12)));
  }
  return at::cat(rows, 1);
}

FeatureLayers JoinLayers(FeatureLayers layers) {
  return {{absl::StrJoin(layers.names, "+")},
          [compute = std::move(layers.compute)](const at::Tensor& images) -> std::vector<at::Tensor> {
            return {JoinFeatures(compute(images))};
          },
          layers.device};
}

absl::StatusOr<FeatureLayers> PixelLayers(const ConfigNode& transforms) {
  SSL_ASSIGN_OR_RETURN(Denormalizer denormalizer, Denormalizer::Create(transforms));
  return FeatureLayers{{"pixels"},
                       [denormalizer = std::move(denormalizer)](const at::Tensor& images) -> std::vector<at::Tensor> {
                         return {AveragedDown(denormalizer.ToUnit(images))};
                       }};
}

void CountGreyPixelsOnce(FeatureSet* train, FeatureSet* test) {
  if (!IsGrey(train->features[0]) || !IsGrey(test->features[0])) return;
  for (FeatureSet* set : {train, test}) set->features[0] = set->features[0].slice(1, 0, 1).contiguous();
}

}  // namespace ssl
