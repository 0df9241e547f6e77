// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/manifest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/file_system.h"
#include "ssl/io/json_tree.h"

namespace ssl {
namespace {

constexpr size_t kMaxManifestBytes = size_t{16} << 20;
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr char kChecksum[] = "manifest_crc32c";

// A JSON object that must have exactly the members that are asked for. Remembers the first
// problem, so that the reading code stays a list of fields.
class ObjectReader {
 public:
  using Kind = JsonTree::Kind;

  ObjectReader(const JsonTree& object, std::string where) : object_(object), where_(std::move(where)) {
    if (object.kind != Kind::kObject) Fail("is not an object");
  }

  std::string String(const char* key) {
    const JsonTree* member = Member(key, "a string", Kind::kString);
    return member == nullptr ? "" : member->text;
  }

  // In [0, most].
  int64_t Count(const char* key, int64_t most) {
    const JsonTree* member = Member(key, "a whole number from 0", Kind::kCount);
    if (member == nullptr) return 0;
    if (member->count <= static_cast<uint64_t>(most)) return static_cast<int64_t>(member->count);
    Fail(absl::StrCat(key, " is ", member->count, ", expected at most ", most));
    return 0;
  }

  const JsonTree* List(const char* key) { return Member(key, "a list", Kind::kList); }

  absl::Status Finish() {
    if (status_.ok() && object_.object.size() != members_) Fail("has keys that do not belong there");
    return status_;
  }

 private:
  const JsonTree* Member(const char* key, absl::string_view expected, Kind kind) {
    if (!status_.ok()) return nullptr;
    ++members_;
    const JsonTree* member = object_.Find(key);
    if (member != nullptr && member->kind == kind) return member;
    Fail(absl::StrCat(key, member == nullptr ? " is missing, expected " : " is not ", expected));
    return nullptr;
  }

  void Fail(absl::string_view problem) {
    if (status_.ok()) status_ = absl::DataLossError(absl::StrCat(where_, ": ", problem));
  }

  const JsonTree& object_;
  const std::string where_;
  size_t members_ = 0;
  absl::Status status_;
};

// A name that cannot lead out of the directory.
bool IsPlainName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == absl::string_view::npos &&
         name.find('\0') == absl::string_view::npos;
}

absl::StatusOr<ManifestEntry> ParseEntry(const JsonTree& object, const std::string& where) {
  ObjectReader reader(object, where);
  ManifestEntry entry;
  entry.file = reader.String("file");
  entry.size = reader.Count("size", std::numeric_limits<int64_t>::max());
  entry.crc32c = static_cast<uint32_t>(reader.Count("crc32c", std::numeric_limits<uint32_t>::max()));
  SSL_RETURN_IF_ERROR(reader.Finish());
  if (!IsPlainName(entry.file)) {
    return absl::DataLossError(absl::StrCat(where, ": file is '", entry.file, "', expected a plain file name"));
  }
  return entry;
}

absl::Status ParseFiles(const JsonTree::List& files, absl::string_view name, std::vector<ManifestEntry>* entries) {
  std::set<std::string> seen;
  for (const JsonTree& file : files) {
    const std::string where = absl::StrCat("manifest ", name, ": files[", entries->size(), "]");
    SSL_ASSIGN_OR_RETURN(ManifestEntry entry, ParseEntry(file, where));
    if (!seen.insert(entry.file).second) {
      return absl::DataLossError(absl::StrCat(where, ": file '", entry.file, "' occurs twice"));
    }
    entries->push_back(std::move(entry));
  }
  return absl::OkStatus();
}

// Before anything else, because another version may have other members.
absl::Status CheckVersion(const JsonTree& root, absl::string_view name) {
  const JsonTree* version = root.Find("format_version");
  if (version == nullptr) return absl::OkStatus();
  const bool is_count = version->kind == JsonTree::Kind::kCount;
  if (is_count && version->count == kManifestFormatVersion) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("manifest ", name, ": format_version is ",
                                               is_count ? absl::StrCat(version->count) : "no whole number",
                                               ", expected ", kManifestFormatVersion));
}

absl::StatusOr<uint32_t> FileCrc32c(const ReadableFile& file) {
  std::string piece(std::min(kPieceBytes, file.size()), '\0');
  uint32_t crc = 0;
  for (int64_t offset = 0; offset < file.size(); offset += kPieceBytes) {
    piece.resize(std::min(kPieceBytes, file.size() - offset));
    SSL_RETURN_IF_ERROR(file.ReadAt(offset, absl::MakeSpan(piece)));
    crc = ExtendCrc32c(crc, piece);
  }
  return crc;
}

