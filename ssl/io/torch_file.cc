// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/torch_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/io/mapped_file.h"
#include "ssl/io/torch_objects.h"
#include "ssl/io/torch_pickle.h"
#include "ssl/io/zip_reader.h"

namespace ssl {
namespace {

constexpr absl::string_view kPickleName = "data.pkl";
// torch.save never compresses; what somebody packed again is read while it is small.
constexpr int64_t kMaxInflatedBytes = int64_t{32} << 20;
// The legacy format begins with a pickled integer of 80 bits, behind the few bytes with which any pickle begins.
constexpr absl::string_view kLegacyMagic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);
constexpr size_t kMaxPickleStart = 11;  // of protocol 4: its number, and a frame
constexpr int64_t kLegacyProtocol = 1001;

// Everything that a TorchFile refers to.
struct Contents {
  explicit Contents(MappedFile mapped) : file(std::move(mapped)) {}

  const MappedFile file;
  std::deque<std::string> inflated;
  TorchObjects objects;
};

// Bytes of a storage; -1 on overflow, which equals no size.
int64_t StorageBytes(const TorchStorage& storage) {
  int64_t bytes = 0;
  return __builtin_mul_overflow(storage.size, TorchDtypeBytes(storage.dtype), &bytes) ? -1 : bytes;
}

absl::Status WrongStorageSize(const TorchStorage& storage, int64_t found) {
  return absl::DataLossError(absl::StrCat("storage '", PrintableTorchText(storage.key), "' has ", found,
                                          " bytes, expected ", storage.size, " values of ",
                                          TorchDtypeBytes(storage.dtype), " bytes"));
}

// An archive: ROOT/data.pkl, ROOT/data/KEY for each storage, ROOT/byteorder, and entries without a meaning here.
class ZipLoader {
 public:
  explicit ZipLoader(Contents* contents) : contents_(*contents) {}

  absl::StatusOr<const TorchValue*> Load() {
    SSL_ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, ReadZipDirectory(contents_.file.bytes()));
    for (const ZipEntry& entry : entries) entries_.emplace(entry.name, entry);
    SSL_RETURN_IF_ERROR(FindRoot(entries));
    SSL_RETURN_IF_ERROR(CheckByteOrder());
    SSL_ASSIGN_OR_RETURN(absl::string_view pickle, Read(absl::StrCat(root_, kPickleName)));
    absl::StatusOr<const TorchValue*> tree = TakePickle(&pickle, &contents_.objects);
    if (!tree.ok()) return Annotate(tree.status(), kPickleName);
    for (TorchStorage& storage : contents_.objects.storages) {
      SSL_ASSIGN_OR_RETURN(storage.bytes, Read(absl::StrCat(root_, "data/", storage.key)));
      const auto found = static_cast<int64_t>(storage.bytes.size());
      if (found != StorageBytes(storage)) return WrongStorageSize(storage, found);
    }
    return tree;
  }

 private:
  // Sets root_ to "archive/" of the one entry "archive/data.pkl".
  absl::Status FindRoot(const std::vector<ZipEntry>& entries) {
    const auto is_pickle = [](const ZipEntry& entry) {
      const size_t slash = entry.name.find('/');
      return slash != absl::string_view::npos && entry.name.substr(slash + 1) == kPickleName;
    };
    const auto found = std::find_if(entries.begin(), entries.end(), is_pickle);
    if (found == entries.end() || std::find_if(found + 1, entries.end(), is_pickle) != entries.end()) {
      return absl::DataLossError("the archive has no entry NAME/data.pkl, or several: it is no file of torch.save");
    }
    root_ = std::string(absl::StripSuffix(found->name, kPickleName));
    if (entries_.count(absl::StrCat(root_, "constants.pkl")) == 0) return absl::OkStatus();
    return absl::UnimplementedError("the archive is a TorchScript program, expected a file of torch.save");
  }

  absl::Status CheckByteOrder() {
    const std::string name = absl::StrCat(root_, "byteorder");
    if (entries_.count(name) == 0) return absl::OkStatus();
    SSL_ASSIGN_OR_RETURN(const absl::string_view order, Read(name));
    if (order == "little") return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat("byte order is '", PrintableTorchText(order), "', expected 'little'"));
  }

  // The checked content of an entry.
  absl::StatusOr<absl::string_view> Read(const std::string& name) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      return absl::DataLossError(absl::StrCat("entry '", PrintableTorchText(name), "' is missing"));
    }
    const ZipEntry& entry = found->second;
    absl::string_view content = entry.stored;
    if (entry.deflated) {
      if (entry.size > kMaxInflatedBytes - inflated_bytes_) {
        return absl::UnimplementedError(absl::StrCat("entry '", PrintableTorchText(name), "' is compressed and claims ",
                                                     entry.size, " bytes, expected at most ", kMaxInflatedBytes,
                                                     " in all; torch.save writes uncompressed files of any size"));
      }
      inflated_bytes_ += entry.size;
      SSL_ASSIGN_OR_RETURN(std::string inflated, InflateZipEntry(entry));
      contents_.inflated.push_back(std::move(inflated));
      content = contents_.inflated.back();
    }
    SSL_RETURN_IF_ERROR(CheckZipContent(entry, content));
    return content;
  }

  Contents& contents_;
  std::string root_;
  int64_t inflated_bytes_ = 0;
  std::map<absl::string_view, ZipEntry> entries_;
};

