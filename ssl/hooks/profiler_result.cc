// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/profiler_result.h"

#include <kineto/ActivityType.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/hooks/profile_table.h"
#include "ssl/io/file_system.h"
#include "ssl/io/temporary_directory.h"

namespace ssl {
namespace {

namespace profiler = torch::autograd::profiler;

constexpr char kTrace[] = "trace";  // in the name of the temporary directory

}  // namespace

// What was recorded, in the format of Chrome. The recorder writes a file by itself: past the program's FileSystem and
// through links, so that it gets a place where nobody else can have left anything. It tells nobody when it fails: what
// it has written is looked at.
absl::StatusOr<std::string> TraceOf(profiler::ProfilerResult& result) {
  const absl::StatusOr<std::unique_ptr<TemporaryDirectory>> directory = TemporaryDirectory::Make(kTrace);
  // It was there at the start: what is wrong is the machine, and not what anybody has asked for.
  if (!directory.ok()) return absl::ResourceExhaustedError(directory.status().message());
  const std::string path = absl::StrCat((*directory)->path(), "/trace.json");
  result.save(path);
  absl::StatusOr<std::string> trace = PosixFileSystem().Read(path);
  if (trace.ok() && absl::EndsWith(absl::StripTrailingAsciiWhitespace(*trace), "}")) return trace;
  // Nothing that was there is lost: it is the place that has to change.
  return absl::ResourceExhaustedError(absl::StrCat(
      path,
      ": LibTorch has not written its trace, or not all of it; is there room on the disk? TMPDIR names another "
      "place"));
}

absl::Status CheckWayOfTraces() { return TemporaryDirectory::Make(kTrace).status(); }

std::string TableOf(const profiler::ProfilerResult& result) {
  std::vector<ProfiledEvent> events;
  for (const profiler::KinetoEvent& event : result.events()) {
    if (event.endNs() < event.startNs()) continue;  // it had not ended
    // Our ranges stand on the device as well, around their kernels.
    if (event.activityType() == static_cast<uint8_t>(libkineto::ActivityType::GPU_USER_ANNOTATION)) continue;
    const bool is_range = event.activityType() == static_cast<uint8_t>(libkineto::ActivityType::USER_ANNOTATION);
    const auto kind = event.deviceType() != c10::DeviceType::CPU ? ProfiledEvent::Kind::kKernel
                      : is_range                                 ? ProfiledEvent::Kind::kRange
                                                                 : ProfiledEvent::Kind::kOperator;
    events.push_back({event.name(), kind, event.startThreadId(), event.startNs(), event.endNs()});
  }
  return ProfileTable(events);
}

}  // namespace ssl
