// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/event_encoding.h"

#include <cstring>
#include <vector>

#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"

namespace ssl {
namespace {

// Wire types of protocol buffers.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr uint64_t kSessionStarts = 1;
constexpr int64_t kColorspaceRgb = 3;

void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

template <class Integer>
void AppendLittleEndian(Integer value, std::string* out) {
  for (size_t i = 0; i < sizeof(value); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

template <class Integer, class Number>
Integer BitsOf(Number value) {
  static_assert(sizeof(Integer) == sizeof(Number));
  Integer bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void AppendTag(uint32_t field, WireType type, std::string* out) { AppendVarint(field << 3 | type, out); }

void AppendInt(uint32_t field, int64_t value, std::string* out) {
  AppendTag(field, kVarint, out);
  AppendVarint(static_cast<uint64_t>(value), out);
}

void AppendDouble(uint32_t field, double value, std::string* out) {
  AppendTag(field, kFixed64, out);
  AppendLittleEndian(BitsOf<uint64_t>(value), out);
}

void AppendFloat(uint32_t field, float value, std::string* out) {
  AppendTag(field, kFixed32, out);
  AppendLittleEndian(BitsOf<uint32_t>(value), out);
}

void AppendBytes(uint32_t field, absl::string_view bytes, std::string* out) {
  AppendTag(field, kBytes, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

void AppendDoubles(uint32_t field, const std::vector<double>& values, std::string* out) {
  AppendTag(field, kBytes, out);
  AppendVarint(values.size() * sizeof(double), out);
  for (const double value : values) AppendLittleEndian(BitsOf<uint64_t>(value), out);
}

std::string EncodeHistogram(const MetricHistogram& histogram) {
  std::string message;
  AppendDouble(1, histogram.min, &message);
  AppendDouble(2, histogram.max, &message);
  AppendDouble(3, static_cast<double>(histogram.count), &message);
  AppendDouble(4, histogram.sum, &message);
  AppendDouble(5, histogram.sum_of_squares, &message);
  if (histogram.counts.empty()) return message;
  AppendDoubles(6, {histogram.edges.begin() + 1, histogram.edges.end()}, &message);
  AppendDoubles(7, histogram.counts, &message);
  return message;
}

absl::StatusOr<std::string> EncodeImage(const MetricImage& image) {
  Image pixels;
  pixels.Borrow(reinterpret_cast<const uint8_t*>(image.pixels.data()), static_cast<int>(image.height),
                static_cast<int>(image.width), 3);
  SSL_ASSIGN_OR_RETURN(const std::string png, EncodePng(pixels));
  std::string message;
  AppendInt(1, image.height, &message);
  AppendInt(2, image.width, &message);
  AppendInt(3, kColorspaceRgb, &message);
  AppendBytes(4, png, &message);
  return message;
}

// A Value whose field `field` is a message.
void AppendValue(absl::string_view tag, uint32_t field, absl::string_view message, std::string* summary) {
  std::string entry;
  AppendBytes(1, tag, &entry);
  AppendBytes(field, message, &entry);
  AppendBytes(1, entry, summary);
}

}  // namespace

std::string EncodeRecord(absl::string_view payload) {
  std::string record;
  AppendLittleEndian(static_cast<uint64_t>(payload.size()), &record);
  AppendLittleEndian(MaskedCrc32c(record), &record);
  record.append(payload.data(), payload.size());
  AppendLittleEndian(MaskedCrc32c(payload), &record);
  return record;
}

std::string EncodeFileVersion(double wall_time) {
  std::string event;
  AppendDouble(1, wall_time, &event);
  AppendBytes(3, "brain.Event:2", &event);
  return event;
}

std::string EncodeSessionStart(double wall_time, int64_t step) {
  std::string log;
  AppendInt(1, kSessionStarts, &log);
  std::string event;
  AppendDouble(1, wall_time, &event);
  AppendInt(2, step, &event);
  AppendBytes(7, log, &event);
  return event;
}

absl::StatusOr<std::string> EncodeReport(double wall_time, const MetricReport& report) {
  std::string summary;
  for (const auto& [tag, value] : report.values) {
    std::string entry;
    AppendBytes(1, tag, &entry);
    AppendFloat(2, static_cast<float>(value), &entry);
    AppendBytes(1, entry, &summary);
  }
  for (const auto& [tag, histogram] : report.histograms) AppendValue(tag, 5, EncodeHistogram(histogram), &summary);
  for (const auto& [tag, image] : report.images) {
    SSL_ASSIGN_OR_RETURN(const std::string encoded, EncodeImage(image));
    AppendValue(tag, 4, encoded, &summary);
  }
  std::string event;
  AppendDouble(1, wall_time, &event);
  AppendInt(2, report.iteration, &event);
  AppendBytes(5, summary, &event);
  return event;
}

}  // namespace ssl
