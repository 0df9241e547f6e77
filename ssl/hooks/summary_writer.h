// SPDX-License-Identifier: Apache-2.0
//
// The writer of TensorBoard files that a hook's options may add to the configured sinks: United Perception's keys
// `summary_writer` and `logdir`. It gets every report of the run. Several hooks that name one folder share a writer.
#ifndef SSL_HOOKS_SUMMARY_WRITER_H_
#define SSL_HOOKS_SUMMARY_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"

namespace ssl {

// The two keys, for the options of a hook.
struct SummaryWriterKeys {
  std::string summary_writer;  // "": none
  std::string logdir = "log";

  void VisitFields(FieldVisitor& visitor);
  // The files, for ComponentOptions::leaves and Hook::Plan.
  std::string files() const { return logdir + "/events.out.tfevents.*"; }
};

// Makes a sink for a run that starts with `first_iteration` updates done.
using MakeSummaryWriter = std::function<std::unique_ptr<MetricSink>(int64_t first_iteration)>;

// Null for no writer, and for a run without files. InvalidArgument, with the place in `params`, for another writer than
// tensorboard, or a folder that is not inside the run's (folder_in_run.h).
absl::StatusOr<MakeSummaryWriter> SummaryWriterFor(const SummaryWriterKeys& keys, const ConfigNode& params,
                                                   const BuildContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_SUMMARY_WRITER_H_
