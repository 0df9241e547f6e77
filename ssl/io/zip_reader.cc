// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr absl::string_view kLocalSignature("PK\x03\x04", 4);
constexpr absl::string_view kDirectorySignature("PK\x01\x02", 4);
constexpr absl::string_view kEndSignature("PK\x05\x06", 4);
constexpr absl::string_view kEnd64Signature("PK\x06\x06", 4);
constexpr absl::string_view kLocatorSignature("PK\x06\x07", 4);
constexpr size_t kLocalBytes = 30;
constexpr size_t kDirectoryBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kMaxCommentBytes = 65535;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kStoredMethod = 0;
constexpr uint16_t kDeflatedMethod = 8;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the value stands in the zip64 record
constexpr uint64_t kMaxDeflateRatio = 1032;
constexpr size_t kMaxQuotedBytes = 80;
constexpr size_t kInflatePiece = size_t{1} << 20;

std::string Quote(absl::string_view name) {
  return absl::StrCat("entry '", absl::CHexEscape(name.substr(0, kMaxQuotedBytes)), "'");
}

// Little-endian number at `offset`, which the caller has checked.
template <class T>
T Get(absl::string_view bytes, size_t offset) {
  T value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// `size` bytes at `offset` of the file; false when they do not lie inside.
bool Slice(absl::string_view file, uint64_t offset, uint64_t size, absl::string_view* slice) {
  if (offset > file.size() || size > file.size() - offset) return false;
  *slice = file.substr(offset, size);
  return true;
}

struct Directory {
  uint64_t entries = 0;
  uint64_t offset = 0;
  absl::string_view bytes;
};

// Position of the end record: the last one whose comment ends with the file.
absl::StatusOr<size_t> FindEnd(absl::string_view file) {
  const size_t first = file.size() - std::min(file.size(), kEndBytes + kMaxCommentBytes);
  const absl::string_view tail = file.substr(first);
  for (size_t rest = kEndBytes; rest <= tail.size(); ++rest) {
    const absl::string_view record = tail.substr(tail.size() - rest);
    if (absl::StartsWith(record, kEndSignature) && Get<uint16_t>(record, 20) == rest - kEndBytes) {
      return file.size() - rest;
    }
  }
  return absl::DataLossError("ends without the record that closes a zip archive: it is incomplete");
}

absl::StatusOr<Directory> FindDirectory(absl::string_view file) {
  SSL_ASSIGN_OR_RETURN(const size_t end, FindEnd(file));
  Directory directory;
  directory.entries = Get<uint16_t>(file, end + 10);
  uint64_t size = Get<uint32_t>(file, end + 12);
  directory.offset = Get<uint32_t>(file, end + 16);
  uint64_t limit = end;
  absl::string_view locator;
  if (end >= kLocatorBytes && Slice(file, end - kLocatorBytes, kLocatorBytes, &locator) &&
      absl::StartsWith(locator, kLocatorSignature)) {
    limit = Get<uint64_t>(locator, 8);
    absl::string_view record;
    if (!Slice(file.substr(0, end), limit, kEnd64Bytes, &record) || !absl::StartsWith(record, kEnd64Signature)) {
      return absl::DataLossError("its zip64 record is missing");
    }
    directory.entries = Get<uint64_t>(record, 32);
    size = Get<uint64_t>(record, 40);
    directory.offset = Get<uint64_t>(record, 48);
  }
  if (!Slice(file.substr(0, limit), directory.offset, size, &directory.bytes)) {
    return absl::DataLossError(
        absl::StrCat("its directory claims ", size, " bytes at ", directory.offset, " of ", file.size()));
  }
  if (directory.entries > static_cast<uint64_t>(kMaxZipEntries) || directory.entries > size / kDirectoryBytes) {
    return absl::DataLossError(
        absl::StrCat("its directory claims ", directory.entries, " entries in ", size, " bytes"));
  }
  return directory;
}

// What one record of the directory says.
struct Record {
  ZipEntry entry;
  uint16_t method = 0;
  uint64_t size = 0;
  uint64_t stored_size = 0;
  uint64_t offset = 0;
};

absl::Status MissingZip64(const Record& record) {
  return absl::DataLossError(absl::StrCat(Quote(record.entry.name), ": its zip64 sizes are missing"));
}

// The fields that do not fit into 32 bits follow each other in the extra field of type 1.
absl::Status ReadZip64(absl::string_view extra, Record* record) {
  while (extra.size() >= 4) {
    const uint16_t type = Get<uint16_t>(extra, 0);
    const size_t size = Get<uint16_t>(extra, 2);
    extra.remove_prefix(4);
    if (size > extra.size()) break;
    absl::string_view field = extra.substr(0, size);
    extra.remove_prefix(size);
    if (type != kZip64Extra) continue;
    for (uint64_t* value : {&record->size, &record->stored_size, &record->offset}) {
      if (*value != kIn64) continue;
      if (field.size() < sizeof(uint64_t)) return MissingZip64(*record);
      *value = Get<uint64_t>(field, 0);
      field.remove_prefix(sizeof(uint64_t));
    }
    return absl::OkStatus();
  }
  const bool needed = record->size == kIn64 || record->stored_size == kIn64 || record->offset == kIn64;
  return needed ? MissingZip64(*record) : absl::OkStatus();
}

// Takes one record off the front of the directory.
absl::StatusOr<Record> TakeRecord(absl::string_view* rest) {
  if (rest->size() < kDirectoryBytes || !absl::StartsWith(*rest, kDirectorySignature)) {
    return absl::DataLossError("its directory is damaged");
  }
  const size_t name_bytes = Get<uint16_t>(*rest, 28);
  const size_t extra_bytes = Get<uint16_t>(*rest, 30);
  const size_t total = kDirectoryBytes + name_bytes + extra_bytes + Get<uint16_t>(*rest, 32);
  if (total > rest->size()) return absl::DataLossError("its directory is damaged");
  Record record;
  record.entry.name = rest->substr(kDirectoryBytes, name_bytes);
  record.entry.crc32 = Get<uint32_t>(*rest, 16);
  record.method = Get<uint16_t>(*rest, 10);
  record.stored_size = Get<uint32_t>(*rest, 20);
  record.size = Get<uint32_t>(*rest, 24);
  record.offset = Get<uint32_t>(*rest, 42);
  const std::string name = Quote(record.entry.name);
  if ((Get<uint16_t>(*rest, 8) & kEncrypted) != 0) return absl::UnimplementedError(absl::StrCat(name, " is encrypted"));
  if (record.method != kStoredMethod && record.method != kDeflatedMethod) {
    return absl::UnimplementedError(
        absl::StrCat(name, ": compression method is ", record.method, ", expected stored (0) or deflated (8)"));
  }
  SSL_RETURN_IF_ERROR(ReadZip64(rest->substr(kDirectoryBytes + name_bytes, extra_bytes), &record));
  rest->remove_prefix(total);
  return record;
}

// An entry with the bytes of the file that belong to it, its header included.
struct LocatedEntry {
  ZipEntry entry;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Finds an entry in `file`, which ends where the directory starts.
absl::StatusOr<LocatedEntry> LocateEntry(absl::string_view file, const Record& record) {
  LocatedEntry located;
  located.entry = record.entry;
  ZipEntry& entry = located.entry;
  const std::string name = Quote(entry.name);
  absl::string_view local;
  if (!Slice(file, record.offset, kLocalBytes, &local) || !absl::StartsWith(local, kLocalSignature)) {
    return absl::DataLossError(absl::StrCat(name, ": no header at ", record.offset));
  }
  const uint64_t name_bytes = Get<uint16_t>(local, 26);
  const uint64_t start = record.offset + kLocalBytes + name_bytes + Get<uint16_t>(local, 28);
  absl::string_view local_name;
  if (!Slice(file, record.offset + kLocalBytes, name_bytes, &local_name) || local_name != entry.name ||
      Get<uint16_t>(local, 8) != record.method) {
    return absl::DataLossError(absl::StrCat(name, ": its header disagrees with the directory"));
  }
  if (!Slice(file, start, record.stored_size, &entry.stored)) {
    return absl::DataLossError(
        absl::StrCat(name, " claims ", record.stored_size, " bytes at ", start, " of ", file.size()));
  }
  entry.deflated = record.method == kDeflatedMethod;
  const bool possible =
      entry.deflated ? record.size / kMaxDeflateRatio <= record.stored_size : record.size == record.stored_size;
  if (!possible) {
    return absl::DataLossError(
        absl::StrCat(name, " claims ", record.size, " bytes in ", record.stored_size, " bytes of the file"));
  }
  entry.size = static_cast<int64_t>(record.size);
  located.begin = record.offset;
  located.end = start + record.stored_size;
  return located;
}

// Entries that share bytes are the trick of the denser zip bombs.
absl::Status CheckDisjoint(std::vector<LocatedEntry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const LocatedEntry& a, const LocatedEntry& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i - 1].end <= entries[i].begin) continue;
    return absl::DataLossError(
        absl::StrCat(Quote(entries[i].entry.name), " overlaps ", Quote(entries[i - 1].entry.name)));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsZip(absl::string_view file) { return absl::StartsWith(file, kLocalSignature); }

absl::StatusOr<std::vector<ZipEntry>> ReadZipDirectory(absl::string_view file) {
  SSL_ASSIGN_OR_RETURN(Directory directory, FindDirectory(file));
  std::vector<LocatedEntry> located;
  std::vector<ZipEntry> entries;
  std::set<absl::string_view> names;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    SSL_ASSIGN_OR_RETURN(const Record record, TakeRecord(&directory.bytes));
    SSL_ASSIGN_OR_RETURN(LocatedEntry entry, LocateEntry(file.substr(0, directory.offset), record));
    if (!names.insert(entry.entry.name).second) {
      return absl::DataLossError(absl::StrCat(Quote(entry.entry.name), " occurs twice"));
    }
    entries.push_back(entry.entry);
    located.push_back(std::move(entry));
  }
  SSL_RETURN_IF_ERROR(CheckDisjoint(std::move(located)));
  return entries;
}

