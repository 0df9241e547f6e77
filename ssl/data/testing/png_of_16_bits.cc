// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/testing/png_of_16_bits.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ssl {
namespace {

const Bytef* BytesOf(absl::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

// The most significant byte first.
std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

std::string Chunk(absl::string_view kind, absl::string_view data) {
  const std::string body = absl::StrCat(kind, data);
  return absl::StrCat(BigEndian(static_cast<uint32_t>(data.size()), 4), body,
                      BigEndian(static_cast<uint32_t>(crc32(0, BytesOf(body), static_cast<uInt>(body.size()))), 4));
}

}  // namespace

std::string PngOf16Bits(int side, const std::vector<uint16_t>& pixel) {
  std::string rows;
  for (int y = 0; y < side; ++y) {
    rows.push_back('\0');  // no filter
    for (int x = 0; x < side; ++x) {
      for (const uint16_t value : pixel) rows += BigEndian(value, 2);
    }
  }
  uLongf bytes = compressBound(rows.size());
  std::string packed(bytes, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &bytes, BytesOf(rows), rows.size());
  packed.resize(bytes);
  constexpr char kColourTypes[] = {0, 4, 2};
  const std::string size = BigEndian(static_cast<uint32_t>(side), 4);
  const std::string header = absl::StrCat(size, size, std::string{16, kColourTypes[pixel.size() - 1], 0, 0, 0});
  return absl::StrCat("\x89PNG\r\n\x1A\n", Chunk("IHDR", header), Chunk("IDAT", packed), Chunk("IEND", ""));
}

}  // namespace ssl
