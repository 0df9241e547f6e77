// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/weights_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/checkpointer.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/io/manifest.h"
#include "ssl/io/mapped_file.h"
#include "ssl/io/mapped_tensor.h"
#include "ssl/io/torch_file.h"

namespace ssl {
namespace {

using Kind = TorchValue::Kind;

constexpr absl::string_view kManifestName = "MANIFEST.json";
constexpr absl::string_view kCheckpoints = "checkpoints";
constexpr absl::string_view kDataParallelPrefix = "module.";
constexpr int kSearchDepth = 6;
constexpr size_t kMaxNamedKeys = 8;
// A safetensors file begins with 8 bytes of length and the '{' of its header.
constexpr size_t kSafetensorsBrace = 8;

bool IsDefault(const std::vector<std::string>& key) { return key.size() == 1 && key[0] == kClassyStateDictKey; }

// Collects tensors under dotted names; a name that occurs again replaces the first one, as in a dict.
class Flattener {
 public:
  explicit Flattener(std::shared_ptr<const void> owner) : owner_(std::move(owner)) {}

  void Add(const std::string& name, const TorchValue& value) {
    switch (value.kind) {
      case Kind::kTensor:
        return AddTensor(name, *value.tensor);
      case Kind::kList:
        for (size_t i = 0; i < value.items.size(); ++i) Add(Join(name, absl::StrCat(i)), *value.items[i]);
        return;
      case Kind::kDict:
        for (size_t i = 0; i < value.items.size(); i += 2) {
          const TorchValue& key = *value.items[i];
          const std::string part = key.kind == Kind::kString ? std::string(key.text) : absl::StrCat(key.integer);
          Add(Join(name, part), *value.items[i + 1]);
        }
        return;
      default:
        return;
    }
  }

  std::vector<NamedTensor> Take() { return std::move(tensors_); }

 private:
  static std::string Join(const std::string& name, const std::string& part) {
    return name.empty() ? part : absl::StrCat(name, ".", part);
  }

  void AddTensor(const std::string& name, const TorchTensor& tensor) {
    const auto [place, inserted] = places_.emplace(name, tensors_.size());
    if (inserted) tensors_.push_back({name, {}});
    tensors_[place->second].tensor = ViewTorchTensor(tensor, owner_);
  }

  const std::shared_ptr<const void> owner_;
  std::map<std::string, size_t> places_;
  std::vector<NamedTensor> tensors_;
};

int64_t CountTensors(const TorchValue& dict) {
  int64_t count = 0;
  for (size_t i = 1; i < dict.items.size(); i += 2) count += dict.items[i]->kind == Kind::kTensor ? 1 : 0;
  return count;
}

// Appends "path (n tensors)" for every dict at or below `dict` that holds tensors itself.
void FindStateDicts(const TorchValue& dict, const std::string& path, int depth, std::vector<std::string>* found) {
  if (dict.kind != Kind::kDict || depth == 0 || found->size() == kMaxNamedKeys) return;
  const int64_t count = CountTensors(dict);
  if (count > 0) found->push_back(absl::StrCat("'", path, "' (", count, " tensors)"));
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    if (dict.items[i]->kind != Kind::kString) continue;
    const std::string key(dict.items[i]->text);
    FindStateDicts(*dict.items[i + 1], path.empty() ? key : absl::StrCat(path, ".", key), depth - 1, found);
  }
}

std::string KeysWithTensors(const TorchValue& root) {
  std::vector<std::string> found;
  FindStateDicts(root, "", kSearchDepth, &found);
  if (found.empty()) return "the file has tensors under no key";
  return absl::StrCat("the file has tensors under ", absl::StrJoin(found, ", "),
                      "; STATE_DICT_KEY_NAME names such a key ('' for the whole file)");
}

// The remedy for a file that holds more, or its weights otherwise, than is read here.
absl::Status SaveAgain(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; in Python, torch.save(model.state_dict(), FILE) of the loaded ",
                                   "model writes a file of its weights alone"));
}

