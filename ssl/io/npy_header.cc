// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/npy_header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kVersionBytes = 2;
constexpr size_t kHeaderAlignment = 64;
constexpr size_t kMaxQuotedBytes = 60;

// Reads the one Python literal that NumPy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text), rest_(text) {}

  absl::StatusOr<NpyHeader> Parse() {
    NpyHeader header;
    int keys = 0;
    if (!Take("{")) return Malformed();
    for (; !Take("}"); ++keys) {
      std::string key;
      if (!TakeString(&key) || !Take(":")) return Malformed();
      if (key == "descr" && (Peek('[') || Peek('('))) {
        return absl::UnimplementedError("a structured array, expected one of numbers or strings");
      }
      const bool known = (key == "descr" && TakeString(&header.descr)) ||
                         (key == "fortran_order" && TakeBool(&header.fortran_order)) ||
                         (key == "shape" && TakeShape(&header.shape));
      if (!known) return Malformed();
      if (!Take(",") && !Peek('}')) return Malformed();
    }
    if (keys != 3 || !absl::StripAsciiWhitespace(rest_).empty()) return Malformed();
    return header;
  }

 private:
  absl::Status Malformed() const {
    return absl::DataLossError(absl::StrCat("header is ", QuoteNpyText(text_),
                                            ", expected {'descr': ..., 'fortran_order': ..., 'shape': (...), }"));
  }

  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  bool Peek(char symbol) {
    SkipSpace();
    return !rest_.empty() && rest_[0] == symbol;
  }

  bool Take(absl::string_view symbol) {
    SkipSpace();
    return absl::ConsumePrefix(&rest_, symbol);
  }

  bool TakeString(std::string* text) {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return false;
    *text = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool TakeBool(bool* value) {
    *value = Take("True");
    return *value || Take("False");
  }

  bool TakeShape(std::vector<int64_t>* shape) {
    if (!Take("(")) return false;
    while (!Take(")")) {
      SkipSpace();
      const size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      int64_t size = 0;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &size) || shape->size() == kMaxNpyRank) return false;
      rest_.remove_prefix(digits);
      shape->push_back(size);
      if (!Take(",") && !Peek(')')) return false;
    }
    return true;
  }

  const absl::string_view text_;
  absl::string_view rest_;
};

}  // namespace

absl::StatusOr<NpyHeader> TakeNpyHeader(absl::string_view* bytes) {
  if (!absl::ConsumePrefix(bytes, kMagic) || bytes->size() < kVersionBytes) {
    return absl::DataLossError("is no .npy file: it does not begin with \\x93NUMPY and a version");
  }
  const int version = static_cast<uint8_t>((*bytes)[0]);
  if (version < 1 || version > 3) {
    return absl::UnimplementedError(absl::StrCat("format version is ", version, ", expected 1, 2 or 3"));
  }
  bytes->remove_prefix(kVersionBytes);
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes->size() < length_bytes) return absl::DataLossError("ends inside its header");
  uint32_t length = 0;
  std::memcpy(&length, bytes->data(), length_bytes);
  bytes->remove_prefix(length_bytes);
  if (length > kMaxNpyHeaderBytes || length > bytes->size()) {
    return absl::DataLossError(absl::StrCat("header claims ", length, " bytes, expected at most ",
                                            std::min(kMaxNpyHeaderBytes, bytes->size())));
  }
  const absl::string_view text = bytes->substr(0, length);
  bytes->remove_prefix(length);
  return HeaderParser(text).Parse();
}

std::string FormatNpyHeader(const NpyHeader& header) {
  std::string text =
      absl::StrCat("{'descr': '", header.descr, "', 'fortran_order': ", header.fortran_order ? "True" : "False",
                   ", 'shape': (", absl::StrJoin(header.shape, ", "), header.shape.size() == 1 ? ",), }" : "), }");
  const size_t before = kMagic.size() + kVersionBytes + 2;
  const size_t total = (before + text.size() + 1 + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  text.resize(total - before - 1, ' ');
  text.push_back('\n');
  const std::array<char, 4> version_and_length = {1, 0, static_cast<char>(text.size() & 0xFF),
                                                  static_cast<char>(text.size() >> 8)};
  return absl::StrCat(kMagic, absl::string_view(version_and_length.data(), version_and_length.size()), text);
}

std::string QuoteNpyText(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMaxQuotedBytes)),
                      text.size() > kMaxQuotedBytes ? "...'" : "'");
}

}  // namespace ssl