absl::Status VerifyEntry(FileSystem& file_system, const std::string& path, const ManifestEntry& entry) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, file_system.OpenRead(path));
  if (file->size() != entry.size) {
    return absl::DataLossError(
        absl::StrCat("file ", path, ": size is ", file->size(), " bytes, expected ", entry.size));
  }
  SSL_ASSIGN_OR_RETURN(const uint32_t crc, FileCrc32c(*file));
  if (crc != entry.crc32c) {
    return absl::DataLossError(absl::StrFormat("file %s: CRC32C is %08x, expected %08x", path, crc, entry.crc32c));
  }
  return absl::OkStatus();
}

JsonTree Count(int64_t value) { return JsonTree(static_cast<uint64_t>(value)); }

JsonTree::Object Members(const ManifestEntry& entry) {
  JsonTree::Object members;
  members.emplace_back("file", JsonTree(entry.file));
  members.emplace_back("size", Count(entry.size));
  members.emplace_back("crc32c", Count(entry.crc32c));
  return members;
}

JsonTree::Object Members(const Manifest& manifest) {
  JsonTree::List files;
  for (const ManifestEntry& entry : manifest.files) files.emplace_back(Members(entry));
  JsonTree::Object members;
  members.emplace_back("format_version", Count(manifest.format_version));
  members.emplace_back("iteration", Count(manifest.iteration));
  members.emplace_back("world_size", Count(manifest.world_size));
  members.emplace_back("config_hash", JsonTree(manifest.config_hash));
  members.emplace_back("files", JsonTree(std::move(files)));
  return members;
}

}  // namespace

std::string ManifestToJson(const Manifest& manifest) {
  JsonTree::Object root = Members(manifest);
  const uint32_t checksum = Crc32c(WriteJson(JsonTree(root)));
  root.emplace_back(kChecksum, Count(checksum));
  return WriteJson(JsonTree(std::move(root)));
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view json, absl::string_view name) {
  const std::string where = absl::StrCat("manifest ", name);
  if (json.size() > kMaxManifestBytes) {
    return absl::DataLossError(
        absl::StrCat(where, ": has ", json.size(), " bytes, expected at most ", kMaxManifestBytes));
  }
  const absl::StatusOr<JsonTree> root = ParseJson(json);
  if (!root.ok()) return absl::DataLossError(absl::StrCat(where, ": ", root.status().message()));
  SSL_RETURN_IF_ERROR(CheckVersion(*root, name));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ObjectReader reader(*root, where);
  Manifest manifest;
  manifest.format_version = reader.Count("format_version", kMost);
  manifest.iteration = reader.Count("iteration", kMost);
  manifest.world_size = reader.Count("world_size", kMost);
  manifest.config_hash = reader.String("config_hash");
  const JsonTree* files = reader.List("files");
  const bool has_checksum = root->Find(kChecksum) != nullptr;
  if (has_checksum) reader.Count(kChecksum, std::numeric_limits<uint32_t>::max());
  SSL_RETURN_IF_ERROR(reader.Finish());
  SSL_RETURN_IF_ERROR(ParseFiles(files->list, name, &manifest.files));
  // Writing it again gives every byte: white space and the checksum itself count as well.
  if (has_checksum && json != ManifestToJson(manifest)) {
    return absl::DataLossError(absl::StrCat(where, ": its own checksum does not match: it was changed or damaged"));
  }
  return manifest;
}

absl::Status VerifyManifest(FileSystem& file_system, const std::string& directory, const Manifest& manifest) {
  for (const ManifestEntry& entry : manifest.files) {
    if (!IsPlainName(entry.file)) {
      return absl::InvalidArgumentError(
          absl::StrCat("manifest of ", directory, ": file is '", entry.file, "', expected a plain file name"));
    }
    SSL_RETURN_IF_ERROR(VerifyEntry(file_system, absl::StrCat(directory, "/", entry.file), entry));
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> VerifyDirectory(FileSystem& file_system, const std::string& directory,
                                         absl::FunctionRef<absl::StatusOr<Manifest>()> read) {
  SSL_ASSIGN_OR_RETURN(Manifest manifest, read());
  while (true) {
    const absl::Status status = VerifyManifest(file_system, directory, manifest);
    if (status.ok()) return manifest;
    absl::StatusOr<Manifest> now = read();
    if (!now.ok() || ManifestToJson(*now) == ManifestToJson(manifest)) return status;
    manifest = *std::move(now);
  }
}

}  // namespace ssl
