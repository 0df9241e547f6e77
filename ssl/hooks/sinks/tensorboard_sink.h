// SPDX-License-Identifier: Apache-2.0
//
// Metric reports as a TensorBoard event file: scalars, histograms, and images as PNG files inside; step = iteration.
// One thread.
//
// Each process writes its own file, events.out.tfevents.<seconds>.<host>.<process>, opened at the first report. It
// begins with the mark of a session start, on which TensorBoard drops what an earlier, crashed process wrote for that
// step and later ones: the step after the checkpoint from which the run goes on. What was written for the step of the
// checkpoint itself stays, because most of it is not written again. What is, such as a test phase that comes after it,
// is left out where an earlier process has written the same: however often a finished run is started. What a file holds
// when a process dies is complete up to the last record.
#ifndef SSL_HOOKS_SINKS_TENSORBOARD_SINK_H_
#define SSL_HOOKS_SINKS_TENSORBOARD_SINK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/base/clock.h"
#include "ssl/config/fields.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"

namespace ssl {

// folder: made when missing. File system and clock (wall time of events) outlive the sink. first_iteration: updates
// that were done when this process started. Errors name the path.
std::unique_ptr<MetricSink> MakeTensorboardSink(FileSystem& file_system, OutputFolder folder, Clock& clock,
                                                int64_t first_iteration);

// The section HOOKS.TENSORBOARD_SETUP; files lie in <run directory>/tb_logs.
struct TensorboardSinkOptions : public OncePerRunOptions {
  bool use_tensorboard = false;

  absl::string_view section() const override { return "HOOKS.TENSORBOARD_SETUP"; }
  bool enabled() const override { return use_tensorboard; }
  std::vector<std::string> leaves() const override { return {"tb_logs/events.out.tfevents.*"}; }
  void VisitFields(FieldVisitor& visitor) override;
};

absl::Status RegisterTensorboardSink(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_SINKS_TENSORBOARD_SINK_H_
