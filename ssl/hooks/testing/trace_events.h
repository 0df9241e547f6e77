// SPDX-License-Identifier: Apache-2.0
//
// Chrome traces (ssl/hooks/profiler_hook.h) as tests read them.
#ifndef SSL_HOOKS_TESTING_TRACE_EVENTS_H_
#define SSL_HOOKS_TESTING_TRACE_EVENTS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace ssl {

struct Event {
  std::string name;
  double begin = 0.0;
  double end = 0.0;
  int64_t thread = 0;
};

// The events of a trace that have a duration.
std::vector<Event> ReadTrace(const std::string& path);

std::set<std::string> NamesOf(const std::vector<Event>& events);

// The names of the updates, each once, in the order of letters.
std::vector<std::string> StepsOf(const std::vector<Event>& events);

// The first of that name; its lack is a failure of the test.
Event Find(const std::vector<Event>& events, const std::string& name);

}  // namespace ssl

#endif  // SSL_HOOKS_TESTING_TRACE_EVENTS_H_
