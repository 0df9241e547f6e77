// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/broken_images_hook.h"

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/surrogate_escape.h"
#include "ssl/core/batch_source.h"
#include "ssl/data/fault_counts.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/communicator.h"
#include "ssl/hooks/folder_in_run.h"
#include "ssl/hooks/register_component.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

constexpr char kKinds[] = "by_kind";

using Json = nlohmann::ordered_json;

// "17:1 23:4": image 17 has fault 1. Those of several ranks may follow one another.
std::string ToText(const std::map<int64_t, ReadFault>& images) {
  std::string text;
  for (const auto& [index, fault] : images) absl::StrAppend(&text, index, ":", static_cast<int>(fault), " ");
  return text;
}

std::map<int64_t, ReadFault> FromText(absl::string_view text) {
  std::map<int64_t, ReadFault> images;
  for (const absl::string_view entry : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits(':', 1));
    int64_t index = 0;
    int fault = 0;
    if (!absl::SimpleAtoi(parts.first, &index) || !absl::SimpleAtoi(parts.second, &fault)) continue;
    if (fault > 0 && fault < kNumReadFaults) images[index] = static_cast<ReadFault>(fault);
  }
  return images;
}

// What earlier files call a kind; "" for one that they do not tell from others.
std::string FormerName(ReadFault fault) {
  switch (fault) {
    case ReadFault::kUnsupported:
      return "of another format";
    case ReadFault::kTooLarge:
      return "over a limit";
    case ReadFault::kEmpty:
    case ReadFault::kTruncated:
    case ReadFault::kNotAnImage:
      return "";
    default:
      return std::string(ReadFaultName(fault));
  }
}

absl::Status ForeignFile(const std::string& path, absl::string_view kind) {
  return absl::DataLossError(
      absl::StrCat(path, ": has no number \"", kind, "\" in \"", kKinds, "\", expected what a training has written"));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeBrokenImages(const BrokenImagesOptions& options, const ConfigNode& params,
                                                       const BuildContext& context) {
  std::string file;
  if (!context.run_directory.empty()) {
    SSL_ASSIGN_OR_RETURN(file, FileInRun(context, "hook 'broken_images'", kBrokenImagesFile));
  }
  return std::make_unique<BrokenImagesHook>(std::move(file), context.file_system);
}

}  // namespace

absl::StatusOr<std::map<std::string, int64_t>> ReadBrokenImageCounts(FileSystem& file_system, const std::string& path) {
  std::map<std::string, int64_t> counts;
  if (!file_system.Exists(path)) return counts;
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system.Read(path));
  const Json json = Json::parse(MarkEscapes(text), nullptr, /*allow_exceptions=*/false);
  const auto kinds = json.is_object() ? json.find(kKinds) : json.end();
  if (kinds == json.end() || !kinds->is_object()) return ForeignFile(path, ReadFaultName(kKindsOfBroken[0]));
  for (const ReadFault fault : kKindsOfBroken) {
    const std::string name(ReadFaultName(fault));
    const auto count = kinds->contains(name) ? kinds->find(name) : kinds->find(FormerName(fault));
    const bool is_new = FormerName(fault).empty();
    if (count == kinds->end() ? !is_new : !count->is_number_unsigned()) return ForeignFile(path, name);
    counts[name] = count == kinds->end() ? 0 : count->get<int64_t>();
  }
  return counts;
}

void BrokenImagesOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field(
      "COUNT", &count,
      Doc("count the training images that cannot be read, and name them in broken_images.json (ours)").MayChange());
}

std::vector<PlannedAction> BrokenImagesHook::Plan() const {
  return {{"counts the images that could not be read", {Cadence::Unit::kEpoch, 1, 1, 0, false}}};
}

// A source that reads no images, such as a host's, has none of its own to tell.
absl::Status BrokenImagesHook::OnStep(StepContext& context) {
  const auto* source = dynamic_cast<const ReplacedImages*>(context.source);
  if (!context.state.training || source == nullptr) return absl::OkStatus();
  const std::map<int64_t, ReadFault>& replaced = source->replaced_images();
  if (replaced.size() == taken_) return absl::OkStatus();  // a step takes no longer where many are broken
  images_.insert(replaced.begin(), replaced.end());
  taken_ = replaced.size();
  return absl::OkStatus();
}

absl::Status BrokenImagesHook::OnPhaseEnd(StepContext& context) {
  const auto* source = dynamic_cast<const ReplacedImages*>(context.source);
  if (!context.state.training || source == nullptr) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(JoinFaults(context.communicator, &images_));
  if (images_.empty()) return absl::OkStatus();
  const absl::Status status = context.communicator.rank() == 0 ? Tell(*source) : absl::OkStatus();
  return AgreeOnStatus(status, absl::StrCat("writing ", kBrokenImagesFile), context.communicator);
}

absl::Status BrokenImagesHook::Tell(const ReplacedImages& source) {
  const bool is_new = images_.size() != told_;
  if (is_new) SSL_LOG(WARNING) << Summary();
  told_ = images_.size();
  if (file_.empty()) return absl::OkStatus();
  const absl::Status present = ReadBrokenImageCounts(file_system_, file_).status();
  const bool is_damaged = absl::IsDataLoss(present);
  if (is_damaged) SSL_LOG(WARNING) << present.message() << "; it is written again";
  return is_new || is_damaged ? WriteFileAtomically(file_system_, file_, ToJson(source)) : absl::OkStatus();
}

std::string BrokenImagesHook::Summary() const {
  const std::array<int64_t, kNumReadFaults> counts = CountFaults(images_);
  std::vector<std::string> kinds;
  for (const ReadFault fault : kKindsOfBroken) {
    const int64_t count = counts[static_cast<int>(fault)];
    if (count > 0) kinds.push_back(absl::StrCat(count, " ", ReadFaultName(fault)));
  }
  return absl::StrCat(images_.size(), images_.size() == 1 ? " image" : " images",
                      " of the training set could not be read so far: ", absl::StrJoin(kinds, ", "),
                      file_.empty() ? "" : absl::StrCat("; ", file_, " names them"));
}

std::string BrokenImagesHook::ToJson(const ReplacedImages& source) const {
  Json json = Json::object();
  json["broken_images"] = images_.size();
  Json& kinds = json[kKinds] = Json::object();
  const std::array<int64_t, kNumReadFaults> counts = CountFaults(images_);
  for (const ReadFault fault : kKindsOfBroken) {
    kinds[std::string(ReadFaultName(fault))] = counts[static_cast<int>(fault)];
  }
  Json& list = json["images"] = Json::array();
  for (const auto& [index, fault] : images_) {
    list.push_back(
        {{"index", index}, {"kind", std::string(ReadFaultName(fault))}, {"name", MarkBytes(source.ImageName(index))}});
  }
  return EscapeMarks(json.dump(1)) + "\n";
}

void BrokenImagesHook::VisitState(StateVisitor& visitor) {
  state_ = ToText(images_);
  visitor.Text("images", state_);
  visitor.RanksDiffer("images", RankValues::kJoin);
  visitor.OnRestored([this] {
    images_ = FromText(state_);
    told_ = 0;
    taken_ = 0;
  });
}

absl::Status RegisterBrokenImagesHook(Registries* registries) {
  return RegisterHook(registries, {"broken_images", "counts and names the images that could not be read"},
                      &MakeBrokenImages);
}

}  // namespace ssl
