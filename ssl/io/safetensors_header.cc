// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kMetadataKey = "__metadata__";
constexpr absl::string_view kDtypes = "F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL";
constexpr size_t kMaxQuotedBytes = 100;

// Names come from the file: messages show them short and printable.
std::string Quote(absl::string_view text) {
  const absl::string_view dots = text.size() > kMaxQuotedBytes ? "..." : "";
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMaxQuotedBytes)), dots, "'");
}

// dtype bytes x shape, or false on overflow. A zero size hides no overflow of the others:
// strides are products too.
bool ExtentBytes(const SafetensorsEntry& entry, int64_t* bytes) {
  int64_t largest = SafetensorsDtypeBytes(entry.dtype);
  bool empty = false;
  for (const int64_t size : entry.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(largest, std::max<int64_t>(size, 1), &largest)) return false;
  }
  *bytes = empty ? 0 : largest;
  return true;
}

// Accepts exactly the tree that the header's comment describes; the first deviation ends the
// parse, so depth and size of anything else do not matter.
class TableReader : public nlohmann::json_sax<Json> {
 public:
  SafetensorsTable table;
  absl::Status status;

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override { return Unexpected(absl::StrCat("number ", value)); }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected(absl::StrCat("number ", absl::string_view(text).substr(0, 40)));
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) {
      return Unexpected(absl::StrCat("number ", value));
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Fail(absl::StrCat(Where(), ": number ", value, " is above 2^63 - 1"));
    }
    const bool shape = place_ == Place::kShape;
    const size_t limit = shape ? kMaxSafetensorsRank : 2;
    std::vector<int64_t>& numbers = shape ? entry_.shape : offsets_;
    if (numbers.size() == limit) {
      return Fail(absl::StrCat(Where(), ": has more than ", limit, " numbers"));
    }
    numbers.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadataValue) {
      table.metadata.emplace(std::move(key_), std::move(text));
      place_ = Place::kMetadata;
      return true;
    }
    if (place_ != Place::kDtypeValue) return Unexpected("a string");
    if (SafetensorsDtypeBytes(text) == 0) {
      return Fail(
          absl::StrCat("tensor ", Quote(entry_.name), ": dtype is ", Quote(text), ", expected one of ", kDtypes));
    }
    entry_.dtype = std::move(text);
    place_ = Place::kEntry;
    return true;
  }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kMetadataStart:
        place_ = Place::kMetadata;
        return true;
      case Place::kEntryStart:
        place_ = Place::kEntry;
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool key(string_t& name) override {
    if (place_ == Place::kTop) return TopKey(std::move(name));
    if (place_ == Place::kEntry) return EntryKey(name);
    if (table.metadata.count(name) > 0) {
      return Fail(absl::StrCat("metadata key ", Quote(name), " occurs twice"));
    }
    key_ = std::move(name);
    place_ = Place::kMetadataValue;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kEntry) return FinishEntry();
    place_ = place_ == Place::kMetadata ? Place::kTop : Place::kEnd;
    return true;
  }

  bool start_array(size_t) override {
    const bool shape = place_ == Place::kShapeStart;
    if (!shape && place_ != Place::kOffsetsStart) return Unexpected("a list");
    place_ = shape ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::kEntry;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return Fail(absl::StrCat("header is not valid JSON near byte ", position));
  }

 private:
  // Where the next token stands. *Start and *Value follow a key.
  enum class Place {
    kStart,
    kTop,
    kMetadataStart,
    kMetadata,
    kMetadataValue,
    kEntryStart,
    kEntry,
    kDtypeValue,
    kShapeStart,
    kShape,
    kOffsetsStart,
    kOffsets,
    kEnd,
  };

  bool Fail(std::string message) {
    status = absl::DataLossError(std::move(message));
    return false;
  }

  std::string Where() const {
    switch (place_) {
      case Place::kStart:
      case Place::kTop:
      case Place::kEnd:
        return "header";
      case Place::kMetadataStart:
      case Place::kMetadata:
      case Place::kMetadataValue:
        return "metadata";
      default:
        return absl::StrCat("tensor ", Quote(entry_.name), ": ", field_);
    }
  }

  bool Unexpected(absl::string_view found) {
    return Fail(absl::StrCat(Where(), ": holds ", found, " where the format has none"));
  }

  bool TopKey(std::string name) {
    if (!names_.insert(name).second) {
      return Fail(absl::StrCat("tensor ", Quote(name), " occurs twice"));
    }
    if (name == kMetadataKey) {
      place_ = Place::kMetadataStart;
      return true;
    }
    if (static_cast<int64_t>(table.entries.size()) == kMaxSafetensorsTensors) {
      return Fail(absl::StrCat("header: has more than ", kMaxSafetensorsTensors, " tensors"));
    }
    entry_ = SafetensorsEntry();
    entry_.name = std::move(name);
    offsets_.clear();
    fields_.clear();
    field_ = "entry";
    place_ = Place::kEntryStart;
    return true;
  }

  bool EntryKey(const std::string& name) {
    if (std::find(fields_.begin(), fields_.end(), name) != fields_.end()) {
      return Fail(absl::StrCat("tensor ", Quote(entry_.name), ": ", name, " occurs twice"));
    }
    if (name == "dtype") {
      place_ = Place::kDtypeValue;
    } else if (name == "shape") {
      place_ = Place::kShapeStart;
    } else if (name == "data_offsets") {
      place_ = Place::kOffsetsStart;
    } else {
      return Fail(absl::StrCat("tensor ", Quote(entry_.name), ": has the key ", Quote(name),
                               ", expected dtype, shape and data_offsets"));
    }
    fields_.push_back(name);
    field_ = name;
    return true;
  }

  bool FinishEntry() {
    const std::string tensor = absl::StrCat("tensor ", Quote(entry_.name));
    constexpr size_t kFields = 3;
    if (fields_.size() != kFields) {
      return Fail(absl::StrCat(tensor, ": has only ", absl::StrJoin(fields_, ", "),
                               ", expected dtype, shape and data_offsets"));
    }
    if (offsets_.size() != 2) {
      return Fail(absl::StrCat(tensor, ": data_offsets has ", offsets_.size(), " numbers, expected 2"));
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    int64_t bytes = 0;
    if (!ExtentBytes(entry_, &bytes)) {
      return Fail(absl::StrCat(tensor, ": shape [", absl::StrJoin(entry_.shape, ", "), "] overflows"));
    }
    if (entry_.end < entry_.begin || entry_.end - entry_.begin != bytes) {
      return Fail(absl::StrCat(tensor, ": data_offsets are ", entry_.begin, " and ", entry_.end, ", expected ", bytes,
                               " bytes for ", entry_.dtype, " [", absl::StrJoin(entry_.shape, ", "), "]"));
    }
    table.entries.push_back(std::move(entry_));
    place_ = Place::kTop;
    return true;
  }

  Place place_ = Place::kStart;
  std::set<std::string> names_;
  std::string key_;         // of the metadata value that comes
  SafetensorsEntry entry_;  // under construction, with its fields so far
  std::vector<int64_t> offsets_;
  std::vector<std::string> fields_;
  std::string field_;
};

