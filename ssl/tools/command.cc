// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/command.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/check/named_components.h"
#include "ssl/check/setting_checks.h"
#include "ssl/config/compose.h"
#include "ssl/config/yaml.h"
#include "ssl/core/core_options.h"
#include "ssl/core/session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/results_file.h"
#include "ssl/io/atomic_file.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/vissl/vissl_keys.h"

namespace ssl {
namespace {

constexpr char kConfigHeader[] = "# @package _global_\n";

absl::StatusOr<std::vector<std::unique_ptr<Engine>>> MakeEngines(const ConfigNode& root, const BuildContext& context) {
  std::vector<std::unique_ptr<Engine>> engines;
  for (const std::string& name : EngineNames(root)) {
    SSL_ASSIGN_OR_RETURN(engines.emplace_back(), context.registries.engines.Make(name, context.config, context));
  }
  return engines;
}

// What a failed run leaves for scripts. Best effort: the error itself is what matters.
void WriteFailure(const std::string& run_directory, const absl::Status& status, FileSystem& file_system) {
  ConfigNode failure = ConfigNode::Map();
  failure.Set("code", ConfigNode::FromString(absl::StatusCodeToString(status.code())));
  failure.Set("message", ConfigNode::FromString(status.message()));
  failure.Set("exit_code", ConfigNode::FromInt(ExitCodeOf(status)));
  failure.Set("time", ConfigNode::FromString(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())));
  WriteFileAtomically(file_system, absl::StrCat(run_directory, "/failure.json"), ToJson(failure)).IgnoreError();
}

// The directory of one run, and the files in it that belong to no engine.
class RunDirectory {
 public:
  RunDirectory(std::string path, FileSystem& file_system) : path_(std::move(path)), file_system_(file_system) {}

  // Makes it, with the configuration of the run, and sends the log there. Whatever is wrong, it is the place, not
  // the configuration: the code is FailedPrecondition, or what a full disk or a missing permission has.
  absl::Status Open(const ConfigNode& root) {
    const absl::Status status = Prepare(root);
    const bool keeps_code = absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status);
    if (status.ok()) return status;
    return absl::Status(keeps_code ? status.code() : absl::StatusCode::kFailedPrecondition,
                        absl::StrCat("run directory ", path_, " cannot be used: ", status.message()));
  }

  std::string File(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  absl::Status Prepare(const ConfigNode& root) {
    SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(path_));
    SSL_RETURN_IF_ERROR(
        WriteFileAtomically(file_system_, File("train_config.yaml"), absl::StrCat(kConfigHeader, WriteYaml(root))));
    LogOptions log;
    log.file = File("log.txt");
    InitLogging(log);
    return file_system_.Exists(File("failure.json")) ? file_system_.RemoveFile(File("failure.json")) : absl::OkStatus();
  }

  const std::string path_;
  FileSystem& file_system_;
};

absl::StatusOr<bool> RunAll(const std::vector<std::unique_ptr<Engine>>& engines, EngineContext& context,
                            const std::string& results_file, std::ostream& out) {
  for (const std::unique_ptr<Engine>& engine : engines) {
    const ConfigNode earlier = context.results;
    SSL_ASSIGN_OR_RETURN(const EngineReport report, engine->Run(context));
    out << report.summary << "\n" << std::flush;
    // An evaluation that was stopped has no results: the file stays as it is.
    if (context.results != earlier) {
      SSL_RETURN_IF_ERROR(WriteResults(results_file, context.results, context.file_system));
    }
    if (report.stopped) return false;
  }
  return true;
}

// What is wrong with the composed tree: values of a wrong type or out of range, names that nothing has.
absl::Status CheckValues(const ConfigNode& root, const Registries& registries) {
  SSL_RETURN_IF_ERROR(CheckVisslVersion(root));
  SSL_RETURN_IF_ERROR(registries.options.Check(*root.Find("config")));
  std::vector<std::string> mistakes;
  for (const NamedComponent& component : NamedComponents(root)) {
    std::string mistake = WrongName(component, registries);
    if (!mistake.empty()) mistakes.push_back(std::move(mistake));
  }
  return mistakes.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
}

