// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/export_engine.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/config/reader.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/chosen_folder.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"
#include "ssl/weights/export.h"

namespace ssl {
namespace {

constexpr char kSection[] = "EXPORT";

// What opens the file in Python.
std::string PythonLine(const std::string& path) {
  if (absl::EndsWith(path, ".safetensors")) return absl::StrCat("safetensors.torch.load_file(\"", path, "\")");
  return absl::StrCat("torch.load(\"", path, "\", weights_only=True)");
}

std::string FormatTable(const ExportResult& result, const std::string& format, const std::string& weights) {
  size_t width = 4;
  for (const ExportedFile& file : result.files) width = std::max(width, file.path.size());
  std::string table =
      absl::StrFormat("%-*s %8s %12s   (%s, names of %s)\n", width, "file", "tensors", "bytes", weights, format);
  for (const ExportedFile& file : result.files) {
    absl::StrAppendFormat(&table, "%-*s %8d %12d\n", width, file.path, file.tensors, file.bytes);
  }
  if (!result.left_out.empty()) {
    absl::StrAppend(&table, "left out, without a place in the format: ", absl::StrJoin(result.left_out, ", "), "\n");
  }
  for (const ExportedFile& file : result.files) absl::StrAppend(&table, "state = ", PythonLine(file.path), "\n");
  return table;
}

class ExportEngine : public Engine {
 public:
  explicit ExportEngine(ExportEngineOptions options) : options_(std::move(options)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    SSL_ASSIGN_OR_RETURN(const EvaluationModel network, MakeEvaluationModel(context, EvaluationWeights::kTrained));
    ExportResult result;
    const auto write = [&] { return Write(network, context, &result); };
    SSL_RETURN_IF_ERROR(OnRankZero(write, "export", context.communicator));
    return EngineReport{false, FormatTable(result, options_.format, network.weights)};
  }

  absl::Status Check(EngineContext& context) const override {
    SSL_RETURN_IF_ERROR(CheckChosenFolder("EXPORT.OUTPUT_DIR", context));
    SSL_ASSIGN_OR_RETURN(const EvaluationModel network, MakeModelToCheck(context));
    std::vector<std::string> left_out;
    const ConfigNode& format = *context.config.FindPath("EXPORT.FORMAT");
    return Annotate(ExportedTensors(*network.model, options_.format, &left_out).status(),
                    absl::StrCat(format.location().ToString(), ": config.EXPORT.FORMAT"));
  }

  bool uses_device() const override { return false; }

 private:
  absl::Status Write(const EvaluationModel& network, EngineContext& context, ExportResult* result) const {
    const OutputFolder folder = options_.output_dir.empty() ? OutputFolder{context.run_directory, "export"}
                                                            : OutputFolder{options_.output_dir, ""};
    const std::string directory = folder.path();
    ExportOptions request;
    request.format = options_.format;
    for (const std::string& file : options_.files) {
      // A file may lie in a folder of its own.
      SSL_RETURN_IF_ERROR(CreateOutputFolder(folder.Below(ParentDirectory(file)), context.file_system));
      request.files.push_back(absl::StrCat(directory, "/", file));
    }
    SSL_ASSIGN_OR_RETURN(*result, ExportWeights(context.file_system, *network.model, request));
    ConfigNode files = ConfigNode::Map();
    for (const std::string& file : options_.files) {
      files.Set(file, ConfigNode::FromString(absl::StrCat(directory, "/", file)));
    }
    SetResults("export", files, {network.weights, network.iteration}, &context.results);
    return absl::OkStatus();
  }

  const ExportEngineOptions options_;
};

}  // namespace

void ExportEngineOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("FORMAT", &format, Doc("names of the tensors (ours)").OneOf({"torchvision", "timm", "native"}));
  visitor.Field("FILES", &files, Doc("file names; .safetensors, or .pth for torch.load (ours)"));
  visitor.Field("OUTPUT_DIR", &output_dir, Doc("where to write; \"\": <run directory>/export (ours)"));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeExportEngine(const ConfigNode& config, const BuildContext& context) {
  ExportEngineOptions options;
  const ConfigNode& section = config.Section(kSection);
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  if (options.files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(section.location().ToString(), ": config.EXPORT.FILES is empty, expected at least one name"));
  }
  for (size_t i = 0; i < options.files.size(); ++i) {
    const std::string place = section.Find("FILES")->items()[i].location().ToString();
    SSL_RETURN_IF_ERROR(Annotate(CheckExportName(options.files[i]), absl::StrCat(place, ": config.EXPORT.FILES")));
  }
  return std::make_unique<ExportEngine>(std::move(options));
}

}  // namespace ssl
