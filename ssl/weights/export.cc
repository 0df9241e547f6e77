// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/export.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/state_dict.h"
#include "ssl/io/torch_writer.h"

namespace ssl {
namespace {

constexpr absl::string_view kTrunk = "trunk.";

// A family of trunks whose names a format shares, but for the prefix. More families are more rows.
struct Family {
  absl::string_view format;
  absl::string_view marker;  // a tensor that only this family has
  absl::string_view linear;  // what its linear classifier is called
};

constexpr std::array<Family, 3> kFamilies = {{
    {"torchvision", "trunk.layer1.0.conv1.weight", "fc"},
    {"timm", "trunk.layer1.0.conv1.weight", "fc"},
    {"timm", "trunk.patch_embed.proj.weight", "head"},
}};

constexpr absl::string_view kNative = "native";
constexpr absl::string_view kLinearWeight = "heads.0.clf.0.weight";
constexpr absl::string_view kLinearBias = "heads.0.clf.0.bias";

absl::StatusOr<Family> FindFamily(const std::set<std::string>& names, const std::string& format) {
  std::vector<std::string> formats = {std::string(kNative)};
  for (const Family& family : kFamilies) {
    if (formats.back() != family.format) formats.emplace_back(family.format);
    if (family.format == format && names.count(std::string(family.marker)) > 0) return family;
  }
  if (std::find(formats.begin(), formats.end(), format) == formats.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no weights format is named '", format, "'",
                                                   DidYouMean(format, formats),
                                                   "; known: ", absl::StrJoin(formats, ", ")));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("format ", format, " has no names for this trunk; 'native' writes any model"));
}

// True when the heads are a single linear layer and nothing else.
bool HasLinearHead(const std::set<std::string>& names) {
  const auto is_head = [](const std::string& name) { return absl::StartsWith(name, "heads."); };
  const auto heads = std::count_if(names.begin(), names.end(), is_head);
  return heads == 2 && names.count(std::string(kLinearWeight)) == 1 && names.count(std::string(kLinearBias)) == 1;
}

// A writer of each suffix.
struct Suffix {
  absl::string_view suffix;
  absl::Status (*write)(FileSystem& file_system, const std::string& path, const std::vector<NamedTensor>& tensors);
};

absl::Status WriteSafetensorsFile(FileSystem& file_system, const std::string& path,
                                  const std::vector<NamedTensor>& tensors) {
  const std::string temporary = absl::StrCat(path, ".tmp-", getpid());
  absl::Status written = WriteSafetensors(file_system, temporary, tensors, {{"format", "pt"}}).status();
  if (written.ok()) written = file_system.Rename(temporary, path);
  if (written.ok()) return file_system.SyncDirectory(ParentDirectory(path));
  // The first error is the one to report; a temporary file that stays harms nobody.
  if (file_system.Exists(temporary)) file_system.RemoveFile(temporary).IgnoreError();
  return written;
}

constexpr std::array<Suffix, 4> kSuffixes = {{
    {".safetensors", &WriteSafetensorsFile},
    {".pth", &WriteTorchFile},
    {".pt", &WriteTorchFile},
    {".torch", &WriteTorchFile},
}};

absl::StatusOr<Suffix> FindSuffix(const std::string& path) {
  for (const Suffix& known : kSuffixes) {
    if (absl::EndsWith(path, known.suffix)) return known;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("file ", path, ": expected a name that ends with ",
                   absl::StrJoin(kSuffixes, ", ",
                                 [](std::string* text, const Suffix& known) { absl::StrAppend(text, known.suffix); })));
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ExportedTensors(Model& model, const std::string& format,
                                                         std::vector<std::string>* left_out) {
  SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> state, CollectState(model));
  if (format == kNative) return state;
  std::set<std::string> names;
  for (const NamedTensor& entry : state) names.insert(entry.name);
  SSL_ASSIGN_OR_RETURN(const Family family, FindFamily(names, format));
  const bool linear = HasLinearHead(names);
  std::vector<NamedTensor> exported;
  for (NamedTensor& entry : state) {
    if (absl::StartsWith(entry.name, kTrunk)) {
      exported.push_back({entry.name.substr(kTrunk.size()), std::move(entry.tensor)});
    } else if (linear) {
      const absl::string_view part = entry.name == kLinearWeight ? ".weight" : ".bias";
      exported.push_back({absl::StrCat(family.linear, part), std::move(entry.tensor)});
    } else {
      left_out->push_back(std::move(entry.name));
    }
  }
  return exported;
}

absl::Status CheckExportName(const std::string& file) { return FindSuffix(file).status(); }

absl::StatusOr<ExportResult> ExportWeights(FileSystem& file_system, Model& model, const ExportOptions& options) {
  for (const std::string& path : options.files) SSL_RETURN_IF_ERROR(CheckExportName(path));
  ExportResult result;
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors,
                       ExportedTensors(model, options.format, &result.left_out));
  for (const std::string& path : options.files) {
    SSL_ASSIGN_OR_RETURN(const Suffix suffix, FindSuffix(path));
    SSL_RETURN_IF_ERROR(file_system.CreateDirectories(ParentDirectory(path)));
    SSL_RETURN_IF_ERROR(suffix.write(file_system, path, tensors));
    SSL_ASSIGN_OR_RETURN(const int64_t bytes, file_system.Size(path));
    result.files.push_back({path, static_cast<int64_t>(tensors.size()), bytes});
  }
  return result;
}

}  // namespace ssl
