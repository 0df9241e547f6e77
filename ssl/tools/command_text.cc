// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/command_text.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/utf8.h"

namespace ssl {
namespace {

bool IsPlain(unsigned char byte) {
  return absl::ascii_isalnum(byte) ||
         absl::string_view("_-+=.,:/@%").find(static_cast<char>(byte)) != std::string::npos;
}

std::string Quoted(const std::string& argument) {
  const std::string text = EscapeForMessage(argument);
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsPlain)) return text;
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string CommandText(const std::vector<std::string>& arguments) {
  return absl::StrJoin(arguments, " ",
                       [](std::string* text, const std::string& argument) { text->append(Quoted(argument)); });
}

std::string CommandOfThisProcess() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.empty()) return "";
  return CommandText(absl::StrSplit(absl::StripSuffix(bytes, absl::string_view("\0", 1)), '\0'));
}

}  // namespace ssl
