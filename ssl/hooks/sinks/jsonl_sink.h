// SPDX-License-Identifier: Apache-2.0
//
// Metric reports as JSON lines, for scripts:
//
//   {"iteration":20,"epoch":0,"Speed/samples_per_sec":812.5,"Training/Loss":4.61}
//
// The file is a JsonLinesFile by iteration: what a resumed run does again is dropped, so iterations in the file never
// fall. NaN and infinity, which JSON lacks, are null. Metrics of the names "iteration" and "epoch" are left out.
// Histograms and images are left to other sinks, and a report that has nothing else makes no line. One thread.
#ifndef SSL_HOOKS_SINKS_JSONL_SINK_H_
#define SSL_HOOKS_SINKS_JSONL_SINK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/io/file_system.h"

namespace ssl {

// path: made with its directory when missing. The file system outlives the sink. Every line reaches the operating
// system at once; Flush makes the lines durable. Errors name the path. first_iteration: updates that are done when the
// run starts or goes on.
std::unique_ptr<MetricSink> MakeJsonlSink(FileSystem& file_system, std::string path, int64_t first_iteration);

// No keys: on in every run that keeps files, at <run directory>/metrics.jsonl.
struct JsonlSinkOptions : public OncePerRunOptions {
  absl::string_view section() const override { return ""; }
  bool enabled() const override { return true; }
  std::vector<std::string> leaves() const override { return {"metrics.jsonl"}; }
};

absl::Status RegisterJsonlSink(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_SINKS_JSONL_SINK_H_
