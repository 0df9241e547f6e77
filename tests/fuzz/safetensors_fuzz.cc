// SPDX-License-Identifier: Apache-2.0
//
// The length field and the header of a safetensors file. What was read is written and reads back equal.
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/io/safetensors_header.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {
namespace {

std::string File(const SafetensorsTable& table, size_t data_bytes) {
  const absl::StatusOr<std::string> header = FormatSafetensorsHeader(table);
  CheckFuzz(header.ok(), "a sample can be written");
  return absl::StrCat(*header, std::string(data_bytes, 'd'));
}

bool SameEntries(const SafetensorsTable& left, const SafetensorsTable& right) {
  if (left.entries.size() != right.entries.size() || left.metadata != right.metadata) return false;
  for (size_t i = 0; i < left.entries.size(); ++i) {
    const SafetensorsEntry& a = left.entries[i];
    const SafetensorsEntry& b = right.entries[i];
    if (a.name != b.name || a.dtype != b.dtype || a.shape != b.shape || a.begin != b.begin || a.end != b.end) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::string> Samples() {
  SafetensorsTable several;
  several.entries = {{"a.weight", "F32", {2, 3}, 0, 24}, {"b", "I64", {}, 24, 32}, {"empty", "BOOL", {0, 9}, 32, 32}};
  several.metadata = {{"format", "pt"}, {"q\"uote", "\xC3\xA9"}};
  SafetensorsTable halves;
  halves.entries = {{"h", "BF16", {1, 1, 4}, 0, 8}, {"f", "F16", {4}, 8, 16}, {"u", "U8", {3}, 16, 19}};
  return {File(several, 32), File(halves, 19), File(SafetensorsTable(), 0)};
}

void ReadHeader(absl::string_view file) {
  const int64_t size = static_cast<int64_t>(file.size());
  const auto length = ParseSafetensorsHeaderLength(file.substr(0, kSafetensorsLengthBytes), size);
  if (!length.ok()) return;
  CheckFuzz(*length >= 0 && *length <= size - kSafetensorsLengthBytes, "a header lies inside the file");
  const int64_t data_bytes = size - kSafetensorsLengthBytes - *length;
  const auto table = ParseSafetensorsHeader(file.substr(kSafetensorsLengthBytes, *length), data_bytes);
  if (!table.ok()) {
    CheckFuzz(absl::IsDataLoss(table.status()), "a damaged header is a DataLoss");
    return;
  }
  for (const SafetensorsEntry& entry : table->entries) {
    CheckFuzz(entry.begin >= 0 && entry.begin <= entry.end && entry.end <= data_bytes, "tensors lie inside the data");
  }
  const auto text = FormatSafetensorsHeader(*table);
  CheckFuzz(text.ok(), absl::StrCat("what was read can be written: ", text.status().ToString()));
  const auto again = ParseSafetensorsHeader(absl::string_view(*text).substr(kSafetensorsLengthBytes), data_bytes);
  CheckFuzz(again.ok() && SameEntries(*again, *table), "what was written reads back equal");
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ssl::fuzz::ReadHeader(ssl::fuzz::ToView(data, size));
  return 0;
}
