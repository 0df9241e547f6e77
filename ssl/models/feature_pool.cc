// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/feature_pool.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

struct PoolSpec {
  const char* name;
  FeaturePool::Kind kind;
  size_t least_arguments;
  size_t most_arguments;
};

constexpr PoolSpec kPools[] = {
    {"AdaptiveAvgPool2d", FeaturePool::Kind::kAdaptiveAverage, 1, 1},
    {"AdaptiveMaxPool2d", FeaturePool::Kind::kAdaptiveMax, 1, 1},
    {"AvgPool2d", FeaturePool::Kind::kAverage, 1, 3},
    {"MaxPool2d", FeaturePool::Kind::kMax, 1, 3},
    {"Identity", FeaturePool::Kind::kIdentity, 0, 0},
};

absl::Status ErrorAt(const ConfigNode& node, absl::string_view path, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(), ": ", path, " ", text));
}

absl::StatusOr<const PoolSpec*> FindPool(const ConfigNode& name, absl::string_view path) {
  std::vector<std::string> known;
  for (const PoolSpec& spec : kPools) {
    if (name.text() == spec.name) return &spec;
    known.push_back(spec.name);
  }
  return ErrorAt(name, path,
                 absl::StrCat("pools with ", name.Describe(), ", expected one of ", absl::StrJoin(known, ", "),
                              DidYouMean(name.text(), known)));
}

// [height, width] of an argument that is one number or two, none below `least`.
absl::StatusOr<std::vector<int64_t>> ReadSides(const ConfigNode& node, int64_t least, absl::string_view path) {
  const std::vector<ConfigNode> one = {node};
  const std::vector<ConfigNode>& numbers = node.is_list() ? node.items() : one;
  std::vector<int64_t> sides;
  for (const ConfigNode& number : numbers) {
    const absl::StatusOr<int64_t> side = number.AsInt();
    if (!side.ok() || *side < least) {
      return ErrorAt(number, path, absl::StrCat("is ", number.Describe(), ", expected an integer of at least ", least));
    }
    sides.push_back(*side);
  }
  if (sides.size() == 1) sides.push_back(sides.front());
  if (sides.size() != 2) {
    return ErrorAt(node, path, absl::StrCat("has ", numbers.size(), " numbers, expected one or [height, width]"));
  }
  return sides;
}

// entry: [name] or [name, [arguments]].
absl::StatusOr<FeaturePool> ReadPool(const ConfigNode& entry, const std::string& path) {
  const std::vector<ConfigNode>& items = entry.items();
  if (items.empty() || items.size() > 2 || (items.size() == 2 && !items[1].is_list())) {
    return ErrorAt(entry, path, absl::StrCat("is ", entry.Describe(), ", expected [pool, [arguments]]"));
  }
  SSL_ASSIGN_OR_RETURN(const PoolSpec* const spec, FindPool(items[0], path));
  const std::vector<ConfigNode> none;
  const std::vector<ConfigNode>& arguments = items.size() == 2 ? items[1].items() : none;
  if (arguments.size() < spec->least_arguments || arguments.size() > spec->most_arguments) {
    return ErrorAt(entry, path,
                   absl::StrCat("gives ", spec->name, " ", arguments.size(), " arguments, expected ",
                                spec->least_arguments, " to ", spec->most_arguments));
  }
  FeaturePool pool;
  pool.kind = spec->kind;
  const struct {
    std::vector<int64_t>* sides;
    int64_t least;
    const char* name;
  } targets[] = {{&pool.size, 1, "size"}, {&pool.stride, 1, "stride"}, {&pool.padding, 0, "padding"}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    SSL_ASSIGN_OR_RETURN(*targets[i].sides,
                         ReadSides(arguments[i], targets[i].least, absl::StrCat(path, " ", targets[i].name)));
  }
  for (size_t i = 0; i < pool.padding.size(); ++i) {
    if (pool.padding[i] * 2 <= pool.size[i]) continue;
    return ErrorAt(entry, path,
                   absl::StrCat("pads by ", pool.padding[i], ", expected at most half the kernel, ", pool.size[i]));
  }
  return pool;
}

std::vector<int64_t> PaddingOf(const FeaturePool& pool) {
  return pool.padding.empty() ? std::vector<int64_t>{0, 0} : pool.padding;
}

at::Tensor Pool(const at::Tensor& map, const FeaturePool& pool) {
  switch (pool.kind) {
    case FeaturePool::Kind::kIdentity:
      return map;
    case FeaturePool::Kind::kAdaptiveAverage:
      return at::adaptive_avg_pool2d(map, pool.size);
    case FeaturePool::Kind::kAdaptiveMax:
      return std::get<0>(at::adaptive_max_pool2d(map, pool.size));
    case FeaturePool::Kind::kAverage:
      return at::avg_pool2d(map, pool.size, pool.stride, PaddingOf(pool));
    case FeaturePool::Kind::kMax:
      return at::max_pool2d(map, pool.size, pool.stride, PaddingOf(pool));
  }
  return map;
}

}  // namespace

absl::StatusOr<std::vector<FeatureRequest>> ReadFeaturePools(const ConfigNode& entries, absl::string_view path,
                                                             bool flatten, const std::vector<std::string>& stages) {
  if (!entries.is_list() && !entries.is_null()) {
    return ErrorAt(entries, path, absl::StrCat("is ", entries.Describe(), ", expected [[stage, [pool, [arguments]]]]"));
  }
  std::vector<FeatureRequest> requests;
  for (size_t i = 0; i < entries.items().size(); ++i) {
    const ConfigNode& entry = entries.items()[i];
    const std::string entry_path = absl::StrCat(path, "[", i, "]");
    if (entry.items().size() != 2 || !entry.items()[1].is_list()) {
      return ErrorAt(entry, entry_path,
                     absl::StrCat("is ", entry.Describe(), ", expected [stage, [pool, [arguments]]]"));
    }
    const ConfigNode& stage = entry.items()[0];
    if (std::find(stages.begin(), stages.end(), stage.text()) == stages.end()) {
      return ErrorAt(stage, entry_path,
                     absl::StrCat("names the stage ", stage.Describe(), ", expected one of ",
                                  absl::StrJoin(stages, ", "), DidYouMean(stage.text(), stages)));
    }
    FeatureRequest request;
    request.name = stage.text();
    request.flatten = flatten;
    SSL_ASSIGN_OR_RETURN(request.pool, ReadPool(entry.items()[1], entry_path));
    requests.push_back(request);
  }
  return requests;
}

at::Tensor PoolFeature(const at::Tensor& stage, const FeatureRequest& request) {
  const at::Tensor pooled = stage.dim() == 4 ? Pool(stage, request.pool) : stage;
  return request.flatten ? pooled.flatten(1) : pooled;
}

}  // namespace ssl
