// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/event_encoding.h"

#include <cstring>

#include "ssl/base/crc32c.h"

namespace ssl {
namespace {

// Wire types of protocol buffers.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr uint64_t kSessionStarts = 1;

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

void AppendTag(uint32_t field, WireType type, std::string* out) { AppendVarint(field << 3 | type, out); }

void AppendInt(uint32_t field, int64_t value, std::string* out) {
  AppendTag(field, kVarint, out);
  AppendVarint(static_cast<uint64_t>(value), out);
}

void AppendDouble(uint32_t field, double value, std::string* out) {
  AppendTag(field, kFixed64, out);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  AppendLittleEndian(bits, out);
}

void AppendFloat(uint32_t field, float value, std::string* out) {
  AppendTag(field, kFixed32, out);
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  AppendLittleEndian(bits, out);
}

void AppendBytes(uint32_t field, absl::string_view bytes, std::string* out) {
  AppendTag(field, kBytes, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
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

std::string EncodeScalars(double wall_time, int64_t step, const std::map<std::string, double>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    std::string entry;
    AppendBytes(1, tag, &entry);
    AppendFloat(2, static_cast<float>(value), &entry);
    AppendBytes(1, entry, &summary);
  }
  std::string event;
  AppendDouble(1, wall_time, &event);
  AppendInt(2, step, &event);
  AppendBytes(5, summary, &event);
  return event;
}

}  // namespace ssl
