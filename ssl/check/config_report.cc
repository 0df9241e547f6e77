// SPDX-License-Identifier: Apache-2.0
//
// What a report comes to, and its text.
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "ssl/check/check_config.h"
#include "ssl/check/tokens_for_here.h"

namespace ssl {
namespace {

void AppendLines(absl::string_view title, const std::vector<std::string>& lines, std::string* text) {
  if (lines.empty()) return;
  absl::StrAppend(text, title, "\n  ", absl::StrJoin(lines, "\n  "), "\n");
}

std::string SummaryOf(const ConfigReport& report) {
  if (!report.mistakes.empty()) {
    const size_t count = report.mistakes.size();
    return absl::StrCat(count, count == 1 ? " mistake" : " mistakes");
  }
  if (!report.damaged_data.empty()) return "right, but the data are damaged";
  if (report.is_fragment) return absl::StrCat("right as a part of a configuration: ", report.fragment_reason);
  return VerdictOf(report) == ConfigVerdict::kRuns ? "would run here" : "right, but cannot run here";
}

}  // namespace

ConfigVerdict VerdictOf(const ConfigReport& report) {
  if (!report.mistakes.empty()) return ConfigVerdict::kMistakes;
  if (!report.damaged_data.empty()) return ConfigVerdict::kDamagedData;
  const bool is_complete = report.missing_components.empty() && report.missing_device.empty() &&
                           report.missing_nodes.empty() && !report.is_fragment;
  return is_complete ? ConfigVerdict::kRuns : ConfigVerdict::kIncomplete;
}

bool LacksDeviceAlone(const ConfigReport& report) {
  return VerdictOf(report) == ConfigVerdict::kIncomplete && report.missing_components.empty() &&
         report.missing_nodes.empty() && !report.is_fragment;
}

std::string FormatReport(const ConfigReport& report) {
  std::string text;
  AppendLines("mistakes:", report.mistakes, &text);
  AppendLines("damaged data:", report.damaged_data, &text);
  std::vector<std::string> missing = report.missing_components;
  for (const std::string& line : {report.missing_device, report.missing_nodes}) {
    if (!line.empty()) missing.push_back(line);
  }
  AppendLines("not available here:", missing, &text);
  AppendLines("warnings:", report.warnings, &text);
  if (!report.tokens_for_here.empty()) {
    AppendLines("to run it here, add:", {ForShell(report.tokens_for_here)}, &text);
  }
  absl::StrAppend(&text, SummaryOf(report), "\n");
  return text;
}

}  // namespace ssl
