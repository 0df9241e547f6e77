// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/npy.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/io/mapped_file.h"
#include "ssl/io/npy_header.h"

namespace ssl {
namespace {

constexpr int64_t kCodePointBytes = 4;

struct NumericDtype {
  NpyDtype dtype;
  absl::string_view descr;
  int64_t bytes;
};

constexpr std::array<NumericDtype, 6> kNumericDtypes = {{
    {NpyDtype::kFloat32, "<f4", 4},
    {NpyDtype::kFloat64, "<f8", 8},
    {NpyDtype::kInt32, "<i4", 4},
    {NpyDtype::kInt64, "<i8", 8},
    {NpyDtype::kUint8, "|u1", 1},
    {NpyDtype::kBool, "|b1", 1},
}};

std::string DtypeName(NpyDtype dtype) {
  for (const NumericDtype& known : kNumericDtypes) {
    if (known.dtype == dtype) return std::string(known.descr);
  }
  return dtype == NpyDtype::kUnicode ? "<U" : "|S";
}

// Sets dtype and item_bytes.
absl::Status ReadDtype(const std::string& descr, NpyArray* array) {
  for (const NumericDtype& known : kNumericDtypes) {
    if (descr.size() != 3 || descr.substr(1) != known.descr.substr(1)) continue;
    if (descr[0] != known.descr[0] && !(known.bytes == 1 && descr[0] == '<')) continue;
    array->dtype = known.dtype;
    array->item_bytes = known.bytes;
    return absl::OkStatus();
  }
  const absl::string_view kind = absl::string_view(descr).substr(0, 2);
  int64_t length = 0;
  if ((kind == "<U" || kind == "|S") && absl::SimpleAtoi(descr.substr(2), &length) && length >= 1 &&
      length <= INT32_MAX) {
    array->dtype = kind == "<U" ? NpyDtype::kUnicode : NpyDtype::kBytes;
    array->item_bytes = kind == "<U" ? kCodePointBytes * length : length;
    return absl::OkStatus();
  }
  const absl::string_view reason = absl::StrContains(descr, 'O') ? " (an array of Python objects is a pickle)" : "";
  return absl::UnimplementedError(
      absl::StrCat("dtype is ", QuoteNpyText(descr), reason, ", expected <f4, <f8, <i4, <i8, |u1, |b1, <Un or |Sn"));
}

// Bytes of an array, or false on overflow. A size of zero hides no overflow of the others.
bool ExtentBytes(const NpyArray& array, int64_t* bytes) {
  int64_t largest = array.item_bytes;
  bool empty = false;
  for (const int64_t size : array.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(largest, std::max<int64_t>(size, 1), &largest)) return false;
  }
  *bytes = empty ? 0 : largest;
  return true;
}

absl::Status CheckValues(const NpyArray& array, absl::string_view values) {
  int64_t expected = 0;
  if (!ExtentBytes(array, &expected) || expected != static_cast<int64_t>(values.size())) {
    return absl::DataLossError(absl::StrCat("holds ", values.size(), " bytes of values, which is not [",
                                            absl::StrJoin(array.shape, ", "), "] of ", array.item_bytes,
                                            " bytes each"));
  }
  if (array.dtype != NpyDtype::kBool) return absl::OkStatus();
  const auto* other = std::find_if(values.begin(), values.end(), [](char value) { return value != 0 && value != 1; });
  if (other == values.end()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("value ", other - values.begin(), " is ", static_cast<uint8_t>(*other), ", expected 0 or 1"));
}

// Files of old writers start their values anywhere: those are copied to where every type may lie.
void PlaceValues(absl::string_view values, std::shared_ptr<const MappedFile> file, NpyArray* array) {
  if (reinterpret_cast<uintptr_t>(values.data()) % alignof(double) == 0) {
    array->bytes = values;
    array->owner = std::move(file);
    return;
  }
  const auto copy = std::make_shared<std::string>(values);
  array->bytes = *copy;
  array->owner = copy;
}

absl::StatusOr<NpyArray> ReadMapped(const std::string& path, std::shared_ptr<const MappedFile> file) {
  NpyArray array;
  array.path = path;
  absl::string_view rest = file->bytes();
  SSL_ASSIGN_OR_RETURN(NpyHeader header, TakeNpyHeader(&rest));
  SSL_RETURN_IF_ERROR(ReadDtype(header.descr, &array));
  array.shape = std::move(header.shape);
  if (header.fortran_order) {
    return absl::UnimplementedError("is in Fortran order, expected C order (numpy.ascontiguousarray converts)");
  }
  SSL_RETURN_IF_ERROR(CheckValues(array, rest));
  PlaceValues(rest, std::move(file), &array);
  return array;
}

absl::Status WrongDtype(const NpyArray& array, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("file ", array.path, ": dtype is ", DtypeName(array.dtype), ", expected ", expected));
}

