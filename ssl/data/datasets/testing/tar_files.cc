// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/testing/tar_files.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ssl {
namespace {

constexpr size_t kBlock = 512;

}  // namespace

std::string TarHeader(const std::string& name, uint64_t size, char type) {
  std::string header(kBlock, '\0');
  const auto put = [&header](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, name);
  put(100, "0000644");
  put(124, absl::StrFormat("%011o", size));
  put(136, "00000000000");
  header[156] = type;
  put(257, std::string("ustar\0", 6) + "00");
  put(148, "        ");
  uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<uint8_t>(byte);
  put(148, absl::StrFormat("%06o", sum) + std::string("\0 ", 2));
  return header;
}

std::string TarMember(const std::string& name, absl::string_view content, char type) {
  const std::string padding((kBlock - content.size() % kBlock) % kBlock, '\0');
  return absl::StrCat(TarHeader(name, content.size(), type), content, padding);
}

std::string TarEnd() { return std::string(2 * kBlock, '\0'); }

}  // namespace ssl