absl::Status CheckTiling(const std::vector<SafetensorsEntry>& entries, int64_t data_bytes) {
  std::vector<const SafetensorsEntry*> ordered;
  ordered.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) ordered.push_back(&entry);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return std::make_pair(a->begin, a->end) < std::make_pair(b->begin, b->end);
  });
  int64_t expected = 0;
  for (const SafetensorsEntry* entry : ordered) {
    if (entry->begin != expected) {
      const absl::string_view fault = entry->begin < expected ? "an overlap" : "a hole";
      return absl::DataLossError(absl::StrCat("tensor ", Quote(entry->name), ": begins at ", entry->begin,
                                              ", expected ", expected, ": ", fault));
    }
    expected = entry->end;
  }
  if (expected != data_bytes) {
    return absl::DataLossError(
        absl::StrCat("data: has ", data_bytes, " bytes, expected ", expected, " for all tensors"));
  }
  return absl::OkStatus();
}

// A JSON string. The library replaces what is no UTF-8, which reading back shows.
absl::StatusOr<std::string> JsonString(const std::string& text) {
  std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  const Json back = Json::parse(quoted, nullptr, /*allow_exceptions=*/false);
  if (!back.is_string() || back.get_ref<const std::string&>() != text) {
    return absl::InvalidArgumentError(absl::StrCat("name ", Quote(text), " is not UTF-8"));
  }
  return quoted;
}

