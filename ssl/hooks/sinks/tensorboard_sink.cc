// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/tensorboard_sink.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "ssl/base/host_name.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/folder_in_run.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/sinks/event_encoding.h"

namespace ssl {
namespace {

constexpr char kPrefix[] = "events.out.tfevents.";

class TensorboardSink : public MetricSink {
 public:
  // A run from its beginning writes what it reports before the first update, too.
  TensorboardSink(FileSystem& file_system, OutputFolder folder, Clock& clock, int64_t first_iteration)
      : file_system_(file_system),
        folder_(std::move(folder)),
        clock_(clock),
        first_iteration_(first_iteration),
        session_start_(first_iteration > 0 ? first_iteration + 1 : 0) {}

  absl::Status Write(const MetricReport& report) override {
    const double now = absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch());
    SSL_ASSIGN_OR_RETURN(const std::string event, EncodeReport(now, report));
    if (IsWritten(report, event)) return absl::OkStatus();
    if (file_ == nullptr) SSL_RETURN_IF_ERROR(Open(now));
    absl::Status status = file_->Append(EncodeRecord(event));
    // Half a record hides all that follow it: the next report starts a new file.
    if (!status.ok()) file_.reset();
    return status;
  }

  absl::Status Flush() override { return file_ == nullptr ? absl::OkStatus() : file_->Sync(); }
  std::string place() const override {
    // The slash: a user's `log/` is `log`.
    return absl::StrCat("tensorboard:", std::filesystem::path(folder_.path() + "/").lexically_normal().string());
  }

 private:
  // By an earlier process, for the step that this one goes on from.
  bool IsWritten(const MetricReport& report, absl::string_view event) const {
    if (first_iteration_ == 0 || report.iteration != first_iteration_) return false;
    const absl::string_view what = event.substr(kWallTimeBytes);
    const std::vector<std::string> names = file_system_.List(folder_.path()).value_or(std::vector<std::string>());
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      if (!absl::StartsWith(name, kPrefix)) return false;
      return absl::StrContains(file_system_.Read(absl::StrCat(folder_.path(), "/", name)).value_or(""), what);
    });
  }

  absl::Status Open(double now) {
    SSL_RETURN_IF_ERROR(CreateOutputFolder(folder_, file_system_));
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system_.Create(FreePath(now)));
    // A second file of this process, after a failed write, must not hide the first one.
    const std::string mark = is_marked_ ? "" : EncodeRecord(EncodeSessionStart(now, session_start_));
    SSL_RETURN_IF_ERROR(file->Append(absl::StrCat(EncodeRecord(EncodeFileVersion(now)), mark)));
    SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(folder_.path()));
    if (!is_marked_) SSL_LOG(INFO) << "curves: tensorboard --logdir " << folder_.path();
    file_ = std::move(file);
    is_marked_ = true;
    return absl::OkStatus();
  }

  // Readers take files in the order of their names: ten digits of seconds come first.
  std::string FreePath(double now) const {
    const std::string path =
        absl::StrCat(folder_.path(), "/", kPrefix, absl::StrFormat("%010d", static_cast<int64_t>(now)), ".",
                     HostName("localhost"), ".", getpid());
    std::string candidate = path;
    for (int count = 1; file_system_.Exists(candidate); ++count) candidate = absl::StrCat(path, ".", count);
    return candidate;
  }

  FileSystem& file_system_;
  const OutputFolder folder_;
  Clock& clock_;
  const int64_t first_iteration_;
  const int64_t session_start_;
  bool is_marked_ = false;
  std::unique_ptr<WritableFile> file_;  // null before the first report
};

absl::StatusOr<std::unique_ptr<MetricSink>> MakeTensorboard(const TensorboardSinkOptions& options,
                                                            const ConfigNode& params, const BuildContext& context) {
  const std::string place = PlaceOf(params, "USE_TENSORBOARD", context);
  SSL_ASSIGN_OR_RETURN(OutputFolder folder, FolderInRun(context, place + ": metric sink 'tensorboard'", "tb_logs"));
  return MakeTensorboardSink(context.file_system, std::move(folder), Clock::Real(), context.first_iteration);
}

}  // namespace

std::unique_ptr<MetricSink> MakeTensorboardSink(FileSystem& file_system, OutputFolder folder, Clock& clock,
                                                int64_t first_iteration) {
  return std::make_unique<TensorboardSink>(file_system, std::move(folder), clock, first_iteration);
}

void TensorboardSinkOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("USE_TENSORBOARD", &use_tensorboard,
                Doc("write TensorBoard events to <run directory>/tb_logs").MayChange());
}

absl::Status RegisterTensorboardSink(Registries* registries) {
  return RegisterSink(registries, {"tensorboard", "metric reports as TensorBoard events"}, &MakeTensorboard);
}

}  // namespace ssl
