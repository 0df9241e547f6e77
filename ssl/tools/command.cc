// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/command.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/check/message_places.h"
#include "ssl/check/named_components.h"
#include "ssl/check/setting_checks.h"
#include "ssl/check/settings_without_effect.h"
#include "ssl/config/compose.h"
#include "ssl/config/reader.h"
#include "ssl/core/core_options.h"
#include "ssl/core/session.h"
#include "ssl/core/start_refusal.h"
#include "ssl/data/collators/collators.h"
#include "ssl/data/samplers/sampler_keys.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/environment_reader.h"
#include "ssl/distributed/preview_communicator.h"
#include "ssl/engines/run_files.h"
#include "ssl/io/file_system.h"
#include "ssl/tools/admission.h"
#include "ssl/tools/apart_from_data.h"
#include "ssl/tools/command_text.h"
#include "ssl/tools/directory_in_use.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/launch_failure.h"
#include "ssl/tools/leftovers.h"
#include "ssl/tools/moved_run.h"
#include "ssl/tools/rank_engines.h"
#include "ssl/tools/run_record.h"
#include "ssl/tools/run_world.h"
#include "ssl/tools/signals.h"
#include "ssl/vissl/vissl_keys.h"

namespace ssl {
namespace {

constexpr char kDirectory[] = "config.CHECKPOINT.DIR";
constexpr char kAutoResume[] = "config.CHECKPOINT.AUTO_RESUME";
constexpr char kNumNodes[] = "config.DISTRIBUTED.NUM_NODES";
constexpr char kRanksPerNode[] = "config.DISTRIBUTED.NUM_PROC_PER_NODE";
constexpr char kCommandLine[] = "command line";  // the "file" of what is typed

// What is wrong with the composed tree: values of a wrong type or out of range, names that nothing has.
absl::Status CheckValues(const ConfigNode& root, const Registries& registries) {
  SSL_RETURN_IF_ERROR(CheckVisslVersion(root));
  SSL_RETURN_IF_ERROR(registries.options.Check(*root.Find("config")));
  std::vector<std::string> mistakes;
  const std::string missing_engine = MissingEngine(root);
  if (!missing_engine.empty()) mistakes.push_back(missing_engine);
  for (const NamedComponent& component : NamedComponents(root)) {
    std::string mistake = WrongName(component, registries);
    if (!mistake.empty()) mistakes.push_back(std::move(mistake));
  }
  return mistakes.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
}

// A run that names no directory gets one named after its configuration.
void ChooseDirectory(const std::vector<std::string>& files, ConfigNode* root) {
  const ConfigNode* directory = root->FindPath(kDirectory);
  if (directory != nullptr && !directory->text().empty()) return;
  const std::string name = files.empty() ? "defaults" : std::filesystem::path(files.front()).stem().string();
  root->SetPath(kDirectory, ConfigNode::FromString(absl::StrCat("runs/", name)));
}

// A file may well say what a flag changes for once; that somebody has typed both can only be a slip.
absl::Status CheckTypedOnce(const ConfigNode& root, const LaunchFlags& flags, const WorldShape& launched) {
  const auto check = [&](const char* path, int64_t count) -> absl::Status {
    const ConfigNode* node = root.FindPath(path);
    if (node == nullptr || node->location().file != kCommandLine || node->AsInt().value_or(count) == count) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(node->location().ToString(), ": ", path, " is ", node->Describe(),
                                                   ", and --launch=", flags.launch, " asks for ", count,
                                                   ": leave out one of the two"));
  };
  SSL_RETURN_IF_ERROR(check(kNumNodes, launched.nodes));
  return check(kRanksPerNode, launched.ranks_per_node);
}

// What starts these ranks again after a failure, or has done so: "--restarts=3"; "" for nothing.
std::string RestartsOf(const ConfigNode& root, const LaunchFlags& flags, const RunWorld& world) {
  if (world.launches) return flags.restarts > 0 ? absl::StrCat("--restarts=", flags.restarts) : "";
  const std::string most = ProcessVariable("TORCHELASTIC_MAX_RESTARTS").value_or("");
  const char* restarts = most == "1" ? " restart" : " restarts";
  if (!most.empty() && most != "0") return absl::StrCat("up to ", most, restarts, " by ", world.place.source);
  const ConfigNode* directory = root.FindPath(kDirectory);
  const bool has_saved = directory != nullptr && SavedIn(directory->text(), PosixFileSystem()).steps > 0;
  if (world.place.restart_count == 0 || !has_saved) return "";
  return absl::StrCat("restart ", world.place.restart_count, " by ", world.place.source);
}

// Ranks that are started again have the arguments of the start before, whose checkpoints would be refused or removed.
absl::Status CheckRestartGoesOn(const ConfigNode& root, const LaunchFlags& flags, const RunWorld& world) {
  const std::vector<std::string> engines = EngineNames(root);
  const bool saves = Trains(root) || std::count(engines.begin(), engines.end(), kFullTuneFolder) > 0;
  const ConfigNode* goes_on = root.FindPath(kAutoResume);
  if (!saves || goes_on == nullptr || goes_on->AsBool().value_or(true)) return absl::OkStatus();
  const std::string restarts = RestartsOf(root, flags, world);
  if (restarts.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      goes_on->location().ToString(), ": ", kAutoResume, " is ", goes_on->Describe(), ", expected True with ", restarts,
      ": a start again goes on with what was trained; to begin anew, choose another ", kDirectory,
      " or remove the earlier run"));
}

