// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/node.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ssl {
namespace {

absl::Status NotA(const ConfigNode& node, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(), ": ", node.Describe(), " is not ", what));
}

// Removes each underscore that stands between two digits; false for one anywhere else.
bool StripUnderscores(absl::string_view text, std::string* digits) {
  digits->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits->push_back(text[i]);
      continue;
    }
    const bool between =
        i > 0 && i + 1 < text.size() && absl::ascii_isdigit(text[i - 1]) && absl::ascii_isdigit(text[i + 1]);
    if (!between) return false;
  }
  return true;
}

// A leading zero would be octal in YAML 1.1 and decimal in 1.2: neither is guessed.
bool IsDecimalInteger(absl::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         (text.size() == 1 || text[0] != '0');
}

// Keeps "inf", "nan", "0x1p3" and blanks away from the number parser.
bool HasOnlyNumberCharacters(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789+-.eE") == absl::string_view::npos;
}

bool ParseIndex(absl::string_view part, size_t size, size_t* index) {
  return !part.empty() && absl::ascii_isdigit(part[0]) && absl::SimpleAtoi(part, index) && *index < size;
}

// The beginning of a long text, cut between two characters of UTF-8.
std::string Shorten(const std::string& text) {
  constexpr size_t kMaxBytes = 200;
  if (text.size() <= kMaxBytes) return text;
  size_t end = kMaxBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

template <class T>
ConfigNode ListOf(const std::vector<T>& values, ConfigNode (*make)(T)) {
  ConfigNode list = ConfigNode::List();
  for (const T& value : values) list.Append(make(value));
  return list;
}

}  // namespace

std::string SourceLocation::ToString() const {
  if (file.empty()) return "built in";
  return line > 0 ? absl::StrCat(file, ":", line) : file;
}

std::string JoinPath(absl::string_view path, absl::string_view key) {
  return path.empty() ? std::string(key) : absl::StrCat(path, ".", key);
}

ConfigNode ConfigNode::Null(SourceLocation location) {
  ConfigNode node;
  node.location_ = std::move(location);
  return node;
}

ConfigNode ConfigNode::Scalar(std::string text, bool quoted, SourceLocation location) {
  ConfigNode node = Null(std::move(location));
  node.kind_ = Kind::kScalar;
  node.text_ = std::move(text);
  node.quoted_ = quoted;
  return node;
}

ConfigNode ConfigNode::List(SourceLocation location) {
  ConfigNode node = Null(std::move(location));
  node.kind_ = Kind::kList;
  return node;
}

ConfigNode ConfigNode::Map(SourceLocation location) {
  ConfigNode node = Null(std::move(location));
  node.kind_ = Kind::kMap;
  return node;
}

ConfigNode ConfigNode::FromInt(int64_t value) { return Scalar(absl::StrCat(value)); }

ConfigNode ConfigNode::FromDouble(double value) {
  char buffer[32];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end.ptr);
  // YAML 1.1 readers take a number for a float only when it has a point: 1e-05 would reach
  // Python as a string and 2 as an int.
  if (text.find('.') == std::string::npos) {
    text.insert(std::min(text.find('e'), text.size()), ".0");
  }
  return Scalar(std::move(text));
}

ConfigNode ConfigNode::FromBool(bool value) { return Scalar(value ? "true" : "false"); }

ConfigNode ConfigNode::FromString(absl::string_view value) { return Scalar(std::string(value), /*quoted=*/true); }

ConfigNode ConfigNode::FromInts(const std::vector<int64_t>& values) {
  return ListOf<int64_t>(values, [](int64_t value) { return FromInt(value); });
}

ConfigNode ConfigNode::FromDoubles(const std::vector<double>& values) {
  return ListOf<double>(values, [](double value) { return FromDouble(value); });
}

ConfigNode ConfigNode::FromStrings(const std::vector<std::string>& values) {
  return ListOf<std::string>(values, [](std::string value) { return FromString(value); });
}

