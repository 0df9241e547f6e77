// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/unexpanded_text.h"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

struct Reference {
  absl::string_view text;      // as it stands: "~", "~name", "$HOME", "${oc.env:HOME}"; "" for none
  absl::string_view variable;  // "HOME"; "" for ~name
};

size_t NameLength(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() && (absl::ascii_isalnum(text[length]) || text[length] == '_')) ++length;
  return length;
}

// "HOME" of "HOME", "HOME:-/tmp", "oc.env:HOME", "oc.env:HOME,/tmp".
absl::string_view VariableOf(absl::string_view braces) {
  for (const absl::string_view resolver : {"oc.env:", "env:"}) absl::ConsumePrefix(&braces, resolver);
  return braces.substr(0, NameLength(braces));
}

// A ~ alone may be what a list of paths has for a beginning (REMOVE_IMG_PATH_PREFIX).
Reference FindReference(absl::string_view path) {
  const size_t slash = path.find('/');
  if (absl::StartsWith(path, "~") && slash == 1 + NameLength(path.substr(1))) {
    return {path.substr(0, slash), slash == 1 ? "HOME" : ""};
  }
  for (size_t at = path.find('$'); at != absl::string_view::npos; at = path.find('$', at + 1)) {
    const absl::string_view rest = path.substr(at + 1);
    const size_t end = rest.find('}');
    if (absl::StartsWith(rest, "{") && end != absl::string_view::npos) {
      return {path.substr(at, end + 2), VariableOf(rest.substr(1, end - 1))};
    }
    const bool is_name = !rest.empty() && (absl::ascii_isalpha(rest[0]) || rest[0] == '_');
    if (is_name) return {path.substr(at, 1 + NameLength(rest)), rest.substr(0, NameLength(rest))};
  }
  return {};
}

}  // namespace

std::string UnexpandedIn(absl::string_view path) {
  const Reference found = FindReference(path);
  std::error_code error;
  if (found.text.empty() || std::filesystem::exists(std::string(path), error)) return "";
  const char* home = std::getenv("HOME");
  // The values of other variables may be secrets, and whoever wrote the file a stranger.
  std::string expected = "the whole path";
  if (found.variable == "HOME" && home != nullptr) {
    const size_t at = found.text.data() - path.data();
    expected = absl::StrCat(path.substr(0, at), home, path.substr(at + found.text.size()));
  } else if (!found.variable.empty()) {
    expected = absl::StrCat("the value of ", found.variable, " in its place");
  }
  const char* where = absl::StartsWith(found.text, "~") ? "at the beginning of a word" : "outside of single quotes";
  return absl::StrCat("is '", path, "', in which nothing replaces ", found.text, " (a shell does, ", where,
                      " alone); expected ", expected);
}

void FindUnexpanded(const ConfigNode& node, const std::string& path, std::vector<ConfigProblem>* problems) {
  for (const auto& [key, value] : node.entries()) FindUnexpanded(value, JoinPath(path, key), problems);
  for (size_t i = 0; i < node.items().size(); ++i) {
    FindUnexpanded(node.items()[i], JoinPath(path, absl::StrCat(i)), problems);
  }
  if (!node.is_scalar() || node.location().file.empty()) return;
  const std::string problem = UnexpandedIn(node.text());
  if (!problem.empty()) problems->push_back({node.location(), absl::StrCat(path, " ", problem)});
}

}  // namespace ssl
