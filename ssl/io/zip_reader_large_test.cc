// SPDX-License-Identifier: Apache-2.0
//
// Entries that do not fit into 32 bits.
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "ssl/io/zip_reader.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// A complete part of a raw deflate stream that stands for `bytes` zeros; `last` closes the stream.
std::string DeflateZeros(size_t bytes, bool last) {
  std::string zeros(bytes, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string deflated(deflateBound(&stream, bytes) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(deflated.data());
  stream.avail_out = static_cast<uInt>(deflated.size());
  EXPECT_EQ(deflate(&stream, last ? Z_FINISH : Z_FULL_FLUSH), last ? Z_STREAM_END : Z_OK);
  deflated.resize(deflated.size() - stream.avail_out);
  deflateEnd(&stream);
  return deflated;
}

TEST(ZipReaderLarge, EntryAbove4GiB_Inflates) {
  constexpr int64_t kPart = int64_t{1} << 26;
  constexpr int kParts = 64;
  const std::string part = DeflateZeros(kPart, /*last=*/false);
  std::string stored;
  for (int i = 0; i < kParts; ++i) stored += part;
  stored += DeflateZeros(5, /*last=*/true);
  ZipEntry entry;
  entry.name = "large";
  entry.stored = stored;
  entry.size = kPart * kParts + 5;
  entry.deflated = true;
  ASSERT_OK_AND_ASSIGN(const std::string content, InflateZipEntry(entry));
  EXPECT_EQ(static_cast<int64_t>(content.size()), entry.size);
}

}  // namespace
}  // namespace ssl
