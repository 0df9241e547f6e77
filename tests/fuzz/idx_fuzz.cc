// SPDX-License-Identifier: Apache-2.0
//
// IDX files of pictures and labels, plain and compressed. The first byte of an input chooses the number of dimensions.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/data/datasets/idx_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "zlib.h"

namespace ssl::fuzz {
namespace {

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// Values 0, 1, 2, ... of that shape.
std::string Idx(const std::vector<uint32_t>& shape) {
  std::string file = {0, 0, 8, static_cast<char>(shape.size())};
  size_t count = 1;
  for (const uint32_t extent : shape) {
    file += BigEndian(extent);
    count *= extent;
  }
  for (size_t i = 0; i < count; ++i) file.push_back(static_cast<char>(i));
  return file;
}

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  CheckFuzz(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib starts");
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  CheckFuzz(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib compresses");
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

}  // namespace

std::vector<std::string> Samples() {
  const std::string pictures = Idx({3, 4, 5});
  const std::string labels = Idx({7});
  return {absl::StrCat("3", pictures), absl::StrCat("1", labels), absl::StrCat("3", Gzip(pictures)),
          absl::StrCat("1", Gzip(labels)), absl::StrCat("2", Idx({0, 9}))};
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto array = ssl::ParseIdx(ssl::fuzz::ToView(data + 1, size - 1), "fuzz.idx", data[0] % 4);
  if (!array.ok()) return 0;
  int64_t count = 1;
  for (const int64_t extent : array->shape) count *= extent;
  ssl::fuzz::CheckFuzz(count == static_cast<int64_t>(array->values.size()), "an array has the values of its shape");
  return 0;
}