// What contradicts each other in the resolved tree. What has no effect here is added to `warnings`.
absl::Status CheckSettings(const ConfigNode& config, bool trains, const Registries& registries,
                           std::vector<std::string>* warnings) {
  SSL_RETURN_IF_ERROR(registries.options.Check(config));
  SSL_RETURN_IF_ERROR(ReadTaskOptions(config).status());
  const std::vector<std::string> contradictions = ContradictingSettings(config, trains);
  if (!contradictions.empty()) return absl::InvalidArgumentError(absl::StrJoin(contradictions, "\n"));
  for (const UnsupportedKey& key : registries.options.Unsupported(config)) {
    warnings->push_back(absl::StrCat(key.location.ToString(), ": config.", key.path, " is ", key.value,
                                     ", which has no effect here: ", key.note));
  }
  return absl::OkStatus();
}

// Which part of which run this is.
void LogPlace(const ConfigNode& root, const WorldOptions& world, Communicator& processes) {
  if (world.virtual_ranks > 0) {
    const int64_t ranks_here = world.virtual_ranks / processes.size();
    const int64_t first = processes.rank() * ranks_here;
    SSL_LOG(INFO) << DescribeVirtualRanks(world.virtual_ranks, processes.size()) << ", " << first << " to "
                  << first + ranks_here - 1 << " here" << IntroductionOfThisProcess();
  } else if (processes.size() > 1) {
    SSL_LOG(INFO) << "rank " << processes.rank() << " of " << processes.size() << IntroductionOfThisProcess();
  }
  const ConfigNode& directory = *root.FindPath(kDirectory);
  SSL_LOG(INFO) << "run directory: " << directory.text()
                << (directory.location().file.empty() ? " (config.CHECKPOINT.DIR is not set)" : "");
  SSL_LOG(INFO) << "command: " << CommandOfThisProcess();
}

