// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/tar_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr int64_t kBlock = 512;
// Of a long name or an extended header: paths have 4096 bytes at most.
constexpr int64_t kMaxExtension = 1 << 16;

// Where the fields of a header stand: POSIX.1-1988, "ustar".
constexpr size_t kName = 0, kNameBytes = 100;
constexpr size_t kSize = 124, kSizeBytes = 12;
constexpr size_t kChecksum = 148, kChecksumBytes = 8;
constexpr size_t kType = 156;
constexpr size_t kMagic = 257;
// A link, a symbolic link, devices, a folder, a pipe.
constexpr char kFirstWithoutContent = '1', kLastWithoutContent = '6';
constexpr size_t kPrefix = 345, kPrefixBytes = 155;
constexpr absl::string_view kGzipMagic = "\x1F\x8B";

// Up to the first NUL.
absl::string_view Text(absl::string_view block, size_t at, size_t size) {
  const absl::string_view field = block.substr(at, size);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// Octal digits; GNU's binary form, for sizes of 8 GB and more, begins with 0x80. -1: neither.
int64_t Number(absl::string_view block, size_t at, size_t size) {
  const absl::string_view field = block.substr(at, size);
  int64_t number = 0;
  if (static_cast<uint8_t>(field[0]) == 0x80) {
    for (const char byte : field.substr(1)) {
      if (number >= int64_t{1} << 54) return -1;
      number = number << 8 | static_cast<uint8_t>(byte);
    }
    return number;
  }
  for (const char c : field) {
    if (c == '\0' || c == ' ') continue;
    if (c < '0' || c > '7') return -1;
    number = number << 3 | (c - '0');
  }
  return number;
}

// Of all bytes, those of the checksum itself taken as spaces.
int64_t Sum(absl::string_view block) {
  int64_t sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool is_sum = i >= kChecksum && i < kChecksum + kChecksumBytes;
    sum += is_sum ? ' ' : static_cast<uint8_t>(block[i]);
  }
  return sum;
}

bool IsZero(absl::string_view block) {
  return std::all_of(block.begin(), block.end(), [](char byte) { return byte == '\0'; });
}

int64_t Padded(int64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

}  // namespace

struct TarReader::Header {
  std::string name;
  int64_t size = 0;
  char type = '0';
  int64_t at = 0;      // of the header
  int64_t offset = 0;  // of what follows it
};

absl::Status TarReader::Error(int64_t at, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path_, ": byte ", at, ": ", what));
}

absl::StatusOr<bool> TarReader::ReadHeader(Header* header) {
  if (at_ > file_.size() - kBlock) {
    return Error(at_, "the tar file ends without its end mark; it is cut off, write it anew");
  }
  std::array<char, kBlock> memory;
  SSL_RETURN_IF_ERROR(file_.ReadAt(at_, absl::MakeSpan(memory)));
  const absl::string_view block(memory.data(), memory.size());
  if (IsZero(block)) return false;
  header->at = at_;
  header->size = Number(block, kSize, kSizeBytes);
  header->type = block[kType];
  header->offset = at_ + kBlock;
  if (Number(block, kChecksum, kChecksumBytes) != Sum(block) || header->size < 0) {
    if (at_ == 0 && absl::StartsWith(block, kGzipMagic))
      return Error(at_, "a gzip file, expected a tar file: gunzip it");
    return Error(at_, at_ == 0 ? "not a tar file: its first header has a wrong checksum"
                               : "a header has a wrong checksum; the tar file is damaged");
  }
  const absl::string_view prefix =
      block.substr(kMagic, 6) == absl::string_view("ustar\0", 6) ? Text(block, kPrefix, kPrefixBytes) : "";
  const absl::string_view name = Text(block, kName, kNameBytes);
  header->name = prefix.empty() ? std::string(name) : absl::StrCat(prefix, "/", name);
  return true;
}

absl::StatusOr<bool> TarReader::Next(TarMember* member) {
  while (true) {
    Header header;
    SSL_ASSIGN_OR_RETURN(const bool found, ReadHeader(&header));
    if (!found) return false;
    const bool is_extension = header.type == 'x' || header.type == 'g' || header.type == 'L' || header.type == 'K';
    if (!is_extension && long_size_ >= 0) header.size = long_size_;
    // Some writers give a link the size of what it leads to; nothing follows it.
    if (header.type >= kFirstWithoutContent && header.type <= kLastWithoutContent) header.size = 0;
    if (!is_extension && !long_name_.empty()) header.name = long_name_;
    if (header.size > file_.size() - header.offset) {
      return Error(header.at, absl::StrCat("member '", absl::CHexEscape(header.name), "' has ", header.size,
                                           " bytes, but the file ends ", file_.size() - header.offset,
                                           " bytes after its header; it is cut off, write it anew"));
    }
    at_ = header.offset + Padded(header.size);
    if (is_extension) {
      SSL_RETURN_IF_ERROR(TakePax(header));
      continue;
    }
    long_name_.clear();
    long_size_ = -1;
    if (header.type == '5') continue;
    member->name = std::move(header.name);
    member->is_file = header.type == '0' || header.type == '\0' || header.type == '7';
    member->offset = header.offset;
    member->size = header.size;
    return true;
  }
}

bool TarReader::IsFollowed() {
  constexpr int64_t kMostPadding = int64_t{1} << 20;  // tar fills its last record up
  const int64_t end = std::min(file_.size(), at_ + kMostPadding);
  for (; at_ <= end - kBlock; at_ += kBlock) {
    Header header;
    const absl::StatusOr<bool> found = ReadHeader(&header);
    if (!found.ok() || *found) return found.ok();
  }
  return false;
}

// Records are "<length> <key>=<value>\n"; the length counts the whole record.
absl::Status TarReader::TakePax(const Header& header) {
  if (header.type == 'g' || header.type == 'K') return absl::OkStatus();  // times and the like; a link's target
  if (header.size > kMaxExtension) {
    return Error(header.at,
                 absl::StrCat("an extended header has ", header.size, " bytes, expected at most ", kMaxExtension));
  }
  SSL_ASSIGN_OR_RETURN(const std::string text, Read({"", true, header.offset, header.size}));
  if (header.type == 'L') {
    long_name_ = std::string(Text(text, 0, text.size()));
    return absl::OkStatus();
  }
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t space = rest.find(' ');
    size_t length = 0;
    const bool has_length = space != absl::string_view::npos && absl::SimpleAtoi(rest.substr(0, space), &length);
    if (!has_length || length <= space + 1 || length > rest.size() || rest[length - 1] != '\n') {
      return Error(header.at, "an extended header is damaged");
    }
    const absl::string_view record = rest.substr(space + 1, length - space - 2);
    const size_t equals = std::min(record.find('='), record.size());
    const absl::string_view key = record.substr(0, equals);
    const absl::string_view value = record.substr(std::min(equals + 1, record.size()));
    if (key == "path") long_name_ = std::string(value);
    if (key == "size" && (!absl::SimpleAtoi(value, &long_size_) || long_size_ < 0)) {
      return Error(header.at, "an extended header has a size that is no number");
    }
    rest.remove_prefix(length);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TarReader::Read(const TarMember& member) const {
  std::string bytes(static_cast<size_t>(member.size), '\0');
  SSL_RETURN_IF_ERROR(file_.ReadAt(member.offset, absl::MakeSpan(bytes)));
  return bytes;
}

}  // namespace ssl
