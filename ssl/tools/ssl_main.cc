// SPDX-License-Identifier: Apache-2.0
//
// The command: flags and tokens -> configuration -> engines -> exit code.
//
// Several ranks: ssl/tools/run_world.h. Next stop for a reader: ssl/tools/command.cc, then ssl/core/session.cc.
#include <gflags/gflags.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/host_name.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/stop_token.h"
#include "ssl/base/torch_guard.h"
#include "ssl/check/message_places.h"
#include "ssl/config/sweep.h"
#include "ssl/config/yaml.h"
#include "ssl/core/accelerator.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/distributed/agree.h"
#include "ssl/openmp/openmp_runtime.h"
#include "ssl/tools/apart_from_data.h"
#include "ssl/tools/command.h"
#include "ssl/tools/command_flags.h"
#include "ssl/tools/directory_in_use.h"
#include "ssl/tools/dry_run.h"
#include "ssl/tools/escaped_output.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/join_world.h"
#include "ssl/tools/launch_check.h"
#include "ssl/tools/launch_ranks.h"
#include "ssl/tools/run_files.h"
#include "ssl/tools/run_world.h"
#include "ssl/tools/signals.h"
#include "ssl/tools/sweep_runner.h"
#include "ssl/tools/writable_directory.h"

DEFINE_string(config, "", "configuration to run: a file, or a name under configs/config, such as quickstart");
DEFINE_string(config_dir, "",
              "directory that has configs/config in it; searched before the working directory and the built-in");
DEFINE_string(launch, "", "local:N starts N ranks on this host");
DEFINE_int64(node_id, -1,
             "number of this host, of the config.DISTRIBUTED.NUM_NODES on which the same command is started");
DEFINE_int64(restarts, 0, "how often ranks that this command started are started again after a failure");
DEFINE_string(resume_from, "", "iteration of the checkpoint to go back to: config.CHECKPOINT.RESUME_FROM");
DEFINE_bool(check_config, false, "report everything that is wrong with the configuration and exit");
DEFINE_bool(dry_run, false, "print which hook does what at which iteration, and the files it will leave, and exit");
DEFINE_bool(print_config, false, "print the resolved configuration and exit");
DEFINE_string(help_config, "", "print the keys below this prefix, with type, default and meaning, and exit");
DEFINE_string(list, "", "print the registered names of a kind (methods, hooks, trunks, ...) and exit");

namespace {

constexpr char kUsage[] = R"(Trains self-supervised image models and evaluates them.

  ssl_main --config=quickstart                         SwAV on Fashion-MNIST, then kNN
  ssl_main --config=quickstart config.SEED_VALUE=1     a value on top of the file
  ssl_main --config=FILE +config/GROUP=FRAGMENT        another file on top
  ssl_main --config=FILE engine_name=knn               another engine: --list=engines
  ssl_main --config=FILE --launch=local:2              two ranks, as two processes

  --launch=local:N       N ranks on this host; torchrun, srun and mpirun start ranks as well
  --restarts=N           start all ranks again after a failure, up to N times, from the newest checkpoint
  --node_id=N            number of this host, where config.DISTRIBUTED.NUM_NODES has several
  --config=NAME          a file, or a name under configs/config
  --config_dir=DIR       DIR/configs/config is searched first for names
  --resume_from=STEP     go back to the checkpoint of this step; later ones are set aside
  --check_config         report everything that is wrong at once, without a run
  --dry_run              print which hook does what at which iteration, and the files that stay, without a run
  --print_config         print the resolved configuration
  --help_config[=PREFIX] print keys, types, defaults and meanings, such as --help_config=LOSS
  --list=KIND            print names: collators, data_sources, engines, heads, hooks, meters, methods (LOSS.name),
                         models, optimizers, parameter_groupings, samplers (keys of DATA.TRAIN), schedules, sinks,
                         train_steps, transforms, trunks

A run keeps its files in config.CHECKPOINT.DIR, or in runs/<name of the configuration>. One training uses a directory
at a time. SIGINT, SIGTERM, SIGHUP, SIGUSR2 and SIGXCPU save and end it; the same command goes on. SIGUSR1 saves and
goes on. A failed run leaves failure.json there, an evaluation <engine>_failure.json.

The configurations that come with the program lie in ssl_main.runfiles beside it; copied elsewhere, it finds them where
RUNFILES_DIR in the environment says: RUNFILES_DIR=/opt/ssl/ssl_main.runfiles.

Exit codes: 0 finished, 2 configuration, 3 incomplete (--check_config), 4 damaged data, 5 storage, 6 memory, 7 another
rank, 8 memory of the GPU, 75 stopped (same command resumes), 1 other.
)";