// Five pickles (magic, protocol, system, tree, list of keys), then each key's storage: an int64 count and the values.
class LegacyLoader {
 public:
  // rest: the file behind its magic number.
  LegacyLoader(absl::string_view rest, TorchObjects* objects) : rest_(rest), objects_(*objects) {}

  absl::StatusOr<const TorchValue*> Load() {
    SSL_ASSIGN_OR_RETURN(const TorchValue* protocol, Take("protocol"));
    if (protocol->kind != TorchValue::Kind::kInt || protocol->integer != kLegacyProtocol) {
      return absl::UnimplementedError("the legacy protocol is not 1001");
    }
    SSL_ASSIGN_OR_RETURN(const TorchValue* system, Take("system"));
    const TorchValue* little = system->Find("little_endian");
    if (little == nullptr || little->integer != 1) {
      return absl::UnimplementedError("the values are not marked as little endian");
    }
    SSL_ASSIGN_OR_RETURN(const TorchValue* tree, Take("tree"));
    SSL_ASSIGN_OR_RETURN(const TorchValue* keys, Take("keys"));
    SSL_RETURN_IF_ERROR(ReadStorages(*keys));
    return tree;
  }

 private:
  absl::StatusOr<const TorchValue*> Take(absl::string_view name) {
    absl::StatusOr<const TorchValue*> value = TakePickle(&rest_, &objects_);
    if (!value.ok()) return Annotate(value.status(), absl::StrCat("pickle '", name, "'"));
    return value;
  }

  absl::Status ReadStorages(const TorchValue& keys) {
    std::set<int64_t> seen;
    for (const TorchValue* key : keys.items) {
      const auto found = objects_.storage_of_key.find(key->text);
      if (found == objects_.storage_of_key.end() || !seen.insert(found->second).second) {
        return absl::DataLossError(
            absl::StrCat("storage '", PrintableTorchText(key->text), "' is listed and not used, or listed twice"));
      }
      SSL_RETURN_IF_ERROR(ReadStorage(&objects_.storages[found->second]));
    }
    if (seen.size() == objects_.storages.size()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("the file lists ", seen.size(), " storages, expected ", objects_.storages.size()));
  }

  absl::Status ReadStorage(TorchStorage* storage) {
    int64_t count = 0;
    const int64_t bytes = StorageBytes(*storage);
    const int64_t left = static_cast<int64_t>(rest_.size()) - static_cast<int64_t>(sizeof(count));
    if (left < 0 || bytes < 0 || bytes > left) return WrongStorageSize(*storage, std::max<int64_t>(left, 0));
    std::memcpy(&count, rest_.data(), sizeof(count));
    if (count != storage->size) {
      return absl::DataLossError(absl::StrCat("storage '", PrintableTorchText(storage->key), "' has ", count,
                                              " values, expected ", storage->size));
    }
    storage->bytes = rest_.substr(sizeof(count), bytes);
    rest_.remove_prefix(sizeof(count) + bytes);
    return absl::OkStatus();
  }

  absl::string_view rest_;
  TorchObjects& objects_;
};

absl::StatusOr<const TorchValue*> LoadContents(Contents* contents) {
  const absl::string_view bytes = contents->file.bytes();
  absl::StatusOr<const TorchValue*> tree =
      absl::DataLossError("is no file of torch.save: it begins neither as a zip archive nor as the legacy format");
  const size_t magic = bytes.substr(0, kMaxPickleStart + kLegacyMagic.size()).find(kLegacyMagic);
  if (IsZip(bytes)) {
    tree = ZipLoader(contents).Load();
  } else if (magic != absl::string_view::npos) {
    tree = LegacyLoader(bytes.substr(magic + kLegacyMagic.size()), &contents->objects).Load();
  }
  if (tree.ok()) SSL_RETURN_IF_ERROR(BindTorchTensors(&contents->objects));
  return tree;
}

}  // namespace

absl::StatusOr<TorchFile> ReadTorchFile(const std::string& path) { return ReadTorchFile(PosixFileSystem(), path); }

absl::StatusOr<TorchFile> ReadTorchFile(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(MappedFile mapped, file_system.Map(path));
  const auto contents = std::make_shared<Contents>(std::move(mapped));
  const absl::StatusOr<const TorchValue*> root = LoadContents(contents.get());
  if (!root.ok()) return Annotate(root.status(), absl::StrCat("file ", path));
  const std::set<std::string, std::less<>>& unknown = contents->objects.unknown;
  return TorchFile{*root, contents, {unknown.begin(), unknown.end()}};
}

}  // namespace ssl