// What contradicts each other in the resolved tree. What has no effect here is warned about.
absl::Status CheckSettings(const ConfigNode& config, const Registries& registries) {
  SSL_RETURN_IF_ERROR(registries.options.Check(config));
  const std::vector<std::string> contradictions = ContradictingSettings(config);
  if (!contradictions.empty()) return absl::InvalidArgumentError(absl::StrJoin(contradictions, "\n"));
  for (const UnsupportedKey& key : registries.options.Unsupported(config)) {
    SSL_LOG(WARNING) << key.location.ToString() << ": config." << key.path << " is " << key.value
                     << ", which has no effect here: " << key.note;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillRegistries(const CommandLine& line, Registries* registries) {
  SSL_RETURN_IF_ERROR(RegisterBuiltins(registries));
  if (!line.run_files.empty()) {
    registries->dataset_folders["fashion_mnist"] =
        absl::StrCat(line.run_files, "/fashion_mnist/usr/share/datasets/fashion-mnist");
  }
  return absl::OkStatus();
}

ComposeRequest MakeComposeRequest(const CommandLine& line, const Registries& registries) {
  ComposeRequest request = MakeRunRequest(registries);
  request.tokens = line.tokens;
  request.search_dirs = line.search_dirs;
  if (!line.run_files.empty()) request.search_dirs.push_back(absl::StrCat(line.run_files, "/ssl"));
  return request;
}

absl::StatusOr<ConfigNode> ComposeRoot(const CommandLine& line, const Registries& registries) {
  SSL_ASSIGN_OR_RETURN(ComposedConfig composed, Compose(MakeComposeRequest(line, registries)));
  for (const std::string& warning : composed.warnings) SSL_LOG(WARNING) << warning;
  SSL_RETURN_IF_ERROR(CheckValues(composed.root, registries));
  SSL_ASSIGN_OR_RETURN(ConfigNode config, ResolveConfig(*composed.root.Find("config"), registries));
  SSL_RETURN_IF_ERROR(CheckSettings(config, registries));
  composed.root.Set("config", std::move(config));
  return std::move(composed.root);
}

absl::StatusOr<bool> RunEngines(const ConfigNode& root, const Registries& registries, StopToken& stop,
                                std::ostream& out) {
  const ConfigNode& config = *root.Find("config");
  SSL_ASSIGN_OR_RETURN(const TaskOptions options, ReadTaskOptions(config));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  FileSystem& file_system = PosixFileSystem();
  const std::string& path = options.checkpoint.directory;
  const BuildContext build{config, registries, *communicator, options.run.seed, path, 0};
  SSL_ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<Engine>> engines, MakeEngines(root, build));

  RunDirectory directory(path, file_system);
  SSL_RETURN_IF_ERROR(directory.Open(root));
  SSL_LOG(INFO) << "run directory: " << path;
  SSL_ASSIGN_OR_RETURN(ConfigNode results, ReadResults(directory.File("results.json"), file_system));
  EngineContext context{config, registries, *communicator, stop, file_system, path, results};
  absl::StatusOr<bool> finished = RunAll(engines, context, directory.File("results.json"), out);
  if (!finished.ok()) WriteFailure(path, finished.status(), file_system);
  return finished;
}

absl::StatusOr<std::string> ListNames(const std::string& kind, const Registries& registries) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> kinds = {
      {"data_sources", registries.datasets.Names()},
      {"engines", registries.engines.Names()},
      {"heads", registries.heads.Names()},
      {"hooks", registries.hooks.Names()},
      {"meters", registries.meters.Names()},
      {"methods", registries.methods.Names()},
      {"models", registries.models.Names()},
      {"optimizers", registries.optimizers.Names()},
      {"parameter_groupings", registries.parameter_groupers.Names()},
      {"schedules", registries.schedules.Names()},
      {"sinks", registries.metric_sinks.Names()},
      {"train_steps", registries.train_steps.Names()},
      {"transforms", registries.transforms.Names()},
      {"trunks", registries.trunks.Names()},
  };
  std::vector<std::string> known;
  for (const auto& [name, entries] : kinds) {
    if (name == kind) return absl::StrCat(absl::StrJoin(entries, "\n"), "\n");
    known.push_back(name);
  }
  return absl::NotFoundError(absl::StrCat("--list has no kind '", kind, "'", DidYouMean(kind, known),
                                          "; known: ", absl::StrJoin(known, ", ")));
}

}  // namespace ssl
