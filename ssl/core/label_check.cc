// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/label_check.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/head_outputs.h"
#include "ssl/core/target_columns.h"

namespace ssl {
namespace {

// "file:line: config.DATA.TEST.KEY"; without a place where no file sets it.
std::string NameOf(absl::string_view key, const ConfigNode& config) {
  const ConfigNode* node = config.FindPath(key);
  const bool placed = node != nullptr && !node->location().file.empty();
  return absl::StrCat(placed ? absl::StrCat(node->location().ToString(), ": ") : "", "config.", key);
}

// "a, b": the entries of a list, and of lists in it; "" when there is none.
std::string EntriesOf(const ConfigNode& node) {
  if (!node.is_list()) return node.text();
  return absl::StrJoin(node.items(), ", ",
                       [](std::string* out, const ConfigNode& item) { absl::StrAppend(out, EntriesOf(item)); });
}

std::string EntriesOf(absl::string_view key, const ConfigNode& config) {
  const ConfigNode* node = config.FindPath(key);
  return node == nullptr || !node->is_list() ? "" : EntriesOf(*node);
}

bool HasSeveral(absl::string_view key, const ConfigNode& config) {
  const ConfigNode* node = config.FindPath(key);
  return node != nullptr && node->is_list() && node->items().size() > 1;
}

// "file:line: config.DATA.TEST.LABEL_PATHS [labels.txt]": the first of `keys` that is not empty.
std::string FirstNamed(const std::string& split, const std::vector<std::string>& keys, const ConfigNode& config) {
  for (const std::string& key : keys) {
    const std::string path = absl::StrCat("DATA.", split, ".", key);
    const std::string value = EntriesOf(path, config);
    if (!value.empty()) return absl::StrCat(NameOf(path, config), " [", value, "]");
  }
  return absl::StrCat("config.DATA.", split);
}

// "label 4", and what else is known of it.
std::string Describe(int64_t label, const std::string& split, const BatchSource& source, const ConfigNode& config) {
  const std::vector<std::string> names = source.ClassNames();
  const bool named = label < static_cast<int64_t>(names.size());
  const ConfigNode* type = config.FindPath(absl::StrCat("DATA.", split, ".LABEL_TYPE"));
  const bool standard = type == nullptr || type->text() == "standard";
  return absl::StrCat("label ", label, named ? absl::StrCat(" (", names[label], ")") : "",
                      standard ? "" : absl::StrCat(" by LABEL_TYPE ", type->text()));
}

// Targets that a collator makes have a column for each output.
absl::Status CheckTargetColumns(int64_t outputs, const std::string& split, const BatchSource& source,
                                const ConfigNode& config) {
  const auto* maker = dynamic_cast<const TargetColumns*>(&source);
  const int64_t columns = maker == nullptr ? 0 : maker->target_columns();
  if (columns == 0 || outputs == 0 || columns == outputs) return absl::OkStatus();
  const std::string function = absl::StrCat("DATA.", split, ".COLLATE_FUNCTION");
  const ConfigNode* name = config.FindPath(function);
  return absl::InvalidArgumentError(absl::StrCat(NameOf(function, config), " ", name == nullptr ? "" : name->text(),
                                                 " makes targets of ", columns, " classes, expected ", outputs,
                                                 ", the outputs of config.MODEL.HEAD.PARAMS (",
                                                 config.FindPath("MODEL.HEAD.PARAMS")->location().ToString(),
                                                 "); config.", function, "_PARAMS.num_classes says how many"));
}

}  // namespace

absl::Status CheckHasLabels(absl::string_view who, const std::string& split, const BatchSource& source,
                            const ConfigNode& config) {
  if (source.has_labels()) return absl::OkStatus();
  const std::string key = absl::StrCat("DATA.", split, ".LABEL_SOURCES");
  const bool several = HasSeveral(absl::StrCat("DATA.", split, ".DATA_SOURCES"), config);
  return absl::InvalidArgumentError(
      absl::StrCat(who, ", but ", FirstNamed(split, {"DATA_PATHS", "DATA_SOURCES"}, config),
                   several ? " do not all have them, or not of one kind: " : " has none: ", NameOf(key, config),
                   " is [", EntriesOf(key, config), "], expected [disk_filelist] with a file of ",
                   "labels in config.DATA.", split, ".LABEL_PATHS, or a data source that has labels, such as ",
                   "disk_folder, or synthetic with config.DATA.", split, ".RANDOM_SYNTHETIC_LABELS"));
}

absl::Status CheckClassesBelow(int64_t limit, absl::string_view what, int64_t ignored, const std::string& split,
                               const BatchSource& source, const ConfigNode& config) {
  const absl::StatusOr<std::vector<int64_t>> classes = source.Classes();
  if (absl::IsUnimplemented(classes.status())) return absl::OkStatus();  // each batch is checked by its loss
  SSL_RETURN_IF_ERROR(classes.status());
  const auto is_counted = [&](int64_t label) { return label != ignored; };
  const auto largest = std::find_if(classes->rbegin(), classes->rend(), is_counted);  // they ascend
  if (largest == classes->rend() || *largest < limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(FirstNamed(split, {"LABEL_PATHS", "DATA_PATHS", "DATA_SOURCES"}, config), " has ",
                   Describe(*largest, split, source, config), ", expected labels below ", limit, ", ", what));
}

absl::Status CheckLabels(const Method& method, const std::string& split, const BatchSource& source,
                         const ConfigNode& config) {
  if (!method.needs_labels()) return absl::OkStatus();
  const std::string who =
      absl::StrCat(NameOf("LOSS.name", config), " is ", config.FindPath("LOSS.name")->text(), ", which needs labels");
  SSL_RETURN_IF_ERROR(CheckHasLabels(who, split, source, config));
  const int64_t outputs = LastHeadOutputs(config);
  SSL_RETURN_IF_ERROR(CheckTargetColumns(outputs, split, source, config));
  if (!method.labels_are_classes() || outputs == 0) return absl::OkStatus();
  const std::string place = config.FindPath("MODEL.HEAD.PARAMS")->location().ToString();
  return CheckClassesBelow(outputs, absl::StrCat("the outputs of config.MODEL.HEAD.PARAMS (", place, ")"),
                           method.ignored_label(), split, source, config);
}

}  // namespace ssl