// The value at the end of `key`; null when there is none.
const TorchValue* Descend(const TorchValue& root, const std::vector<std::string>& key) {
  const TorchValue* value = &root;
  for (const std::string& part : key) {
    if (part.empty()) continue;
    const TorchValue* child = value->Find(part);
    if (child == nullptr && absl::StrContains(part, '.')) {
      child = Descend(*value, absl::StrSplit(part, '.'));
    }
    if (child == nullptr) return nullptr;
    value = child;
  }
  return value;
}

// A VISSL checkpoint: trunk and heads are dicts of their own, without those words in the names.
absl::Status AddClassyModel(const TorchValue& classy, const std::string& origin, Flattener* flattener) {
  const TorchValue* model = Descend(classy, {"base_model", "model"});
  const TorchValue* trunk = model == nullptr ? nullptr : model->Find("trunk");
  if (trunk == nullptr) {
    return absl::NotFoundError(absl::StrCat(origin, ": no base_model.model.trunk; ", KeysWithTensors(classy)));
  }
  flattener->Add("trunk", *trunk);
  if (const TorchValue* heads = model->Find("heads"); heads != nullptr) flattener->Add("heads", *heads);
  return absl::OkStatus();
}

absl::StatusOr<WeightsFile> ReadTorchWeights(FileSystem& file_system, const std::string& path,
                                             const std::vector<std::string>& key) {
  absl::StatusOr<TorchFile> read = ReadTorchFile(file_system, path);
  if (absl::IsUnimplemented(read.status())) return SaveAgain(read.status());
  SSL_RETURN_IF_ERROR(read.status());
  const TorchFile& file = *read;
  const std::string key_text = absl::StrJoin(key, ".");
  WeightsFile weights;
  weights.origin = key_text.empty() ? path : absl::StrCat(path, " at '", key_text, "'");
  Flattener flattener(file.owner);
  const TorchValue* value = Descend(*file.root, key);
  if (IsDefault(key) && value != nullptr) {
    SSL_RETURN_IF_ERROR(AddClassyModel(*value, weights.origin, &flattener));
  } else {
    if (IsDefault(key) && CountTensors(*file.root) > 0) {
      value = file.root;
      weights.origin = path;
    }
    if (value == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("file ", path, ": no key '", key_text, "'; ", KeysWithTensors(*file.root)));
    }
    flattener.Add("", *value);
  }
  weights.tensors = flattener.Take();
  weights.passed_over = file.unknown;
  if (!weights.tensors.empty()) return weights;
  const absl::Status empty =
      absl::InvalidArgumentError(absl::StrCat(weights.origin, ": no tensors; ", KeysWithTensors(*file.root)));
  return value->kind == Kind::kObject ? SaveAgain(Annotate(empty, absl::StrCat("an object of ", value->text))) : empty;
}

// A file of a checkpoint, named by its own path, is checked as it would be with the whole checkpoint: one changed byte
// of a tensor still gives a tensor.
absl::Status CheckAgainstManifest(FileSystem& file_system, const std::string& path) {
  const std::filesystem::path file(path);
  const std::string directory = file.has_parent_path() ? file.parent_path().string() : ".";
  const std::string manifest_path = absl::StrCat(directory, "/", kManifestName);
  const absl::StatusOr<std::string> json = file_system.Read(manifest_path);
  if (absl::IsNotFound(json.status())) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(json.status());
  if (!absl::StrContains(*json, "format_version")) return absl::OkStatus();  // another program's
  SSL_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(*json, manifest_path));
  // The others are not read, and need not be there.
  const auto is_other = [&](const ManifestEntry& entry) { return entry.file != file.filename(); };
  manifest.files.erase(std::remove_if(manifest.files.begin(), manifest.files.end(), is_other), manifest.files.end());
  return VerifyManifest(file_system, directory, manifest);
}

absl::StatusOr<WeightsFile> MapWeights(FileSystem& file_system, const std::string& path) {
  SSL_RETURN_IF_ERROR(CheckAgainstManifest(file_system, path));
  WeightsFile weights;
  weights.origin = path;
  SSL_ASSIGN_OR_RETURN(weights.tensors, MapSafetensors(file_system, path));
  if (weights.tensors.empty()) return absl::InvalidArgumentError(absl::StrCat("file ", path, ": no tensors"));
  return weights;
}

