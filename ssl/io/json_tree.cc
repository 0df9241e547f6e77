// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/json_tree.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace ssl {
namespace {

using Json = nlohmann::json;

// Puts each value where its container waits for it. The containers that are open form a path from the root; a pointer
// to one stays good, because only the last one grows.
class TreeReader : public nlohmann::json_sax<Json> {
 public:
  JsonTree root;
  absl::Status status;

  bool null() override { return Add(JsonTree()) != nullptr; }
  bool boolean(bool value) override { return Add(JsonTree(value)) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return Add(JsonTree(uint64_t{value})) != nullptr; }
  bool number_integer(number_integer_t value) override { return Add(JsonTree(static_cast<double>(value))) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return Add(JsonTree(double{value})) != nullptr; }
  bool string(string_t& value) override { return Add(JsonTree(std::move(value))) != nullptr; }
  bool binary(binary_t&) override { return Fail("holds binary data"); }
  bool start_object(size_t) override { return Open(JsonTree(JsonTree::Object())); }
  bool start_array(size_t) override { return Open(JsonTree(JsonTree::List())); }

  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }

  bool end_object() override {
    std::vector<absl::string_view> names;
    for (const auto& [name, value] : open_.back()->object) names.push_back(name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return Fail(absl::StrCat("key '", *twice, "' occurs twice"));
    return end_array();
  }

  bool end_array() override {
    open_.pop_back();
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const absl::string_view text = error.what();
    return Fail(absl::StripLeadingAsciiWhitespace(text.substr(text.find(']') + 1)));
  }

 private:
  // Null after an error.
  JsonTree* Add(JsonTree tree) {
    if (++values_ > kMaxJsonValues) {
      Fail(absl::StrCat("has more than ", kMaxJsonValues, " values"));
      return nullptr;
    }
    if (open_.empty()) {
      root = std::move(tree);
      return &root;
    }
    JsonTree& container = *open_.back();
    if (container.kind == JsonTree::Kind::kList) return &container.list.emplace_back(std::move(tree));
    return &container.object.emplace_back(std::move(key_), std::move(tree)).second;
  }

  bool Open(JsonTree container) {
    if (open_.size() == kMaxJsonDepth) return Fail(absl::StrCat("is deeper than ", kMaxJsonDepth, " levels"));
    JsonTree* const added = Add(std::move(container));
    if (added == nullptr) return false;
    open_.push_back(added);
    return true;
  }

  bool Fail(absl::string_view problem) {
    status = absl::InvalidArgumentError(problem);
    return false;
  }

  std::vector<JsonTree*> open_;
  std::string key_;
  int64_t values_ = 0;
};

std::string Quote(const std::string& text) {
  // Made as a string: a null that becomes one is left half-made when memory runs out in it.
  Json json(Json::value_t::string);
  json.get_ref<std::string&>() = text;
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// Members between brackets, each on its line.
template <class Members, class WriteMember>
void WriteContainer(const Members& members, absl::string_view brackets, int level, const WriteMember& write,
                    std::string* text) {
  text->push_back(brackets[0]);
  const char* separator = "\n";
  for (const auto& member : members) {
    absl::StrAppend(text, separator, std::string(level + 1, ' '));
    write(member);
    separator = ",\n";
  }
  if (!members.empty()) absl::StrAppend(text, "\n", std::string(level, ' '));
  text->push_back(brackets[1]);
}

void Write(const JsonTree& tree, int level, std::string* text) {
  switch (tree.kind) {
    case JsonTree::Kind::kNull:
      return absl::StrAppend(text, "null");
    case JsonTree::Kind::kBool:
      return absl::StrAppend(text, tree.boolean ? "true" : "false");
    case JsonTree::Kind::kCount:
      return absl::StrAppend(text, tree.count);
    case JsonTree::Kind::kNumber:
      return absl::StrAppend(text, Json(tree.number).dump());  // null for what is not finite
    case JsonTree::Kind::kString:
      return absl::StrAppend(text, Quote(tree.text));
    case JsonTree::Kind::kList:
      return WriteContainer(
          tree.list, "[]", level, [&](const auto& item) { Write(item, level + 1, text); }, text);
    case JsonTree::Kind::kObject:
      break;
  }
  const auto write = [&](const auto& member) {
    absl::StrAppend(text, Quote(member.first), ": ");
    Write(member.second, level + 1, text);
  };
  WriteContainer(tree.object, "{}", level, write, text);
}

}  // namespace

const JsonTree* JsonTree::Find(absl::string_view key) const {
  const auto member = std::find_if(object.begin(), object.end(), [key](const auto& each) { return each.first == key; });
  return member == object.end() ? nullptr : &member->second;
}

absl::StatusOr<JsonTree> ParseJson(absl::string_view text) {
  TreeReader reader;
  if (Json::sax_parse(text.begin(), text.end(), &reader)) return std::move(reader.root);
  return reader.status;
}

std::string WriteJson(const JsonTree& tree) {
  std::string text;
  Write(tree, 0, &text);
  text.push_back('\n');
  return text;
}

}  // namespace ssl
