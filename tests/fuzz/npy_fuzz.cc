// SPDX-License-Identifier: Apache-2.0
//
// .npy files: header, values, integers and strings.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/io/npy.h"
#include "ssl/io/npy_header.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {
namespace {

std::string Npy(const std::string& descr, const std::vector<int64_t>& shape, absl::string_view values) {
  NpyHeader header;
  header.descr = descr;
  header.shape = shape;
  return absl::StrCat(FormatNpyHeader(header), values);
}

void ReadHeader(absl::string_view bytes) {
  const size_t size = bytes.size();
  const auto header = TakeNpyHeader(&bytes);
  if (!header.ok()) return;
  CheckFuzz(bytes.size() < size, "a header takes bytes");
  for (const int64_t extent : header->shape) CheckFuzz(extent >= 0, "no extent is negative");
}

void ReadFile(absl::string_view bytes) {
  const auto array = ReadNpy(WriteFuzzFile(bytes, "input.npy"));
  if (!array.ok()) return;
  int64_t count = 1;
  for (const int64_t extent : array->shape) count *= extent;
  CheckFuzz(array->item_bytes >= 0 && (array->item_bytes == 0 || count == array->size()), "an array has its values");
  const auto numbers = NpyInts(*array);
  CheckFuzz(!numbers.ok() || static_cast<int64_t>(numbers->size()) == count, "integers are as many as values");
  const auto strings = NpyStrings(*array);
  CheckFuzz(!strings.ok() || static_cast<int64_t>(strings->size()) == count, "strings are as many as values");
}

}  // namespace

std::vector<std::string> Samples() {
  const std::string text("d\0\0\0o\0\0\0g\0\0\0\0\0\0\0", 16);
  return {Npy("<f4", {2, 3}, std::string(24, 'f')),
          Npy("<i8", {}, std::string(8, '\1')),
          Npy("|b1", {3}, std::string("\1\0\1", 3)),
          Npy("<U2", {2}, text),
          Npy("|S3", {2}, "catdog"),
          Npy("|u1", {0, 5}, "")};
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ssl::fuzz::ReadHeader(ssl::fuzz::ToView(data, size));
  ssl::fuzz::ReadFile(ssl::fuzz::ToView(data, size));
  return 0;
}
