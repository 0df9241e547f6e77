// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/testing/zip_builder.h"

#include <zlib.h>

#include <cstdlib>

namespace ssl {
namespace {

constexpr uint32_t kIn64 = 0xFFFFFFFF;

template <class T>
void Append(std::string* bytes, T value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Deflate(const std::string& content) {
  std::string deflated(compressBound(content.size()), '\0');
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(deflated.data());
  stream.avail_out = static_cast<uInt>(deflated.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  deflated.resize(stream.total_out);
  deflateEnd(&stream);
  return deflated;
}

// Version, flags, method, time, CRC-32, sizes: alike in the local header and in the directory.
std::string Common(const ZipItem& item, uint64_t size, uint64_t stored_size) {
  std::string common;
  Append<uint16_t>(&common, 45);
  Append<uint16_t>(&common, item.flags);
  Append<uint16_t>(&common, item.method != 0 ? item.method : (item.deflate ? 8 : 0));
  Append<uint32_t>(&common, 0);
  const auto* bytes = reinterpret_cast<const Bytef*>(item.content.data());
  Append<uint32_t>(&common, item.claimed_crc32.value_or(crc32(0, bytes, static_cast<uInt>(item.content.size()))));
  Append<uint32_t>(&common, item.zip64 ? kIn64 : static_cast<uint32_t>(stored_size));
  Append<uint32_t>(&common, item.zip64 ? kIn64 : static_cast<uint32_t>(size));
  return common;
}

}  // namespace

std::string BuildZip(const std::vector<ZipItem>& items, bool zip64_end) {
  std::string file;
  std::string directory;
  for (const ZipItem& item : items) {
    const std::string stored = item.deflate ? Deflate(item.content) : item.content;
    const uint64_t size = item.claimed_size.value_or(item.content.size());
    const uint64_t stored_size = item.claimed_stored_size.value_or(stored.size());
    const uint64_t offset = item.claimed_offset.value_or(file.size());
    const std::string common = Common(item, size, stored_size);
    const std::string& local_name = item.local_name.empty() ? item.name : item.local_name;
    file += "PK\x03\x04" + common;
    Append(&file, static_cast<uint16_t>(local_name.size()));
    Append<uint16_t>(&file, 0);
    file += local_name + stored;

    directory += "PK\x01\x02";
    Append<uint16_t>(&directory, 45);
    directory += common;
    Append(&directory, static_cast<uint16_t>(item.name.size()));
    Append<uint16_t>(&directory, item.zip64 ? 28 : 0);
    directory.append(10, '\0');
    Append<uint32_t>(&directory, item.zip64 ? kIn64 : static_cast<uint32_t>(offset));
    directory += item.name;
    if (!item.zip64) continue;
    Append<uint16_t>(&directory, 1);
    Append<uint16_t>(&directory, 24);
    for (const uint64_t value : {size, stored_size, offset}) Append(&directory, value);
  }
  const uint64_t directory_offset = file.size();
  file += directory;
  if (zip64_end) {
    const uint64_t record = file.size();
    file += "PK\x06\x06";
    Append<uint64_t>(&file, 44);
    Append<uint32_t>(&file, 0);
    Append<uint64_t>(&file, 0);
    Append<uint64_t>(&file, items.size());
    Append<uint64_t>(&file, items.size());
    Append<uint64_t>(&file, directory.size());
    Append<uint64_t>(&file, directory_offset);
    file += "PK\x06\x07";
    Append<uint32_t>(&file, 0);
    Append<uint64_t>(&file, record);
    Append<uint32_t>(&file, 1);
  }
  file += "PK\x05\x06";
  Append<uint32_t>(&file, 0);
  for (int i = 0; i < 2; ++i) Append(&file, zip64_end ? uint16_t{0xFFFF} : static_cast<uint16_t>(items.size()));
  Append(&file, zip64_end ? kIn64 : static_cast<uint32_t>(directory.size()));
  Append(&file, zip64_end ? kIn64 : static_cast<uint32_t>(directory_offset));
  Append<uint16_t>(&file, 0);
  return file;
}

}  // namespace ssl