// `exit_code`, once all that was printed has arrived: whoever asked for it would take a part for the whole.
absl::StatusOr<int> Printed(int exit_code) {
  if (std::cout.flush()) return exit_code;
  return absl::ResourceExhaustedError("standard output cannot be written: what was asked for is not all there");
}

// --config first, then the bare tokens in their order, then the other flags that stand for one.
ssl::CommandLine MakeCommandLine(const std::string& program, const std::vector<std::string>& tokens) {
  ssl::CommandLine line;
  if (!FLAGS_config.empty()) line.tokens.push_back(absl::StrCat("config=", FLAGS_config));
  line.tokens.insert(line.tokens.end(), tokens.begin(), tokens.end());
  if (!FLAGS_resume_from.empty())
    line.tokens.push_back(absl::StrCat("config.CHECKPOINT.RESUME_FROM=", FLAGS_resume_from));
  if (!FLAGS_config_dir.empty()) line.search_dirs.push_back(FLAGS_config_dir);
  line.search_dirs.push_back(".");
  line.config_dir = FLAGS_config_dir;
  line.run_files = ssl::RunFilesDirectory(program);
  line.launch = {FLAGS_launch, FLAGS_node_id, FLAGS_restarts};
  return line;
}

// A run of nothing but defaults is never meant.
absl::Status CheckNamesAConfiguration(const ssl::CommandLine& line) {
  std::string example = "quickstart";
  for (const std::string& token : line.tokens) {
    const absl::string_view key = absl::StripPrefix(token, "+");
    if (absl::StartsWith(key, "config=") || absl::StartsWith(key, "config/")) return absl::OkStatus();
    if (!absl::StrContains(token, '=')) example = token;  // a file or a name, most likely
  }
  return absl::InvalidArgumentError(
      absl::StrCat("command line: no configuration is named, expected --config=NAME, such as --config=", example,
                   "; --print_config alone prints the defaults"));
}

absl::Status CheckIsOneRun(size_t num_runs, absl::string_view what) {
  if (num_runs == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ", the command line stands for ", num_runs,
      " (each KEY=A,B for several); give each KEY one value, or look at all ", "of them with --check_config"));
}

absl::StatusOr<int> PrintConfig(const ssl::CommandLine& line, size_t num_runs, const ssl::Registries& registries) {
  SSL_RETURN_IF_ERROR(CheckIsOneRun(num_runs, "--print_config prints one configuration"));
  SSL_ASSIGN_OR_RETURN(ssl::Composition composition, ssl::ComposeUnresolved(line, registries));
  SSL_ASSIGN_OR_RETURN(const ssl::RunWorld world, ssl::FindWorld(composition.root, line.launch));
  SSL_ASSIGN_OR_RETURN(const ssl::ConfigNode root, ssl::ResolveRoot(std::move(composition), world.shape(), registries));
  std::cout << "# @package _global_\n" << ssl::WriteYaml(root);
  return Printed(ssl::kExitFinished);
}

absl::StatusOr<int> RunSweep(const ssl::CommandLine& line, const std::vector<ssl::SweepRun>& runs,
                             const ssl::Registries& registries, ssl::StopToken& stop) {
  ssl::StopOnSignals(&stop, /*has_peers=*/false);
  return ssl::RunSweep(line, runs, registries, stop, std::cout);
}

void LogErrorsOnly() {
  ssl::LogOptions errors_only;
  errors_only.to_stderr = false;
  ssl::InitLogging(errors_only);
}

// The ranks say the rest; what is wrong with the configuration is said once, here.
absl::StatusOr<int> Launch(const ssl::RunWorld& world, ssl::Composition composition,
                           const std::vector<std::string>& arguments, const ssl::Registries& registries,
                           const ssl::StopToken& stop) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ssl::ThisProgram> program, ssl::ThisProgram::Open());
  LogErrorsOnly();
  const absl::StatusOr<ssl::ConfigNode> root = ssl::ResolveRoot(std::move(composition), world.shape(), registries);
  ssl::InitLogging({});
  SSL_RETURN_IF_ERROR(root.status());
  SSL_RETURN_IF_ERROR(ssl::CheckApartFromData(*root));
  SSL_RETURN_IF_ERROR(ssl::CheckCanBeWritten(*root));
  SSL_RETURN_IF_ERROR(ssl::UnlessInUse(ssl::CheckLaunch(*root, world, registries), *root));
  SSL_ASSIGN_OR_RETURN(const ssl::LaunchOutcome outcome,
                       ssl::LaunchRanks(*program, world, *root, arguments, FLAGS_restarts, stop));
  return outcome.exit_code;
}

