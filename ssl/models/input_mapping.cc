// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/input_mapping.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"

namespace ssl {
namespace {

constexpr char kPath[] = "config.MODEL.MULTI_INPUT_HEAD_MAPPING";

// The second half of an entry.
struct MappingOptions : public Options {
  std::vector<std::string> feat_names;
  int64_t head_index = -1;
  std::vector<std::string> additional_keys;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("feat_names", &feat_names, Doc("The stage; none: the trunk's output."));
    visitor.Field("head_index", &head_index, Doc("The head; -1: that of the entry's position."));
    visitor.Field("additional_keys", &additional_keys, Doc("Not supported."));
  }
};

absl::Status ErrorAt(const ConfigNode& node, const std::string& path, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(), ": ", path, " ", text));
}

absl::StatusOr<MappingOptions> ReadEntry(const ConfigNode& entry, const std::string& path) {
  const std::vector<ConfigNode>& items = entry.items();
  if (items.size() != 2 || !items[0].is_scalar() || !(items[1].is_list() || items[1].is_map())) {
    return ErrorAt(entry, path,
                   absl::StrCat("is ", entry.Describe(), ", expected [input, [stage]] or [input, {feat_names, ...}]"));
  }
  ConfigNode options_node = items[1];
  if (items[1].is_list()) {
    options_node = ConfigNode::Map(items[1].location());
    options_node.Set("feat_names", items[1]);
  }
  MappingOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(options_node, path, UnknownKeys::kError, &options));
  return options;
}

absl::Status CheckEntry(const ConfigNode& entry, const std::string& path, const MappingOptions& options,
                        size_t num_heads, const std::vector<std::string>& stages) {
  if (options.feat_names.size() > 1) {
    return ErrorAt(entry, path,
                   absl::StrCat("names ", options.feat_names.size(), " stages, expected at most one: it has one head"));
  }
  for (const std::string& stage : options.feat_names) {
    if (std::find(stages.begin(), stages.end(), stage) != stages.end()) continue;
    return ErrorAt(entry, path,
                   absl::StrCat("names the stage '", stage, "', expected one of ", absl::StrJoin(stages, ", "),
                                DidYouMean(stage, stages)));
  }
  if (!options.additional_keys.empty()) {
    return ErrorAt(entry, path,
                   absl::StrCat("has additional_keys (", absl::StrJoin(options.additional_keys, ", "),
                                "), expected none: no trunk here takes a second input"));
  }
  if (options.head_index >= static_cast<int64_t>(num_heads)) {
    return ErrorAt(entry, path, absl::StrCat("has head_index ", options.head_index, " of ", num_heads, " heads"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<MappedInput>> ReadInputMapping(const ConfigNode& entries, size_t num_heads,
                                                          const std::vector<std::string>& stages) {
  if (!entries.is_list() && !entries.is_null()) {
    return ErrorAt(entries, kPath, absl::StrCat("is ", entries.Describe(), ", expected [[input, [stage]], ...]"));
  }
  std::vector<MappedInput> inputs;
  for (size_t i = 0; i < entries.items().size(); ++i) {
    const ConfigNode& entry = entries.items()[i];
    const std::string path = absl::StrCat(kPath, "[", i, "]");
    SSL_ASSIGN_OR_RETURN(const MappingOptions options, ReadEntry(entry, path));
    SSL_RETURN_IF_ERROR(CheckEntry(entry, path, options, num_heads, stages));
    MappedInput input;
    input.name = entry.items()[0].text();
    input.stage = options.feat_names.empty() ? "" : options.feat_names.front();
    input.head = options.head_index >= 0 ? static_cast<size_t>(options.head_index)
                                         : std::min(i, std::max<size_t>(num_heads, 1) - 1);
    const auto same_name = [&input](const MappedInput& other) { return other.name == input.name; };
    if (std::any_of(inputs.begin(), inputs.end(), same_name)) {
      return ErrorAt(entry, path, absl::StrCat("maps the input '", input.name, "' a second time"));
    }
    inputs.push_back(input);
  }
  return inputs;
}

}  // namespace ssl