// The last line of the log of a run that goes on later.
void LogStop(const std::string& directory, FileSystem& file_system) {
  const std::string by = StopSignal();
  const std::string newest = SavedIn(directory, file_system).newest;
  SSL_LOG(INFO) << "stopped" << (by.empty() ? "" : absl::StrCat(" by ", by)) << " with exit code " << kExitStopped
                << ": "
                << (newest.empty() ? "no checkpoint is there" : absl::StrCat("the newest checkpoint is ", newest))
                << "; the same command goes on";
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

absl::StatusOr<Composition> ComposeUnresolved(const CommandLine& line, const Registries& registries) {
  SSL_ASSIGN_OR_RETURN(ComposedConfig composed, Compose(MakeComposeRequest(line, registries)));
  Composition composition{std::move(composed.root), std::move(composed.warnings), RanksFrom(line.launch)};
  const absl::Status values = CheckValues(composition.root, registries);
  if (!values.ok()) {
    for (const std::string& warning : composition.warnings) SSL_LOG(WARNING) << warning;
    return values;
  }
  for (const std::string& file : composed.files) {
    std::string moved = TakeDirectoryOfFile(file, registries.engines.Names(), PosixFileSystem(), &composition.root);
    if (!moved.empty()) composition.warnings.push_back(std::move(moved));
  }
  ChooseDirectory(composed.files, &composition.root);
  return composition;
}

absl::StatusOr<WorldOptions> ReadWorldOptions(const ConfigNode& root) {
  WorldOptions options;
  SSL_RETURN_IF_ERROR(
      ReadOptions(root.Section("config.DISTRIBUTED"), "config.DISTRIBUTED", UnknownKeys::kIgnore, &options));
  return options;
}

absl::StatusOr<RunWorld> FindWorld(const ConfigNode& root, const LaunchFlags& flags) {
  SSL_ASSIGN_OR_RETURN(const WorldOptions options, ReadWorldOptions(root));
  absl::StatusOr<RunWorld> found = FindRunWorld(flags, options, ProcessVariable);
  if (!found.ok()) return WithPlaces(found.status(), root);
  RunWorld world = *std::move(found);
  if (world.launches && !flags.launch.empty()) SSL_RETURN_IF_ERROR(CheckTypedOnce(root, flags, world.shape()));
  SSL_RETURN_IF_ERROR(CheckRestartGoesOn(root, flags, world));
  return world;
}

std::string OverruledWarning(const ConfigNode& root, const RunWorld& world) {
  const bool is_of_environment = world.place.source != WorldPlace().source;
  if (world.launches || !is_of_environment || ProcessVariable("SSL_LAUNCHER").has_value()) return "";
  const WorldShape shape = world.shape();
  // With the values that say nothing else.
  const std::pair<const char*, std::vector<std::string>> keys[] = {
      {"config.DISTRIBUTED.INIT_METHOD", {"env", "tcp"}},
      {"config.DISTRIBUTED.RUN_ID", {"auto"}},
      {kNumNodes, {absl::StrCat(shape.nodes)}},
      {kRanksPerNode, {absl::StrCat(shape.ranks_per_node)}}};
  std::vector<std::string> overruled;
  for (const auto& [path, agreeing] : keys) {
    const ConfigNode* node = root.FindPath(path);
    const bool is_typed = node != nullptr && node->location().file == kCommandLine;
    if (!is_typed || std::count(agreeing.begin(), agreeing.end(), node->text()) > 0) continue;
    overruled.push_back(absl::StrCat(node->location().ToString(), ": ", path));
  }
  if (overruled.empty()) return "";
  return absl::StrCat(absl::StrJoin(overruled, ", "), overruled.size() == 1 ? " has" : " have", " no effect: this is ",
                      Describe(world));
}

std::string RanksFrom(const LaunchFlags& flags) {
  return flags.launch.empty() ? "the ranks that run" : absl::StrCat(kCommandLine, ": --launch=", flags.launch);
}

void SetWorldShape(const WorldShape& world, const std::string& from, ConfigNode* root) {
  const auto set = [&](absl::string_view path, int64_t count) {
    const ConfigNode* earlier = root->FindPath(path);
    const bool says_so = earlier != nullptr && earlier->AsInt().value_or(-1) == count;
    ConfigNode node = ConfigNode::FromInt(count);
    node.Relocate(says_so ? earlier->location() : SourceLocation{from, 0});
    root->SetPath(path, std::move(node));
  };
  set(kNumNodes, world.nodes);
  set(kRanksPerNode, world.ranks_per_node);
}

absl::StatusOr<ConfigNode> ResolveRoot(Composition composition, const std::optional<WorldShape>& world,
                                       const Registries& registries, std::vector<std::string>* warnings) {
  for (const std::string& warning : composition.warnings) SSL_LOG(WARNING) << warning;
  if (world.has_value()) SetWorldShape(*world, composition.ranks_from, &composition.root);
  std::vector<std::string> found;
  if (MeansToTrain(composition.root)) found = SettingsWithoutEffect(composition.root, registries);
  absl::StatusOr<ConfigNode> resolved = ResolveConfig(*composition.root.Find("config"), registries);
  if (!resolved.ok()) return WithPlaces(resolved.status(), composition.root);
  ConfigNode config = *std::move(resolved);
  SSL_RETURN_IF_ERROR(CheckSettings(config, MeansToTrain(composition.root), registries, &found));
  for (const std::string& warning : found) SSL_LOG(WARNING) << warning;
  if (warnings != nullptr) {
    *warnings = std::move(composition.warnings);
    warnings->insert(warnings->end(), found.begin(), found.end());
  }
  composition.root.Set("config", std::move(config));
  return std::move(composition.root);
}

absl::StatusOr<ConfigNode> ComposeRoot(const CommandLine& line, const Registries& registries,
                                       std::vector<std::string>* warnings) {
  SSL_ASSIGN_OR_RETURN(Composition composition, ComposeUnresolved(line, registries));
  return ResolveRoot(std::move(composition), std::nullopt, registries, warnings);
}

absl::Status CheckStart(const ConfigNode& root, const Registries& registries) {
  if (!MeansToTrain(root)) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const WorldShape world, ReadWorldShape(*root.Find("config")));
  const ConfigNode& config = *root.Find("config");
  const std::unique_ptr<Communicator> communicator = MakePreviewCommunicator(world.ranks());
  SSL_ASSIGN_OR_RETURN(const ResumePlan plan, CheckWholeResume(config, registries, PosixFileSystem(), *communicator));
  if (plan.iteration < 0) return absl::OkStatus();
  // What only the data tells: how many samples there are.
  SessionOptions options;
  options.communicator = communicator.get();
  options.only_preview = true;
  return Session::Create(config, registries, std::move(options)).status();
}

