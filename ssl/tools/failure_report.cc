// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/failure_report.h"

#include <unistd.h>

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/host_name.h"
#include "ssl/config/node.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/engines/results_file.h"
#include "ssl/tools/exit_codes.h"

namespace ssl {
namespace {

void SetText(absl::string_view key, const std::string& value, ConfigNode* report) {
  if (!value.empty()) report->Set(key, ConfigNode::FromString(value));
}

void AddError(const absl::Status& error, ConfigNode* report) {
  report->Set("code", ConfigNode::FromString(absl::StatusCodeToString(error.code())));
  report->Set("message", ConfigNode::FromString(error.message()));
  report->Set("exit_code", ConfigNode::FromInt(ExitCodeOf(error)));
  int number = 0;
  if (absl::SimpleAtoi(DetailOf(error, kDetailErrno), &number)) {
    report->Set("errno", ConfigNode::FromInt(number));
    report->Set("errno_text", ConfigNode::FromString(std::strerror(number)));
  }
  SetText("exception", DetailOf(error, kDetailException), report);
  SetText(kReportSilent, DetailOf(error, kDetailSilent), report);
}

void AddProgress(const RunProgress& progress, const std::string& checkpoints, ConfigNode* report) {
  report->Set("phase", ConfigNode::FromString(progress.phase));
  report->Set("step", ConfigNode::FromInt(progress.iteration));
  report->Set("epoch", ConfigNode::FromInt(progress.epoch));
  SetText("hook", progress.failing_hook, report);
  SetText("event", progress.failing_event, report);
  if (progress.last_checkpoint < 0) return;
  const std::string directory = absl::StrCat(checkpoints, "/step_", progress.last_checkpoint);
  report->SetPath("last_checkpoint.directory", ConfigNode::FromString(directory));
  report->SetPath("last_checkpoint.step", ConfigNode::FromInt(progress.last_checkpoint));
}

void AddSource(const FailureSource& source, const RunProgress& progress, ConfigNode* report) {
  report->Set("engine", ConfigNode::FromString(source.engine));
  report->Set("rank", ConfigNode::FromInt(progress.rank));
  report->Set("world_size", ConfigNode::FromInt(source.world_size));
  report->Set("pid", ConfigNode::FromInt(getpid()));
  report->Set("host", ConfigNode::FromString(HostName("unknown")));
}

}  // namespace

std::string FailureReport(const absl::Status& error, const FailureSource& source, const RunProgress& progress) {
  const absl::Time now = absl::Now();
  ConfigNode report = ConfigNode::Map();
  AddError(error, &report);
  report.Set("time", ConfigNode::FromString(absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())));
  report.Set("unix_time", ConfigNode::FromInt(absl::ToUnixSeconds(now)));
  AddProgress(progress, source.checkpoints, &report);
  AddSource(source, progress, &report);
  return ToJson(report);
}

std::string KnownFields(const FailureSource& source, const RunProgress& progress) {
  ConfigNode fields = ConfigNode::Map();
  AddSource(source, progress, &fields);
  const std::string json = ToJson(fields);
  return std::string(absl::StripSuffix(absl::StripPrefix(json, "{\n  "), "\n}\n"));
}

}  // namespace ssl
