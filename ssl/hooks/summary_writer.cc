// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/summary_writer.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/folder_in_run.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/sinks/tensorboard_sink.h"
#include "ssl/io/output_folder.h"

namespace ssl {
namespace {

constexpr absl::string_view kTensorboard = "tensorboard";
constexpr absl::string_view kPavi = "pavi";

}  // namespace

void SummaryWriterKeys::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SUMMARY_WRITER", &summary_writer,
                Doc("tensorboard: event files in LOGDIR, beside the sinks; empty: none (ours)").MayChange());
  visitor.Field("LOGDIR", &logdir, Doc("directory inside the run's for SUMMARY_WRITER (ours)").MayChange());
}

absl::StatusOr<MakeSummaryWriter> SummaryWriterFor(const SummaryWriterKeys& keys, const ConfigNode& params,
                                                   const BuildContext& context) {
  if (keys.summary_writer == kPavi) {
    return absl::InvalidArgumentError(
        absl::StrCat(PlaceOf(params, "SUMMARY_WRITER", context),
                     " is 'pavi', a service inside the company that made United Perception, ",
                     "expected tensorboard, or '' for no writer"));
  }
  if (!keys.summary_writer.empty() && keys.summary_writer != kTensorboard) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(params, "SUMMARY_WRITER", context), " is '",
                                                   keys.summary_writer,
                                                   "', expected tensorboard, or '' for no writer"));
  }
  SSL_RETURN_IF_ERROR(CheckFolderInRun(params, "LOGDIR", keys.logdir, context));
  if (keys.summary_writer.empty() || context.run_directory.empty()) return MakeSummaryWriter();
  return [&file_system = context.file_system,
          folder = OutputFolder{context.run_directory, keys.logdir}](int64_t first_iteration) {
    return MakeTensorboardSink(file_system, folder, Clock::Real(), first_iteration);
  };
}

}  // namespace ssl
