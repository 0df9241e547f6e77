// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/sample_digest.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/utf8.h"

namespace ssl {
namespace {

constexpr int64_t kMostParts = 64;
constexpr absl::string_view kEndOfIdentity("\0", 1);  // no file has it in its name

bool HasIdentities(const BatchSource& source) {
  const int64_t samples = source.dataset_size();
  return samples > 0 && !(source.SampleIdentity(0).empty() && source.SampleIdentity(samples - 1).empty());
}

std::string ChecksumText(const SampleDigest::Part& part) {
  return absl::StrCat(absl::Hex(part.checksum, absl::kZeroPad8));
}

}  // namespace

uint32_t ChecksumOfSamples(const BatchSource& source, int64_t begin, int64_t end) {
  if (!HasIdentities(source)) return 0;
  uint32_t checksum = 0;
  for (int64_t index = begin; index < std::min(end, source.dataset_size()); ++index) {
    checksum = ExtendCrc32c(checksum, source.SampleIdentity(index));
    checksum = ExtendCrc32c(checksum, kEndOfIdentity);
  }
  return checksum;
}

SampleDigest DigestSamples(const BatchSource& source) {
  SampleDigest digest;
  if (!HasIdentities(source)) return digest;
  const int64_t samples = source.dataset_size();
  const int64_t count = std::min(kMostParts, samples);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = samples * i / count;
    const int64_t end = samples * (i + 1) / count;
    digest.parts.push_back(
        {ChecksumOfSamples(source, begin, end), source.SampleIdentity(begin), source.SampleIdentity(end - 1)});
  }
  return digest;
}

std::string SampleDigest::ToString() const {
  return absl::StrJoin(parts, " ", [](std::string* out, const Part& part) { out->append(ChecksumText(part)); });
}

std::string SampleDigest::FirstOther(const std::string& saved) const {
  const std::vector<std::string> before = absl::StrSplit(saved, ' ');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i < before.size() && before[i] == ChecksumText(parts[i])) continue;
    const std::string first = absl::StrCat("'", EscapeForMessage(parts[i].first), "'");
    const bool is_one = parts[i].first == parts[i].last;
    return is_one ? first : absl::StrCat(first, " to '", EscapeForMessage(parts[i].last), "'");
  }
  return "";
}

}  // namespace ssl
