// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/read_fault.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

using absl::string_view;

constexpr string_view kNames[kNumReadFaults] = {"none",       "damaged", "unsupported", "too large",   "missing",
                                                "unreadable", "empty",   "truncated",   "not an image"};

constexpr string_view kJpegBegin("\xFF\xD8\xFF", 3);
constexpr string_view kJpegEnd("\xFF\xD9", 2);
constexpr string_view kPngBegin("\x89PNG\r\n\x1A\n", 8);
constexpr string_view kPngEnd("IEND");

// How files of other formats begin.
constexpr string_view kOtherBegins[] = {string_view("GIF8"),
                                        string_view("BM"),
                                        string_view("II*\0", 4),
                                        string_view("MM\0*", 4),
                                        string_view("8BPS"),
                                        string_view("\xFF\x0A", 2),
                                        string_view("\0\0\1\0", 4),
                                        string_view("\0\0\0\x0CjP  ", 8),
                                        string_view("\0\0\0\x0CJXL ", 8)};
// What stands at byte 4 of HEIC and AVIF.
constexpr string_view kBoxedBrands[] = {"ftyphei", "ftyphev", "ftypmif1", "ftypmsf1", "ftypavi"};

bool IsJpeg(string_view bytes) { return absl::StartsWith(bytes, kJpegBegin); }

bool IsPng(string_view bytes) { return absl::StartsWith(bytes, kPngBegin); }

bool IsWebp(string_view bytes) {
  return absl::StartsWith(bytes, "RIFF") && bytes.size() > 8 && absl::StartsWith(bytes.substr(8), "WEBP");
}

// "P6" and a space or line feed, as PBM, PGM and PPM begin.
bool IsPortableMap(string_view bytes) {
  return bytes.size() > 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
         string_view(" \t\r\n").find(bytes[2]) != string_view::npos;
}

bool IsOtherImage(string_view bytes) {
  const auto begins = [bytes](string_view begin) { return absl::StartsWith(bytes, begin); };
  const auto is_brand = [bytes](string_view brand) {
    return bytes.size() > 4 && absl::StartsWith(bytes.substr(4), brand);
  };
  return IsWebp(bytes) || IsPortableMap(bytes) ||
         std::any_of(std::begin(kOtherBegins), std::end(kOtherBegins), begins) ||
         std::any_of(std::begin(kBoxedBrands), std::end(kBoxedBrands), is_brand);
}

// Whether the end of the format stands at the end of the file. Some programs fill up with zeros after it; a download
// that broke off in a file of its final size looks the same, but for the mark before the zeros.
bool HasEnd(string_view bytes) {
  if (IsWebp(bytes)) {
    size_t size = 0;  // of what follows it, least significant byte first
    for (size_t i = 4; i > 0; --i) size = size << 8 | static_cast<unsigned char>(bytes[3 + i]);
    return bytes.size() >= 8 + size;
  }
  if (IsPng(bytes)) return bytes.substr(bytes.size() - std::min<size_t>(bytes.size(), 64)).find(kPngEnd) != bytes.npos;
  while (absl::ConsumeSuffix(&bytes, string_view("\0", 1))) {
  }
  return absl::EndsWith(bytes, kJpegEnd);
}

}  // namespace

string_view ReadFaultName(ReadFault fault) { return kNames[static_cast<int>(fault)]; }

ReadFault ReadFaultOf(string_view bytes, const absl::Status& reason) {
  switch (reason.code()) {
    case absl::StatusCode::kOk:
      return ReadFault::kNone;
    case absl::StatusCode::kNotFound:
      return ReadFault::kMissing;
    case absl::StatusCode::kResourceExhausted:
      return ReadFault::kTooLarge;
    case absl::StatusCode::kUnimplemented:
      return IsJpeg(bytes) || IsPng(bytes) || IsOtherImage(bytes) ? ReadFault::kUnsupported : ReadFault::kNotAnImage;
    case absl::StatusCode::kDataLoss:
      if (bytes.empty()) return ReadFault::kEmpty;
      return HasEnd(bytes) ? ReadFault::kDamaged : ReadFault::kTruncated;
    default:
      return ReadFault::kUnreadable;
  }
}

absl::Status AsReadError(const absl::Status& error) {
  const bool means_content = absl::IsDataLoss(error) || absl::IsUnimplemented(error);
  return means_content ? absl::UnavailableError(error.message()) : error;
}

}  // namespace ssl
