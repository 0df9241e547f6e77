// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/setting_checks.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/config/world_shape.h"

namespace ssl {
namespace {

constexpr absl::string_view kBatchSize = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";

int64_t Int(const ConfigNode& config, absl::string_view path, int64_t fallback) {
  const ConfigNode* node = config.FindPath(path);
  if (node == nullptr) return fallback;
  const absl::StatusOr<int64_t> value = node->AsInt();
  return value.ok() ? *value : fallback;
}

bool IsTrue(const ConfigNode& config, absl::string_view path) {
  const ConfigNode* node = config.FindPath(path);
  if (node == nullptr) return false;
  const absl::StatusOr<bool> value = node->AsBool();
  return value.ok() && *value;
}

std::string PlaceOf(const ConfigNode& config, absl::string_view path) {
  const ConfigNode* node = config.FindPath(path);
  return node == nullptr ? "(built in)" : node->location().ToString();
}

// A wrong number of ranks is the resolvers' to report.
int64_t Ranks(const ConfigNode& config) { return ReadWorldShape(config).value_or(WorldShape()).ranks(); }

// Views of an image that the model sees in one pass: the smallest group of crops of one size, or the copies of the
// image; 1 without either.
int64_t SmallestViewGroup(const ConfigNode& config) {
  int64_t smallest = 1;
  for (const ConfigNode& transform : config.FindPath("DATA.TRAIN.TRANSFORMS")->items()) {
    if (const ConfigNode* copies = transform.Find("num_times")) smallest = copies->AsInt().value_or(1);
    const ConfigNode* crops = transform.Find("num_crops");
    if (crops == nullptr || crops->items().empty()) continue;
    smallest = INT64_MAX;
    for (const ConfigNode& item : crops->items()) smallest = std::min(smallest, item.AsInt().value_or(1));
  }
  return smallest;
}

void CheckBatchNorm(const ConfigNode& config, std::vector<std::string>* problems) {
  const bool freezes = IsTrue(config, "MODEL.FEATURE_EVAL_SETTINGS.EVAL_MODE_ON");
  if (freezes || config.FindPath("DATA.TRAIN.TRANSFORMS") == nullptr) return;
  const bool shares_statistics = IsTrue(config, "MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN");
  const int64_t batch = Int(config, kBatchSize, 2) * (shares_statistics ? Ranks(config) : 1);
  if (batch * SmallestViewGroup(config) != 1) return;
  problems->push_back(absl::StrCat(PlaceOf(config, kBatchSize), ": config.", kBatchSize,
                                   " is 1, with one view of a size: batch norm needs at least 2 samples"));
}

void CheckTopK(const ConfigNode& config, std::vector<std::string>* problems) {
  const int64_t outputs = LastHeadOutputs(config);
  const ConfigNode* names = config.FindPath("METERS.names");
  if (outputs == 0 || names == nullptr) return;
  for (const ConfigNode& name : names->items()) {
    const std::string path = absl::StrCat("METERS.", name.text(), ".topk_values");
    const ConfigNode* values = config.FindPath(path);
    if (values == nullptr) continue;
    for (const ConfigNode& value : values->items()) {
      if (value.AsInt().value_or(0) <= outputs) continue;
      problems->push_back(absl::StrCat(value.location().ToString(), ": config.", path, " holds ", value.text(),
                                       ", expected at most ", outputs, ", the outputs of the last head (",
                                       PlaceOf(config, "MODEL.HEAD.PARAMS"), ")"));
    }
  }
}

void CheckTransformTypes(const ConfigNode& config, std::vector<std::string>* problems) {
  for (const char* path : {"DATA.TRAIN.TRANSFORMS", "DATA.TEST.TRANSFORMS"}) {
    const ConfigNode* list = config.FindPath(path);
    if (list == nullptr) continue;
    for (const ConfigNode& transform : list->items()) {
      const ConfigNode* type = transform.Find("transform_type");
      if (type == nullptr || type->is_null() || type->text() == "augly") continue;
      problems->push_back(absl::StrCat(type->location().ToString(), ": transform_type in config.", path, " is ",
                                       type->Describe(), ", expected none or 'augly'"));
    }
  }
}

}  // namespace

std::vector<std::string> ContradictingSettings(const ConfigNode& config) {
  std::vector<std::string> problems;
  CheckBatchNorm(config, &problems);
  CheckTopK(config, &problems);
  CheckTransformTypes(config, &problems);
  return problems;
}

int64_t LastHeadOutputs(const ConfigNode& config) {
  const ConfigNode* heads = config.FindPath("MODEL.HEAD.PARAMS");
  if (heads == nullptr || heads->items().empty()) return 0;
  const ConfigNode* last = &heads->items().back();
  while (!last->items().empty() && last->items()[0].is_list()) last = &last->items().back();
  const ConfigNode* dims = last->items().size() == 2 ? last->items()[1].Find("dims") : nullptr;
  return dims == nullptr || dims->items().empty() ? 0 : dims->items().back().AsInt().value_or(0);
}

}  // namespace ssl