absl::StatusOr<std::string> InflateZipEntry(const ZipEntry& entry) {
  std::string content(entry.size, '\0');
  z_stream stream = {};
  // Negative: raw deflate data, without a header of zlib's own.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return absl::InternalError("zlib cannot start");
  absl::string_view in = entry.stored;
  absl::Span<char> out = absl::MakeSpan(content);
  int result = Z_OK;
  // In pieces, because zlib counts the bytes of a call in 32 bits.
  while (result == Z_OK) {
    const size_t in_piece = std::min(in.size(), kInflatePiece);
    const size_t out_piece = std::min(out.size(), kInflatePiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream.avail_in = static_cast<uInt>(in_piece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out_piece);
    result = inflate(&stream, Z_NO_FLUSH);
    in.remove_prefix(in_piece - stream.avail_in);
    out.remove_prefix(out_piece - stream.avail_out);
  }
  const bool complete = result == Z_STREAM_END && in.empty() && out.empty();
  inflateEnd(&stream);
  if (!complete) return absl::DataLossError(absl::StrCat(Quote(entry.name), ": its compressed data is damaged"));
  return content;
}

absl::Status CheckZipContent(const ZipEntry& entry, absl::string_view content) {
  if (entry.crc32 == 0) return absl::OkStatus();
  const auto* bytes = reinterpret_cast<const Bytef*>(content.data());
  const auto found = static_cast<uint32_t>(crc32_z(0, bytes, content.size()));
  if (found == entry.crc32) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(Quote(entry.name), ": CRC-32 is ", absl::Hex(found, absl::kZeroPad8),
                                          ", expected ", absl::Hex(entry.crc32, absl::kZeroPad8)));
}

}  // namespace ssl
