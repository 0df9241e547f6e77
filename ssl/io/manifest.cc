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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxManifestBytes = size_t{16} << 20;
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr int kIndent = 1;
constexpr char kChecksum[] = "manifest_crc32c";

// A JSON object that must have exactly the members that are asked for. Remembers the first
// problem, so that the reading code stays a list of fields.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) Fail("is not an object");
  }

  std::string String(const char* key) {
    const Json* member = Member(key, "a string", &Json::is_string);
    return member == nullptr ? "" : member->get<std::string>();
  }

  // In [0, most].
  int64_t Count(const char* key, int64_t most) {
    const Json* member = Member(key, "a whole number from 0", &Json::is_number_unsigned);
    if (member == nullptr) return 0;
    const uint64_t value = member->get<uint64_t>();
    if (value <= static_cast<uint64_t>(most)) return static_cast<int64_t>(value);
    Fail(absl::StrCat(key, " is ", value, ", expected at most ", most));
    return 0;
  }

  // Not a copy: copying what a hostile file nests deeply would use up the stack.
  const Json* List(const char* key) { return Member(key, "a list", &Json::is_array); }

  bool Has(const char* key) const { return object_.is_object() && object_.contains(key); }

  absl::Status Finish() {
    if (status_.ok() && object_.size() != members_) Fail("has keys that do not belong there");
    return status_;
  }

 private:
  const Json* Member(const char* key, absl::string_view kind, bool (Json::*is_kind)() const noexcept) {
    if (!status_.ok()) return nullptr;
    ++members_;
    const auto member = object_.find(key);
    if (member != object_.end() && ((*member).*is_kind)()) return &*member;
    Fail(absl::StrCat(key, member == object_.end() ? " is missing, expected " : " is not ", kind));
    return nullptr;
  }

  void Fail(absl::string_view problem) {
    if (status_.ok()) status_ = absl::DataLossError(absl::StrCat(where_, ": ", problem));
  }

  const Json& object_;
  const std::string where_;
  size_t members_ = 0;
  absl::Status status_;
};

// A name that cannot lead out of the directory.
bool IsPlainName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == absl::string_view::npos &&
         name.find('\0') == absl::string_view::npos;
}

absl::StatusOr<ManifestEntry> ParseEntry(const Json& object, const std::string& where) {
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

absl::Status ParseFiles(const Json& files, absl::string_view name, std::vector<ManifestEntry>* entries) {
  std::set<std::string> seen;
  for (const Json& file : files) {
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
absl::Status CheckVersion(const Json& root, absl::string_view name) {
  if (!root.is_object() || !root.contains("format_version")) return absl::OkStatus();
  const Json& version = root["format_version"];
  if (version == kManifestFormatVersion) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("manifest ", name, ": format_version is ",
                                               version.is_number() ? version.dump() : "not a number", ", expected ",
                                               kManifestFormatVersion));
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

std::string Dump(const nlohmann::ordered_json& root) {
  return root.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json Members(const Manifest& manifest) {
  // Made as objects: a null that becomes one by operator[] is left half-made when memory runs out in it.
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  root["format_version"] = manifest.format_version;
  root["iteration"] = manifest.iteration;
  root["world_size"] = manifest.world_size;
  root["config_hash"] = manifest.config_hash;
  root["files"] = nlohmann::ordered_json::array();
  for (const ManifestEntry& entry : manifest.files) {
    nlohmann::ordered_json file = nlohmann::ordered_json::object();
    file["file"] = entry.file;
    file["size"] = entry.size;
    file["crc32c"] = entry.crc32c;
    root["files"].push_back(std::move(file));
  }
  return root;
}

}  // namespace

std::string ManifestToJson(const Manifest& manifest) {
  nlohmann::ordered_json root = Members(manifest);
  root[kChecksum] = Crc32c(Dump(root));
  return Dump(root);
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view json, absl::string_view name) {
  const std::string where = absl::StrCat("manifest ", name);
  if (json.size() > kMaxManifestBytes) {
    return absl::DataLossError(
        absl::StrCat(where, ": has ", json.size(), " bytes, expected at most ", kMaxManifestBytes));
  }
  const Json root = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return absl::DataLossError(where + ": is not valid JSON");
  SSL_RETURN_IF_ERROR(CheckVersion(root, name));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ObjectReader reader(root, where);
  Manifest manifest;
  manifest.format_version = reader.Count("format_version", kMost);
  manifest.iteration = reader.Count("iteration", kMost);
  manifest.world_size = reader.Count("world_size", kMost);
  manifest.config_hash = reader.String("config_hash");
  const Json* files = reader.List("files");
  const bool has_checksum = reader.Has(kChecksum);
  if (has_checksum) reader.Count(kChecksum, std::numeric_limits<uint32_t>::max());
  SSL_RETURN_IF_ERROR(reader.Finish());
  SSL_RETURN_IF_ERROR(ParseFiles(*files, name, &manifest.files));
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

}  // namespace ssl