// Of a checkpoint, which the run that made it may remove: not mapped (CheckpointStore::Load).
absl::StatusOr<WeightsFile> ReadModel(FileSystem& file_system, const std::string& step_directory) {
  WeightsFile weights;
  weights.origin = absl::StrCat(step_directory, "/", kModelFile);
  SSL_ASSIGN_OR_RETURN(SafetensorsContent content, ReadSafetensors(file_system, weights.origin));
  weights.tensors = std::move(content.tensors);
  if (weights.tensors.empty()) return absl::InvalidArgumentError(absl::StrCat("file ", weights.origin, ": no tensors"));
  return weights;
}

// A checkpoint of ours: what its manifest lists is checked first.
absl::StatusOr<WeightsFile> ReadStep(FileSystem& file_system, const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kManifestName);
  const auto read = [&]() -> absl::StatusOr<Manifest> {
    SSL_ASSIGN_OR_RETURN(const std::string json, file_system.Read(path));
    return ParseManifest(json, path);
  };
  SSL_RETURN_IF_ERROR(VerifyDirectory(file_system, directory, read).status());
  return ReadModel(file_system, directory);
}

absl::StatusOr<WeightsFile> ReadDirectory(FileSystem& file_system, const std::string& directory) {
  if (file_system.Exists(absl::StrCat(directory, "/", kManifestName))) return ReadStep(file_system, directory);
  const std::string inner = absl::StrCat(directory, "/", kCheckpoints);
  const std::string& checkpoints = file_system.IsDirectory(inner) ? inner : directory;
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  CheckpointStore store({checkpoints, /*keep_last=*/0, /*config_hash=*/""}, file_system, *alone);
  WeightsFile weights;
  const auto read = [&](int64_t iteration) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(weights, ReadModel(file_system, store.StepDirectory(iteration)));
    return absl::OkStatus();
  };
  SSL_RETURN_IF_ERROR(store.ReadNewest(read).status());
  return weights;
}

absl::StatusOr<bool> IsSafetensors(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const MappedFile file, file_system.Map(path));
  return file.bytes().size() > kSafetensorsBrace && file.bytes()[kSafetensorsBrace] == '{';
}

void StripDataParallel(std::vector<NamedTensor>* tensors) {
  const bool all = std::all_of(tensors->begin(), tensors->end(), [](const NamedTensor& entry) {
    return absl::StartsWith(entry.name, kDataParallelPrefix);
  });
  if (!all) return;
  for (NamedTensor& entry : *tensors) entry.name.erase(0, kDataParallelPrefix.size());
}

absl::StatusOr<WeightsFile> ReadWeights(FileSystem& file_system, const std::string& path,
                                        const std::vector<std::string>& key) {
  const bool directory = file_system.IsDirectory(path);
  bool safetensors = false;
  if (!directory) {
    SSL_ASSIGN_OR_RETURN(safetensors, IsSafetensors(file_system, path));
  }
  if (!directory && !safetensors) return ReadTorchWeights(file_system, path, key);
  if (!IsDefault(key) && !absl::StrJoin(key, "").empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": STATE_DICT_KEY_NAME is '", absl::StrJoin(key, "."),
                     "', but a safetensors file or a checkpoint has no keys; expected ''"));
  }
  return directory ? ReadDirectory(file_system, path) : MapWeights(file_system, path);
}

}  // namespace

absl::StatusOr<WeightsFile> ReadWeightsFile(const std::string& path, const std::vector<std::string>& key) {
  return ReadWeightsFile(PosixFileSystem(), path, key);
}

absl::StatusOr<WeightsFile> ReadWeightsFile(FileSystem& file_system, const std::string& path,
                                            const std::vector<std::string>& key) {
  if (absl::StrContains(path, "://")) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a URL, expected a file: download it first"));
  }
  WeightsFile weights;
  SSL_RETURN_IF_ERROR(GuardTorch(path, [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(weights, ReadWeights(file_system, path, key));
    return absl::OkStatus();
  }));
  StripDataParallel(&weights.tensors);
  return weights;
}

}  // namespace ssl