absl::StatusOr<bool> RunEngines(const ConfigNode& root, const std::vector<std::string>& warnings,
                                const Registries& registries, Communicator& communicator, StopToken& stop,
                                std::ostream& out) {
  const ConfigNode& config = *root.Find("config");
  SSL_ASSIGN_OR_RETURN(const TaskOptions options, ReadTaskOptions(config));
  SSL_ASSIGN_OR_RETURN(const WorldOptions world, ReadWorldOptions(root));
  FileSystem& file_system = PosixFileSystem();
  const std::string& path = options.checkpoint.directory;
  const BuildContext build{config, registries, communicator, options.run.seed, path, 0, file_system};
  SSL_ASSIGN_OR_RETURN(const bool trains, TrainsInRunDirectory(root, build));

  // Before anything is written. An evaluation reads a directory that a training uses; an estimate is refused as the
  // training would be.
  const auto look = [&]() -> absl::Status {
    SSL_RETURN_IF_ERROR(CheckApartFromData(root));
    return trains ? absl::OkStatus() : CheckNotInUse(root);
  };
  SSL_RETURN_IF_ERROR(OnRankZero(look, "looking at the run directory", communicator));
  // A start that the settings forbid changes nothing.
  const auto admit = [&] {
    const int64_t ranks = world.virtual_ranks > 0 ? world.virtual_ranks : communicator.size();
    return CheckAdmission(config, registries, ranks, file_system, communicator);
  };
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<RunRecord> record,
                       RunRecord::Open(path, EngineNames(root), trains, root, admit, file_system, communicator));
  record->AddToLog(warnings);
  LogPlace(root, world, communicator);
  const absl::StatusOr<bool> finished =
      RunEnginesOfRanks({root, registries, file_system, path, *record, stop, out}, world, communicator);
  if (finished.ok() && !*finished) LogStop(path, file_system);
  return finished;
}

absl::StatusOr<std::string> ListNames(const std::string& kind, const Registries& registries) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> kinds = {
      {"collators", CollatorNames()},
      {"data_sources", registries.datasets.Names()},
      {"engines", registries.engines.Names()},
      {"heads", registries.heads.Names()},
      {"hooks", registries.hooks.Names()},
      {"meters", registries.meters.Names()},
      {"methods", registries.methods.Names()},
      {"models", registries.models.Names()},
      {"optimizers", registries.optimizers.Names()},
      {"parameter_groupings", registries.parameter_groupers.Names()},
      {"samplers", SamplerKeys()},
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