void ConfigNode::Relocate(const SourceLocation& location) {
  location_ = location;
  for (ConfigNode& item : items_) item.Relocate(location);
  for (Entry& entry : entries_) entry.second.Relocate(location);
}

const ConfigNode* ConfigNode::Find(absl::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

ConfigNode* ConfigNode::FindMutable(absl::string_view key) { return const_cast<ConfigNode*>(Find(key)); }

const ConfigNode* ConfigNode::FindPath(absl::string_view path) const {
  if (path.empty()) return this;
  const ConfigNode* node = this;
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    size_t index = 0;
    if (node->is_list() && ParseIndex(part, node->items_.size(), &index)) {
      node = &node->items_[index];
    } else {
      node = node->Find(part);
    }
    if (node == nullptr) return nullptr;
  }
  return node;
}

const ConfigNode& ConfigNode::Section(absl::string_view path) const {
  static const auto* const empty = new ConfigNode(Map());
  const ConfigNode* node = FindPath(path);
  return node != nullptr && node->is_map() ? *node : *empty;
}

void ConfigNode::Set(absl::string_view key, ConfigNode node) { *MutableChild(key) = std::move(node); }

void ConfigNode::Append(ConfigNode node) {
  if (!is_list()) *this = List(std::move(location_));
  items_.push_back(std::move(node));
}

void ConfigNode::SetPath(absl::string_view path, ConfigNode node) {
  ConfigNode* place = this;
  if (!path.empty()) {
    for (absl::string_view part : absl::StrSplit(path, '.')) place = place->MutableChild(part);
  }
  *place = std::move(node);
}

ConfigNode* ConfigNode::MutableChild(absl::string_view part) {
  size_t index = 0;
  if (is_list() && ParseIndex(part, items_.size(), &index)) return &items_[index];
  if (!is_map()) {
    const bool free_form = free_form_;
    *this = Map(std::move(location_));
    free_form_ = free_form;
  }
  if (ConfigNode* found = FindMutable(part)) return found;
  entries_.emplace_back(std::string(part), ConfigNode());
  return &entries_.back().second;
}

absl::StatusOr<bool> ConfigNode::AsBool() const {
  if (is_scalar()) {
    for (absl::string_view name : {"true", "yes", "on"}) {
      if (absl::EqualsIgnoreCase(text_, name)) return true;
    }
    for (absl::string_view name : {"false", "no", "off"}) {
      if (absl::EqualsIgnoreCase(text_, name)) return false;
    }
  }
  return NotA(*this, "true or false");
}

absl::StatusOr<int64_t> ConfigNode::AsInt() const {
  std::string digits;
  int64_t value = 0;
  if (is_scalar() && StripUnderscores(text_, &digits) && IsDecimalInteger(digits) && absl::SimpleAtoi(digits, &value)) {
    return value;
  }
  return NotA(*this, "an integer");
}

absl::StatusOr<double> ConfigNode::AsDouble() const {
  std::string digits;
  double value = 0;
  if (is_scalar() && StripUnderscores(text_, &digits) && HasOnlyNumberCharacters(digits) &&
      absl::SimpleAtod(digits, &value) && std::isfinite(value)) {
    return value;
  }
  return NotA(*this, "a number");
}

absl::StatusOr<std::string> ConfigNode::AsString() const {
  if (is_scalar()) return text_;
  return NotA(*this, "a string");
}

std::string ConfigNode::Describe() const {
  switch (kind_) {
    case Kind::kNull:
      return "null";
    case Kind::kScalar:
      return absl::StrCat("'", Shorten(text_), "'");
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "";
}

bool operator==(const ConfigNode& left, const ConfigNode& right) {
  return left.kind_ == right.kind_ && left.text_ == right.text_ && left.items_ == right.items_ &&
         left.entries_ == right.entries_;
}

}  // namespace ssl
