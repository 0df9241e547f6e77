// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/weight_names.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

constexpr absl::string_view kTrunk = "trunk.";
constexpr absl::string_view kHeads = "heads.";

bool IsModelName(absl::string_view name) { return absl::StartsWith(name, kTrunk) || absl::StartsWith(name, kHeads); }

// Drops the modules that VISSL wraps a trunk into.
std::string Unwrap(absl::string_view name) {
  while (absl::ConsumePrefix(&name, "base_model.") || absl::ConsumePrefix(&name, "_feature_blocks.")) {
  }
  return std::string(name);
}

// "0" and 1 give "1"; false when `text` is no number.
bool AddTo(absl::string_view text, int64_t offset, std::string* sum) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return false;
  *sum = absl::StrCat(number + offset);
  return true;
}

}  // namespace

std::string FromHuggingFace(absl::string_view name) {
  const std::string unchanged(name);
  absl::ConsumePrefix(&name, "resnet.");
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  const absl::string_view module = parts.size() >= 2 ? parts[parts.size() - 2] : "";
  const bool convolution = module == "convolution";
  if (!convolution && module != "normalization") return unchanged;
  const absl::string_view value = parts.back();
  if (absl::StartsWith(name, "embedder.embedder.")) return absl::StrCat(convolution ? "conv1." : "bn1.", value);
  // encoder.stages.<s>.layers.<l>.layer.<k>.<module>.<value>, or
  // encoder.stages.<s>.layers.<l>.shortcut.<module>.<value>
  if (!absl::StartsWith(name, "encoder.stages.") || parts.size() < 8 || parts[3] != "layers") return unchanged;
  std::string stage;
  if (!AddTo(parts[2], 1, &stage)) return unchanged;
  const std::string block = absl::StrCat("layer", stage, ".", parts[4], ".");
  if (parts[5] == "shortcut") return absl::StrCat(block, "downsample.", convolution ? 0 : 1, ".", value);
  std::string layer;
  if (parts[5] != "layer" || !AddTo(parts[6], 1, &layer)) return unchanged;
  return absl::StrCat(block, convolution ? "conv" : "bn", layer, ".", value);
}

std::vector<std::string> ToModelNames(const std::vector<std::string>& names) {
  const bool model = std::any_of(names.begin(), names.end(), IsModelName);
  std::vector<std::string> model_names;
  model_names.reserve(names.size());
  for (const std::string& name : names) {
    absl::string_view rest = name;
    if (absl::ConsumePrefix(&rest, kTrunk)) {
      model_names.push_back(absl::StrCat(kTrunk, FromHuggingFace(Unwrap(rest))));
    } else if (model) {
      model_names.push_back(name);
    } else {
      model_names.push_back(absl::StrCat(kTrunk, FromHuggingFace(Unwrap(rest))));
    }
  }
  return model_names;
}

}  // namespace ssl
