// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/exif_orientation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

constexpr absl::string_view kExifMark("Exif\0\0", 6);
constexpr absl::string_view kJpegXmpMark("http://ns.adobe.com/xap/1.0/\0", 29);
constexpr absl::string_view kPngXmpKeyword("XML:com.adobe.xmp\0", 18);
constexpr absl::string_view kXmpKey = "tiff:Orientation";
constexpr int kUnknown = 0;
constexpr int kUpright = 1;
constexpr int kMaxOrientation = 8;
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShortType = 3;

// Numbers of a text of bytes; 0 past its end, so that a damaged file ends in no orientation.
class Bytes {
 public:
  Bytes(absl::string_view text, bool big_endian) : text_(text), big_endian_(big_endian) {}

  uint32_t Number(size_t offset, size_t size) const {
    if (offset > text_.size() || size > text_.size() - offset) return 0;
    uint32_t number = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t place = big_endian_ ? i : size - 1 - i;
      number = number << 8 | static_cast<uint8_t>(text_[offset + place]);
    }
    return number;
  }

 private:
  absl::string_view text_;
  bool big_endian_;
};

// Of a TIFF header with its first directory, which is what EXIF data consist of; kUnknown without the tag.
int OrientationOfTiff(absl::string_view tiff) {
  absl::ConsumePrefix(&tiff, kExifMark);
  const bool big_endian = absl::StartsWith(tiff, "MM");
  if (!big_endian && !absl::StartsWith(tiff, "II")) return kUnknown;
  const Bytes bytes(tiff, big_endian);
  const size_t directory = bytes.Number(4, 4);
  const uint32_t entries = bytes.Number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * size_t{i};
    if (entry >= tiff.size()) return kUnknown;
    if (bytes.Number(entry, 2) != kOrientationTag) continue;
    const uint32_t value = bytes.Number(entry + 8, 2);
    const bool valid = bytes.Number(entry + 2, 2) == kShortType && value >= 1 && value <= kMaxOrientation;
    return valid ? static_cast<int>(value) : kUpright;
  }
  return kUnknown;
}

// Of an XMP packet, by the rule of Pillow: tiff:Orientation="6" or <tiff:Orientation>6.
int OrientationOfXmp(absl::string_view xmp) {
  for (size_t at = xmp.find(kXmpKey); at != absl::string_view::npos; at = xmp.find(kXmpKey, at + 1)) {
    absl::string_view rest = xmp.substr(at + kXmpKey.size());
    if (!absl::ConsumePrefix(&rest, "=\"") && !absl::ConsumePrefix(&rest, ">")) continue;
    if (rest.empty() || rest[0] < '0' || rest[0] > '9') continue;
    const int value = rest[0] - '0';
    return value >= 1 && value <= kMaxOrientation ? value : kUpright;
  }
  return kUpright;
}

// What an APP1 segment that begins with `mark` holds; such stand before the first scan.
absl::string_view SegmentOfJpeg(absl::string_view bytes, absl::string_view mark) {
  constexpr uint32_t kApp1 = 0xFFE1, kStartOfScan = 0xFFDA, kFill = 0xFFFF;
  const Bytes numbers(bytes, /*big_endian=*/true);
  for (size_t at = 2; at < bytes.size();) {
    const uint32_t marker = numbers.Number(at, 2);
    const size_t length = numbers.Number(at + 2, 2);
    if (marker == kFill) {
      ++at;
      continue;
    }
    if (marker < 0xFF00 || marker == kStartOfScan || length < 2) return "";
    const absl::string_view segment = bytes.substr(std::min(at + 4, bytes.size()), length - 2);
    if (marker == kApp1 && absl::StartsWith(segment, mark)) return segment;
    at += 2 + length;
  }
  return "";
}

// The data of the first chunk `name`; chunks begin at `at` with their length and name in either order. padding: chunks
// begin at even places. tail: bytes after the data.
struct ChunkFormat {
  size_t first;
  size_t length_at;
  size_t name_at;
  size_t tail;
  bool padded;
  bool big_endian;
};

// begin: of its data.
absl::string_view FindChunk(absl::string_view bytes, absl::string_view name, const ChunkFormat& format,
                            absl::string_view begin = "") {
  constexpr size_t kHeaderBytes = 8;
  const Bytes numbers(bytes, format.big_endian);
  for (size_t at = format.first; at + kHeaderBytes <= bytes.size();) {
    const size_t length = numbers.Number(at + format.length_at, 4);
    const absl::string_view data = bytes.substr(at + kHeaderBytes, length);
    if (bytes.substr(at + format.name_at, 4) == name && absl::StartsWith(data, begin)) return data;
    at += kHeaderBytes + length + format.tail + (format.padded ? length % 2 : 0);
  }
  return "";
}

constexpr ChunkFormat kPngChunks = {8, 0, 4, 4, false, true};
constexpr ChunkFormat kWebpChunks = {12, 4, 0, 0, true, false};

struct Metadata {
  absl::string_view exif;
  absl::string_view xmp;  // not of a PNG that compresses it
};

Metadata FindMetadata(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xFF\xD8")) {
    return {SegmentOfJpeg(bytes, kExifMark), SegmentOfJpeg(bytes, kJpegXmpMark)};
  }
  if (absl::StartsWith(bytes, "\x89PNG")) {
    return {FindChunk(bytes, "eXIf", kPngChunks), FindChunk(bytes, "iTXt", kPngChunks, kPngXmpKeyword)};
  }
  if (absl::StartsWith(bytes, "RIFF")) {
    return {FindChunk(bytes, "EXIF", kWebpChunks), FindChunk(bytes, "XMP ", kWebpChunks)};
  }
  return {};
}

// One row of the result from `pixels`, which `step` bytes separate.
void CopyRow(const uint8_t* pixels, int64_t step, int count, int channels, uint8_t* row) {
  for (int x = 0; x < count; ++x, pixels += step, row += channels) std::copy(pixels, pixels + channels, row);
}

}  // namespace

int ExifOrientation(absl::string_view bytes) {
  const Metadata metadata = FindMetadata(bytes);
  const int orientation = OrientationOfTiff(metadata.exif);
  return orientation == kUnknown ? OrientationOfXmp(metadata.xmp) : orientation;
}

void TurnUpright(int orientation, const Image& source, Image* result) {
  // From 5 on rows become columns; the result's columns or rows run backwards in the source by these rules.
  const bool transposed = ExchangesSides(orientation);
  const bool rows_backwards = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool columns_backwards = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const int channels = source.channels();
  const int64_t line = static_cast<int64_t>(source.width()) * channels;
  const int64_t row_step = transposed ? channels : line;
  const int64_t column_step = transposed ? line : channels;
  const int full_height = transposed ? source.full_width() : source.full_height();
  const int full_width = transposed ? source.full_height() : source.full_width();
  uint8_t* row = result->Allocate(full_height, full_width, channels, source.reduction());
  const int height = result->height(), width = result->width();
  for (int y = 0; y < height; ++y, row += static_cast<int64_t>(width) * channels) {
    const int64_t source_y = rows_backwards ? height - 1 - y : y;
    const uint8_t* first = source.pixels() + source_y * row_step;
    if (columns_backwards) {
      CopyRow(first + (width - 1) * column_step, -column_step, width, channels, row);
    } else {
      CopyRow(first, column_step, width, channels, row);
    }
  }
}

}  // namespace ssl
