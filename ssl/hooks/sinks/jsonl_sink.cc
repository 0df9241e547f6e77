// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/jsonl_sink.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/folder_in_run.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/sinks/json_lines_file.h"

namespace ssl {
namespace {

using Json = nlohmann::ordered_json;

std::string FormatLine(const MetricReport& report) {
  Json line = {{"iteration", report.iteration}, {"epoch", report.epoch}};
  for (const auto& [name, value] : report.values) line.emplace(name, value);  // these two stay
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

class JsonlSink : public MetricSink {
 public:
  // What hooks of a program's own measure, they may report at any moment.
  JsonlSink(FileSystem& file_system, std::string path, int64_t first_iteration)
      : file_(file_system, std::move(path), {"iteration", "epoch"}, /*anywhere=*/"Host/") {
    file_.GoOnFrom(first_iteration);
  }

  absl::Status Write(const MetricReport& report) override {
    const bool has_only_others = report.values.empty() && !(report.histograms.empty() && report.images.empty());
    return has_only_others ? absl::OkStatus() : file_.Append(report.iteration, FormatLine(report));
  }
  absl::Status Flush() override { return file_.Sync(); }

 private:
  JsonLinesFile file_;
};

absl::StatusOr<std::unique_ptr<MetricSink>> MakeJsonl(const JsonlSinkOptions& options, const ConfigNode& params,
                                                      const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(std::string path, FileInRun(context, "metric sink 'jsonl'", "metrics.jsonl"));
  return MakeJsonlSink(context.file_system, std::move(path), context.first_iteration);
}

}  // namespace

std::unique_ptr<MetricSink> MakeJsonlSink(FileSystem& file_system, std::string path, int64_t first_iteration) {
  return std::make_unique<JsonlSink>(file_system, std::move(path), first_iteration);
}

absl::Status RegisterJsonlSink(Registries* registries) {
  return RegisterSink(registries, {"jsonl", "metric reports as JSON lines, for scripts"}, &MakeJsonl);
}

}  // namespace ssl
