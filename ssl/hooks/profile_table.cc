// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/profile_table.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"

namespace ssl {
namespace {

using Kind = ProfiledEvent::Kind;

constexpr size_t kRows = 10;
constexpr double kNanosecondsPerMs = 1e6;

struct Row {
  double ms = 0.0;
  int64_t count = 0;
};

double Milliseconds(const ProfiledEvent& event) {
  return static_cast<double>(event.end_ns - event.begin_ns) / kNanosecondsPerMs;
}

std::map<std::string, Row> RowsOfKernels(const std::vector<ProfiledEvent>& events) {
  std::map<std::string, Row> rows;
  for (const ProfiledEvent& event : events) {
    if (event.kind != Kind::kKernel) continue;
    Row& row = rows[event.name];
    row.ms += Milliseconds(event);
    ++row.count;
  }
  return rows;
}

std::map<std::string, Row> RowsOfOperators(const std::vector<ProfiledEvent>& events) {
  std::vector<const ProfiledEvent*> ordered;
  for (const ProfiledEvent& event : events) {
    if (event.kind != Kind::kKernel) ordered.push_back(&event);
  }
  // Each behind the one that it lies in.
  std::stable_sort(ordered.begin(), ordered.end(), [](const ProfiledEvent* a, const ProfiledEvent* b) {
    return std::make_tuple(a->thread, a->begin_ns, b->end_ns) < std::make_tuple(b->thread, b->begin_ns, a->end_ns);
  });
  std::map<std::string, Row> rows;
  std::vector<const ProfiledEvent*> open;  // one within the other
  for (const ProfiledEvent* event : ordered) {
    while (!open.empty() && (open.back()->thread != event->thread || open.back()->end_ns < event->end_ns)) {
      open.pop_back();
    }
    if (!open.empty() && open.back()->kind == Kind::kOperator) rows[open.back()->name].ms -= Milliseconds(*event);
    open.push_back(event);
    if (event->kind != Kind::kOperator) continue;
    Row& row = rows[event->name];
    row.ms += Milliseconds(*event);
    ++row.count;
  }
  return rows;
}

}  // namespace

std::string ProfileTable(const std::vector<ProfiledEvent>& events) {
  std::map<std::string, Row> rows = RowsOfKernels(events);
  const bool has_kernels = !rows.empty();
  if (!has_kernels) rows = RowsOfOperators(events);
  if (rows.empty()) return "";
  double all_ms = 0.0;
  for (const auto& [name, row] : rows) all_ms += row.ms;
  std::vector<std::pair<std::string, Row>> ordered(rows.begin(), rows.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  ordered.resize(std::min(ordered.size(), kRows));
  std::string table = absl::StrFormat("most of %.1f ms of all %s:\n   share         ms    calls  name\n", all_ms,
                                      has_kernels ? "kernels and copies" : "operators");
  for (const auto& [name, row] : ordered) {
    const double share = all_ms > 0.0 ? 100.0 * row.ms / all_ms : 0.0;
    absl::StrAppendFormat(&table, "%6.1f %% %10.2f %8d  %.88s\n", share, row.ms, row.count, name);
  }
  return table;
}

}  // namespace ssl
