// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard event files. This program only writes them: the input becomes scalars, and a reader of this target's own,
// written from the format description, must find the same ones. The reader is tried on the input itself as well.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/crc32c.h"
#include "ssl/hooks/sinks/event_encoding.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {
namespace {

using Scalars = std::map<std::string, float>;

template <class Number>
bool Take(absl::string_view* bytes, Number* number) {
  if (bytes->size() < sizeof(Number)) return false;
  std::memcpy(number, bytes->data(), sizeof(Number));
  bytes->remove_prefix(sizeof(Number));
  return true;
}

bool TakeVarint(absl::string_view* bytes, uint64_t* number) {
  *number = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *number |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// One field of a protocol buffer message: its number, and what it holds.
struct Field {
  uint64_t number = 0;
  uint64_t varint = 0;
  absl::string_view bytes;  // of types 1, 2 and 5
};

bool TakeField(absl::string_view* message, Field* field) {
  uint64_t tag = 0;
  if (!TakeVarint(message, &tag)) return false;
  field->number = tag >> 3;
  if ((tag & 7) == 0) return TakeVarint(message, &field->varint);
  uint64_t length = (tag & 7) == 1 ? 8 : 4;
  if ((tag & 7) == 2 && !TakeVarint(message, &length)) return false;
  if ((tag & 7) == 3 || (tag & 7) == 4 || (tag & 7) > 5 || length > message->size()) return false;
  field->bytes = message->substr(0, length);
  message->remove_prefix(length);
  return true;
}

// Summary.Value: tag = 1, simple_value = 2.
bool ReadValue(absl::string_view message, Scalars* scalars) {
  std::string tag;
  float value = 0.0f;
  Field field;
  while (!message.empty()) {
    if (!TakeField(&message, &field)) return false;
    if (field.number == 1) tag = std::string(field.bytes);
    if (field.number == 2 && !Take(&field.bytes, &value)) return false;
  }
  (*scalars)[tag] = value;
  return true;
}

// Event: step = 2, summary = 5, whose field 1 is repeated.
bool ReadEvent(absl::string_view message, uint64_t* step, Scalars* scalars) {
  Field field;
  while (!message.empty()) {
    if (!TakeField(&message, &field)) return false;
    if (field.number == 2) *step = field.varint;
    if (field.number != 5) continue;
    absl::string_view summary = field.bytes;
    while (!summary.empty()) {
      if (!TakeField(&summary, &field)) return false;
      if (field.number == 1 && !ReadValue(field.bytes, scalars)) return false;
    }
  }
  return true;
}

// The next record's payload. False at a torn or damaged one.
bool TakeRecord(absl::string_view* file, absl::string_view* payload) {
  const absl::string_view start = *file;
  uint64_t length = 0;
  uint32_t crc = 0;
  if (!Take(file, &length) || !Take(file, &crc) || crc != MaskedCrc32c(start.substr(0, 8))) return false;
  if (length > file->size()) return false;
  *payload = file->substr(0, length);
  file->remove_prefix(length);
  return Take(file, &crc) && crc == MaskedCrc32c(*payload);
}

bool ReadFile(absl::string_view file, uint64_t* step, Scalars* scalars) {
  absl::string_view payload;
  while (!file.empty()) {
    if (!TakeRecord(&file, &payload) || !ReadEvent(payload, step, scalars)) return false;
  }
  return true;
}

// Names and numbers from the input: 8 bytes of step, then a length byte, a name and 8 bytes of a number, again and
// again.
void CheckWritten(absl::string_view input) {
  int64_t step = 0;
  Take(&input, &step);
  step &= INT64_MAX;
  std::map<std::string, double> values;
  uint8_t length = 0;
  double number = 0.0;
  while (Take(&input, &length)) {
    const std::string name(input.substr(0, length));
    input.remove_prefix(name.size());
    if (Take(&input, &number) && std::abs(number) < 1e30) values[name] = number;
  }
  Scalars read;
  uint64_t read_step = 0;
  const std::string file =
      absl::StrCat(EncodeRecord(EncodeFileVersion(1.5)), EncodeRecord(EncodeReport(2.5, {step, 0, values}).value()));
  CheckFuzz(ReadFile(file, &read_step, &read), "what was written is an event file");
  CheckFuzz(read_step == static_cast<uint64_t>(step), "the step reads back");
  CheckFuzz(read.size() == values.size(), "all scalars read back");
  for (const auto& [name, value] : values) {
    const auto found = read.find(name);
    CheckFuzz(found != read.end() && found->second == static_cast<float>(value), "a scalar reads back");
  }
}

}  // namespace

std::vector<std::string> Samples() {
  const std::string numbers =
      absl::StrCat(std::string("\x2c\x01\0\0\0\0\0\0", 8), "\x04loss", std::string("\0\0\0\0\0\0\xe0\x3f", 8),
                   "\x01"
                   "a",
                   std::string(8, '\0'));
  return {numbers, absl::StrCat(EncodeRecord(EncodeFileVersion(1.5)), EncodeRecord(EncodeSessionStart(1.5, 300)),
                                EncodeRecord(EncodeReport(1.5, {300, 0, {{"a", 0.5}, {"b/c", -2.0}}}).value()))};
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input = ssl::fuzz::ToView(data, size);
  ssl::fuzz::Scalars scalars;
  uint64_t step = 0;
  ssl::fuzz::ReadFile(input, &step, &scalars);
  ssl::fuzz::CheckWritten(input);
  return 0;
}
