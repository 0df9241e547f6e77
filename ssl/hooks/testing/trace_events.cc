// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/testing/trace_events.h"

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {

std::vector<Event> ReadTrace(const std::string& path) {
  const absl::StatusOr<std::string> text = PosixFileSystem().Read(path);
  EXPECT_OK(text);
  std::vector<Event> events;
  if (!text.ok()) return events;
  const nlohmann::json trace = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(trace.is_object()) << path << " is no JSON";
  if (!trace.is_object()) return events;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event.value("ph", "") != "X") continue;
    const double begin = event["ts"].get<double>();
    events.push_back({event.value("name", ""), begin, begin + event["dur"].get<double>(),
                      event["tid"].is_number() ? event["tid"].get<int64_t>() : 0});
  }
  return events;
}

std::set<std::string> NamesOf(const std::vector<Event>& events) {
  std::set<std::string> names;
  for (const Event& event : events) names.insert(event.name);
  return names;
}

std::vector<std::string> StepsOf(const std::vector<Event>& events) {
  std::set<std::string> steps;
  for (const Event& event : events) {
    if (absl::StartsWith(event.name, "ProfilerStep#")) steps.insert(event.name);
  }
  return {steps.begin(), steps.end()};
}

Event Find(const std::vector<Event>& events, const std::string& name) {
  for (const Event& event : events) {
    if (event.name == name) return event;
  }
  ADD_FAILURE() << "no event " << name;
  return {};
}

}  // namespace ssl
