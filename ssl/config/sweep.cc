// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/sweep.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/config/flow_text.h"

namespace ssl {
namespace {

// Whether a token that names a configuration has one file as its value, commas and all.
bool NamesOneFile(absl::string_view key, const std::string& value) {
  absl::ConsumePrefix(&key, "+");
  std::error_code error;
  return (key == "config=" || absl::StartsWith(key, "config/")) && std::filesystem::is_regular_file(value, error);
}

// The tokens that `token` stands for: itself alone, unless its value has several choices.
std::vector<std::string> Alternatives(const std::string& token) {
  const size_t sign = token.find('=');
  if (sign == std::string::npos) return {token};
  const absl::string_view key = absl::string_view(token).substr(0, sign + 1);
  const std::vector<absl::string_view> choices = SplitTopLevel(absl::string_view(token).substr(sign + 1), ',');
  if (choices.size() == 1 || NamesOneFile(key, token.substr(sign + 1))) return {token};
  std::vector<std::string> alternatives;
  for (absl::string_view choice : choices) {
    alternatives.push_back(choice.empty() ? "" : absl::StrCat(key, choice));
  }
  return alternatives;
}

bool HasEmptyChoice(const std::vector<std::string>& alternatives) {
  return alternatives.size() > 1 && std::find(alternatives.begin(), alternatives.end(), "") != alternatives.end();
}

// The run of the given number: its digits, the last token's the lowest, choose the alternatives.
SweepRun MakeRun(const std::vector<std::vector<std::string>>& tokens, size_t number) {
  SweepRun run;
  for (auto alternatives = tokens.rbegin(); alternatives != tokens.rend(); ++alternatives) {
    const std::string& chosen = (*alternatives)[number % alternatives->size()];
    number /= alternatives->size();
    run.tokens.push_back(chosen);
    if (alternatives->size() > 1) run.choices.push_back(chosen);
  }
  std::reverse(run.tokens.begin(), run.tokens.end());
  std::reverse(run.choices.begin(), run.choices.end());
  return run;
}

}  // namespace

absl::StatusOr<std::vector<SweepRun>> ExpandSweep(const std::vector<std::string>& tokens) {
  std::vector<std::vector<std::string>> alternatives;
  std::vector<std::string> problems;
  size_t run_count = 1;
  for (const std::string& token : tokens) {
    alternatives.push_back(Alternatives(token));
    if (HasEmptyChoice(alternatives.back())) {
      problems.push_back(
          absl::StrCat("command line: '", token, "' has an empty choice, expected KEY=A,B or quotes around a comma"));
    }
    // Stays far from overflow: a token's choices are fewer than its bytes, and counting ends beyond the limit.
    if (run_count <= kMaxSweepRuns) run_count *= alternatives.back().size();
  }
  if (run_count > kMaxSweepRuns) {
    problems.push_back(
        absl::StrCat("command line: the choices make ", run_count, " runs or more, expected at most ", kMaxSweepRuns));
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  std::vector<SweepRun> runs;
  for (size_t i = 0; i < run_count; ++i) runs.push_back(MakeRun(alternatives, i));
  return runs;
}

}  // namespace ssl