// As one process, or as a rank.
absl::StatusOr<int> RunAsRank(const ssl::RunWorld& world, ssl::Composition composition,
                              const ssl::Registries& registries, ssl::StopToken& stop) {
  SSL_ASSIGN_OR_RETURN(const ssl::WorldOptions options, ssl::ReadWorldOptions(composition.root));
  if (world.place.size > 1 && world.place.rank == 0) SSL_LOG(INFO) << ssl::Describe(world);
  const absl::StatusOr<ssl::JoinedWorld> met = ssl::JoinWorld(world.place, options);
  if (!met.ok()) return ssl::UnlessInUse(met.status(), composition.root);
  const ssl::JoinedWorld& joined = *met;
  if (world.place.rank > 0) LogErrorsOnly();
  std::vector<std::string> warnings;
  const absl::StatusOr<ssl::ConfigNode> root =
      ssl::ResolveRoot(std::move(composition), joined.shape, registries, &warnings);
  SSL_RETURN_IF_ERROR(ssl::AgreeOnStatus(root.status(), "resolving the configuration", *joined.communicator));
  SSL_RETURN_IF_ERROR(ssl::CheckSameStart(*root, "/proc/self/exe", *joined.communicator));
  ssl::StopOnSignals(&stop, /*has_peers=*/world.place.size > 1);
  SSL_ASSIGN_OR_RETURN(const bool finished,
                       ssl::RunEngines(*root, warnings, registries, *joined.communicator, stop, std::cout));
  return finished ? ssl::kExitFinished : ssl::kExitStopped;
}

absl::StatusOr<int> StartOne(const ssl::CommandLine& line, ssl::Composition composition,
                             const std::vector<std::string>& arguments, const ssl::Registries& registries,
                             ssl::StopToken& stop) {
  SSL_ASSIGN_OR_RETURN(const ssl::RunWorld world, ssl::FindWorld(composition.root, line.launch));
  // The first rank of a host tells whom it waits for until all have come.
  const bool tells = world.place.rank == 0 || world.launches || (world.place.local_rank == 0 && !FLAGS_dry_run);
  if (!tells) LogErrorsOnly();
  if (const std::string warning = ssl::OverruledWarning(composition.root, world); !warning.empty()) {
    SSL_LOG(WARNING) << warning;
  }
  if (FLAGS_dry_run) {
    SSL_ASSIGN_OR_RETURN(const ssl::ConfigNode root,
                         ssl::ResolveRoot(std::move(composition), world.shape(), registries));
    SSL_RETURN_IF_ERROR(ssl::CheckApartFromData(root));
    SSL_RETURN_IF_ERROR(ssl::CheckNotInUse(root));
    SSL_RETURN_IF_ERROR(ssl::CheckCanStart(world));
    SSL_RETURN_IF_ERROR(ssl::CheckCanBeWritten(root));
    if (const std::string warning = ssl::CrowdWarning(world); !warning.empty()) SSL_LOG(WARNING) << warning;
    SSL_RETURN_IF_ERROR(ssl::DryRun(root, world, registries, std::cout));
    return Printed(ssl::kExitFinished);
  }
  if (world.launches) return Launch(world, std::move(composition), arguments, registries, stop);
  if (const std::string ignored = ssl::IgnoredOpenMpVariables(); !ignored.empty()) {
    SSL_LOG(WARNING) << "environment: " << ignored << " have no effect: compute threads are the program's own";
  }
  // Where the output of many comes together, or is sent elsewhere, a message has to say whose it is.
  absl::StatusOr<int> code = RunAsRank(world, std::move(composition), registries, stop);
  if (code.ok() || world.place.size == 1) return code;
  return ssl::Annotate(code.status(), absl::StrCat("rank ", world.place.rank, " of ", world.place.size, " (on ",
                                                   ssl::HostName("unknown"), ")"));
}

absl::StatusOr<int> RunOne(const ssl::CommandLine& line, const std::vector<std::string>& arguments,
                           const ssl::Registries& registries, ssl::StopToken& stop) {
  SSL_ASSIGN_OR_RETURN(ssl::Composition composition, ssl::ComposeUnresolved(line, registries));
  const ssl::ConfigNode root = composition.root;
  absl::StatusOr<int> code = StartOne(line, std::move(composition), arguments, registries, stop);
  if (!code.ok()) return ssl::WithPlaces(code.status(), root);
  return code;
}