template <class T>
std::vector<int64_t> Widen(const NpyArray& array) {
  const auto* begin = reinterpret_cast<const T*>(array.bytes.data());
  return std::vector<int64_t>(begin, begin + array.size());
}

// Appends a code point as UTF-8; false for what is none.
bool AppendUtf8(uint32_t code_point, std::string* text) {
  const auto append = [text](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  const auto append_tail = [&](int shift) { append(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) return false;
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | (code_point >> 6));
    append_tail(0);
  } else if (code_point < 0x10000) {
    append(0xE0 | (code_point >> 12));
    append_tail(6);
    append_tail(0);
  } else {
    append(0xF0 | (code_point >> 18));
    append_tail(12);
    append_tail(6);
    append_tail(0);
  }
  return true;
}

// item: the code points of one value.
bool DecodeUnicode(absl::string_view item, std::string* text) {
  size_t size = item.size();
  const auto code_point_at = [item](size_t offset) {
    uint32_t code_point = 0;
    std::memcpy(&code_point, item.data() + offset, sizeof(code_point));
    return code_point;
  };
  while (size > 0 && code_point_at(size - kCodePointBytes) == 0) size -= kCodePointBytes;
  for (size_t offset = 0; offset < size; offset += kCodePointBytes) {
    if (!AppendUtf8(code_point_at(offset), text)) return false;
  }
  return true;
}

absl::Status WriteAndRename(FileSystem& file_system, const std::string& temporary, const std::string& path,
                            absl::string_view header, absl::string_view values) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system.Create(temporary));
  SSL_RETURN_IF_ERROR(file->Append(header));
  SSL_RETURN_IF_ERROR(file->Append(values));
  SSL_RETURN_IF_ERROR(file->Sync());
  SSL_RETURN_IF_ERROR(file->Close());
  return file_system.Rename(temporary, path);
}

template <class T>
constexpr NpyDtype kDtypeOf = NpyDtype::kFloat32;
template <>
constexpr NpyDtype kDtypeOf<double> = NpyDtype::kFloat64;
template <>
constexpr NpyDtype kDtypeOf<int32_t> = NpyDtype::kInt32;
template <>
constexpr NpyDtype kDtypeOf<int64_t> = NpyDtype::kInt64;
template <>
constexpr NpyDtype kDtypeOf<uint8_t> = NpyDtype::kUint8;
template <>
constexpr NpyDtype kDtypeOf<bool> = NpyDtype::kBool;

}  // namespace

absl::StatusOr<NpyArray> ReadNpy(const std::string& path) { return ReadNpy(PosixFileSystem(), path); }

absl::StatusOr<NpyArray> ReadNpy(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(MappedFile file, file_system.Map(path));
  absl::StatusOr<NpyArray> array = ReadMapped(path, std::make_shared<const MappedFile>(std::move(file)));
  if (!array.ok()) return Annotate(array.status(), absl::StrCat("file ", path));
  return array;
}

template <class T>
absl::StatusOr<absl::Span<const T>> NpyValues(const NpyArray& array) {
  if (array.dtype != kDtypeOf<T>) return WrongDtype(array, DtypeName(kDtypeOf<T>));
  return absl::Span<const T>(reinterpret_cast<const T*>(array.bytes.data()), array.size());
}