absl::Status AppendMetadata(const std::map<std::string, std::string>& metadata, std::vector<std::string>* members) {
  if (metadata.empty()) return absl::OkStatus();
  std::vector<std::string> pairs;
  for (const auto& [key, value] : metadata) {
    SSL_ASSIGN_OR_RETURN(const std::string quoted_key, JsonString(key));
    SSL_ASSIGN_OR_RETURN(const std::string quoted_value, JsonString(value));
    pairs.push_back(absl::StrCat(quoted_key, ":", quoted_value));
  }
  members->push_back(absl::StrCat("\"", kMetadataKey, "\":{", absl::StrJoin(pairs, ","), "}"));
  return absl::OkStatus();
}

std::string LittleEndian64(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < kSafetensorsLengthBytes; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i)));
  }
  return bytes;
}

}  // namespace

int64_t SafetensorsDtypeBytes(absl::string_view dtype) {
  static constexpr std::array<std::pair<absl::string_view, int64_t>, 10> kBytes = {{
      {"F64", 8},
      {"F32", 4},
      {"F16", 2},
      {"BF16", 2},
      {"I64", 8},
      {"I32", 4},
      {"I16", 2},
      {"I8", 1},
      {"U8", 1},
      {"BOOL", 1},
  }};
  for (const auto& [name, bytes] : kBytes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

absl::StatusOr<int64_t> ParseSafetensorsHeaderLength(absl::string_view first_bytes, int64_t file_size) {
  if (file_size < kSafetensorsLengthBytes || static_cast<int64_t>(first_bytes.size()) < kSafetensorsLengthBytes) {
    return absl::DataLossError(
        absl::StrCat("size is ", file_size, " bytes, expected at least ", kSafetensorsLengthBytes));
  }
  uint64_t length = 0;
  for (int i = kSafetensorsLengthBytes - 1; i >= 0; --i) {
    length = (length << 8) | static_cast<uint8_t>(first_bytes[i]);
  }
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return absl::DataLossError(
        absl::StrCat("header length is ", length, ", expected at most ", kMaxSafetensorsHeaderBytes));
  }
  const int64_t rest = file_size - kSafetensorsLengthBytes;
  if (static_cast<int64_t>(length) > rest) {
    return absl::DataLossError(
        absl::StrCat("header length is ", length, ", but only ", rest, " bytes follow it: the file is truncated"));
  }
  return static_cast<int64_t>(length);
}

absl::StatusOr<SafetensorsTable> ParseSafetensorsHeader(absl::string_view header, int64_t data_bytes) {
  if (header.empty() || header.front() != '{') {
    return absl::DataLossError("header does not begin with '{'");
  }
  TableReader reader;
  const bool parsed = Json::sax_parse(header.begin(), header.end(), &reader);
  SSL_RETURN_IF_ERROR(reader.status);
  SSL_RET_CHECK(parsed, "the parser stopped without an error");
  SSL_RETURN_IF_ERROR(CheckTiling(reader.table.entries, data_bytes));
  return std::move(reader.table);
}

absl::StatusOr<std::string> FormatSafetensorsHeader(const SafetensorsTable& table) {
  std::vector<std::string> members;
  SSL_RETURN_IF_ERROR(AppendMetadata(table.metadata, &members));
  std::set<std::string> names = {std::string(kMetadataKey)};
  for (const SafetensorsEntry& entry : table.entries) {
    if (!names.insert(entry.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Quote(entry.name), ": the name is taken"));
    }
    SSL_ASSIGN_OR_RETURN(const std::string name, JsonString(entry.name));
    members.push_back(absl::StrCat(name, ":{\"dtype\":\"", entry.dtype, "\",\"shape\":[",
                                   absl::StrJoin(entry.shape, ","), "],\"data_offsets\":[", entry.begin, ",", entry.end,
                                   "]}"));
  }
  std::string header = absl::StrCat("{", absl::StrJoin(members, ","), "}");
  header.append((kSafetensorsLengthBytes - header.size() % kSafetensorsLengthBytes) % kSafetensorsLengthBytes, ' ');
  if (static_cast<int64_t>(header.size()) > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("header has ", header.size(), " bytes, expected at most ", kMaxSafetensorsHeaderBytes));
  }
  return absl::StrCat(LittleEndian64(header.size()), header);
}

}  // namespace ssl