// What is printed without a run; nothing when a run is asked for.
absl::StatusOr<std::optional<int>> PrintNames(const ssl::Registries& registries) {
  if (!FLAGS_help_config.empty()) {
    const std::string help = registries.options.Help(FLAGS_help_config == "all" ? "" : FLAGS_help_config);
    // A table has a heading; one line alone says that there are no such keys.
    if (std::count(help.begin(), help.end(), '\n') == 1) {
      return absl::InvalidArgumentError(absl::StrCat("--help_config: ", absl::StripSuffix(help, "\n")));
    }
    std::cout << help;
    return Printed(ssl::kExitFinished);
  }
  if (FLAGS_list.empty()) return std::nullopt;
  SSL_ASSIGN_OR_RETURN(const std::string names, ssl::ListNames(FLAGS_list, registries));
  std::cout << names;
  return Printed(ssl::kExitFinished);
}

// arguments: the command line's, for the ranks that the command may start.
absl::StatusOr<int> Run(const ssl::CommandLine& line, const std::vector<std::string>& arguments, ssl::StopToken& stop) {
  ssl::Registries registries;
  SSL_RETURN_IF_ERROR(ssl::FillRegistries(line, &registries));
  SSL_ASSIGN_OR_RETURN(const std::optional<int> printed, PrintNames(registries));
  if (printed.has_value()) return *printed;
  SSL_ASSIGN_OR_RETURN(const std::vector<ssl::SweepRun> runs, ssl::ExpandSweep(line.tokens));
  if (FLAGS_check_config) {
    LogErrorsOnly();  // the report says the rest
    return Printed(ssl::CheckRuns(line, runs, registries, std::cout));
  }
  if (FLAGS_print_config) return PrintConfig(line, runs.size(), registries);
  SSL_RETURN_IF_ERROR(CheckNamesAConfiguration(line));
  if (FLAGS_dry_run) SSL_RETURN_IF_ERROR(CheckIsOneRun(runs.size(), "--dry_run shows one run"));
  if (runs.size() > 1) return RunSweep(line, runs, registries, stop);
  return RunOne(line, arguments, registries, stop);
}

absl::StatusOr<int> ParseAndRun(const std::string& program, const std::vector<std::string>& arguments,
                                ssl::StopToken& stop) {
  const auto asks_for_help = [](const std::string& argument) { return argument == "--help" || argument == "-h"; };
  if (arguments.empty() || std::any_of(arguments.begin(), arguments.end(), asks_for_help)) {
    std::cout << kUsage;
    return Printed(ssl::kExitFinished);
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> tokens, ssl::ParseFlags(arguments, {"help_config"}));
  // `bazel run` starts the binary elsewhere: relative paths are those of the user's directory.
  const char* working_directory = std::getenv("BUILD_WORKING_DIRECTORY");
  if (working_directory != nullptr && chdir(working_directory) != 0) {
    return absl::NotFoundError(absl::StrCat("directory ", working_directory, " cannot be entered"));
  }
  return Run(MakeCommandLine(program, tokens), arguments, stop);
}

// In a build for GPUs, whose libraries end in an order that nobody defines: behind a recording of the hook `profiler`,
// memory was freed twice while the process ended, and its exit code was that of an abort. All that this program holds
// is closed by now.
int End(int exit_code) {
  if (!ssl::CheckAcceleratorIsBuilt().ok()) return exit_code;
  std::cout.flush();
  std::_Exit(exit_code);
}

}  // namespace

// LibTorch's initialisers take a good part of a second: a signal in that time is to do what it does later. Only an
// executable has this section, so that no program which embeds the library gets it.
__attribute__((section(".preinit_array"), used)) void (*const hold_signals)() = ssl::HoldSignals;

int main(int argc, char** argv) {
  ssl::PrepareProcess();
  // LibTorch's recorder would report a machine without a GPU as an error whenever the hook `profiler` saves a trace.
  setenv("KINETO_LOG_LEVEL", "99", /*overwrite=*/0);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  ssl::InitLogging({});
  const ssl::EscapedOutput escaped(std::cout);
  ssl::InstallTensorMemory();
  ssl::UseOwnOpenMp();
  static ssl::StopToken stop;  // signals may come until the process is gone
  int exit_code = ssl::kExitFailed;
  const absl::Status status = ssl::GuardTorch("ssl_main", [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(exit_code, ParseAndRun(argv[0], arguments, stop));
    return absl::OkStatus();
  });
  // What ends next, connections first, ends the other ranks: their launcher stops those that are left.
  ssl::KeepExitCode(status.ok() ? exit_code : ssl::ExitCodeOf(status));
  if (status.ok()) return End(exit_code);
  if (ssl::IsSaidOnThisHost(status)) {
    SSL_LOG(INFO) << status.message();  // for the rank's own log
  } else {
    SSL_LOG(ERROR) << status.message() << ssl::AdviceOn(status);
  }
  return End(ssl::ExitCodeOf(status));
}