template absl::StatusOr<absl::Span<const float>> NpyValues<float>(const NpyArray&);
template absl::StatusOr<absl::Span<const double>> NpyValues<double>(const NpyArray&);
template absl::StatusOr<absl::Span<const int32_t>> NpyValues<int32_t>(const NpyArray&);
template absl::StatusOr<absl::Span<const int64_t>> NpyValues<int64_t>(const NpyArray&);
template absl::StatusOr<absl::Span<const uint8_t>> NpyValues<uint8_t>(const NpyArray&);
template absl::StatusOr<absl::Span<const bool>> NpyValues<bool>(const NpyArray&);

absl::StatusOr<std::vector<int64_t>> NpyInts(const NpyArray& array) {
  switch (array.dtype) {
    case NpyDtype::kInt32:
      return Widen<int32_t>(array);
    case NpyDtype::kInt64:
      return Widen<int64_t>(array);
    case NpyDtype::kUint8:
    case NpyDtype::kBool:
      return Widen<uint8_t>(array);
    default:
      return WrongDtype(array, "integers (<i4, <i8, |u1 or |b1)");
  }
}

absl::StatusOr<std::vector<std::string>> NpyStrings(const NpyArray& array) {
  if (array.dtype != NpyDtype::kUnicode && array.dtype != NpyDtype::kBytes) {
    return WrongDtype(array, "strings (<U or |S)");
  }
  std::vector<std::string> strings(array.size());
  for (size_t i = 0; i < strings.size(); ++i) {
    const absl::string_view item = array.bytes.substr(i * array.item_bytes, array.item_bytes);
    if (array.dtype == NpyDtype::kBytes) {
      strings[i] = std::string(item.substr(0, item.find_last_not_of('\0') + 1));
    } else if (!DecodeUnicode(item, &strings[i])) {
      return absl::DataLossError(absl::StrCat("file ", array.path, ": value ", i, " is not Unicode"));
    }
  }
  return strings;
}

absl::StatusOr<std::vector<std::string>> ReadNpyStrings(const std::string& path) {
  return ReadNpyStrings(PosixFileSystem(), path);
}

absl::StatusOr<std::vector<std::string>> ReadNpyStrings(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(file_system, path));
  return NpyStrings(array);
}

template <class T>
absl::Status WriteNpy(FileSystem& file_system, const std::string& path, const std::vector<int64_t>& shape,
                      absl::Span<const T> values) {
  NpyArray array;
  array.item_bytes = sizeof(T);
  array.shape = shape;
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  int64_t expected = 0;
  const bool valid = std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
  if (!valid || shape.size() > kMaxNpyRank || !ExtentBytes(array, &expected) ||
      expected != static_cast<int64_t>(bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat("file ", path, ": shape is [", absl::StrJoin(shape, ", "),
                                                   "], which does not hold ", values.size(), " values"));
  }
  const std::string temporary = absl::StrCat(path, ".tmp-", getpid());
  const absl::Status written =
      WriteAndRename(file_system, temporary, path, FormatNpyHeader({DtypeName(kDtypeOf<T>), false, shape}), bytes);
  if (!written.ok()) {
    // The first error is the one to report; a temporary file that stays harms nobody.
    if (file_system.Exists(temporary)) file_system.RemoveFile(temporary).IgnoreError();
    return written;
  }
  return file_system.SyncDirectory(ParentDirectory(path));
}

template absl::Status WriteNpy<float>(FileSystem&, const std::string&, const std::vector<int64_t>&,
                                      absl::Span<const float>);
template absl::Status WriteNpy<double>(FileSystem&, const std::string&, const std::vector<int64_t>&,
                                       absl::Span<const double>);
template absl::Status WriteNpy<int64_t>(FileSystem&, const std::string&, const std::vector<int64_t>&,
                                        absl::Span<const int64_t>);

}  // namespace ssl
