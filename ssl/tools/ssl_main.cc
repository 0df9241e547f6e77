// SPDX-License-Identifier: Apache-2.0
//
// The command: flags and tokens -> configuration -> engines -> exit code.
//
// Next stop for a reader: ssl/tools/command.cc, then ssl/core/session.cc.
#include <gflags/gflags.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/sweep.h"
#include "ssl/config/yaml.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/tools/command.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/run_files.h"
#include "ssl/tools/signals.h"
#include "ssl/tools/sweep_runner.h"

DEFINE_string(config, "", "configuration to run: a file, or a name under configs/config, such as quickstart");
DEFINE_string(config_dir, "", "directory with configs/config; searched before the working directory and the built-in");
DEFINE_bool(check_config, false, "report everything that is wrong with the configuration and exit");
DEFINE_bool(print_config, false, "print the resolved configuration and exit");
DEFINE_string(help_config, "", "print the keys below this prefix, with type, default and meaning, and exit");
DEFINE_string(list, "", "print the registered names of a kind (methods, hooks, trunks, ...) and exit");

namespace {

constexpr char kUsage[] = R"(Trains self-supervised image models and evaluates them.

  ssl_main --config=quickstart                         SwAV on Fashion-MNIST, then kNN
  ssl_main --config=quickstart config.SEED_VALUE=1     a value on top of the file
  ssl_main --config=FILE +config/GROUP=FRAGMENT        another file on top
  ssl_main --config=FILE engine_name=knn               another engine: --list=engines

  --config=NAME          a file, or a name under configs/config
  --config_dir=DIR       searched first for configs/config
  --check_config         report everything that is wrong, without a run
  --print_config         print the resolved configuration
  --help_config[=PREFIX] print keys, types, defaults and meanings, such as --help_config=LOSS
  --list=KIND            print names: data_sources, engines, heads, hooks, meters, methods, models,
                         optimizers, parameter_groupings, schedules, sinks, train_steps, transforms, trunks

Exit codes: 0 finished, 2 configuration, 3 incomplete (--check_config), 4 damaged data, 5 storage, 75 stopped (same command resumes), 1 other.
)";

// gflags has no optional values: a bare --help_config asks for everything.
std::vector<std::string> Arguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  for (std::string& argument : arguments) {
    if (argument == "--help_config") argument = "--help_config=config";
  }
  return arguments;
}

// --config first, then the bare tokens in their order. "quickstart" alone stands for config=quickstart.
ssl::CommandLine MakeCommandLine(const std::string& program, int count, char** tokens) {
  ssl::CommandLine line;
  if (!FLAGS_config.empty()) line.tokens.push_back(absl::StrCat("config=", FLAGS_config));
  line.tokens.insert(line.tokens.end(), tokens + 1, tokens + count);
  if (!FLAGS_config_dir.empty()) line.search_dirs.push_back(FLAGS_config_dir);
  line.search_dirs.push_back(".");
  line.run_files = ssl::RunFilesDirectory(program);
  return line;
}

absl::StatusOr<int> Run(const ssl::CommandLine& line, ssl::StopToken& stop) {
  ssl::Registries registries;
  SSL_RETURN_IF_ERROR(ssl::FillRegistries(line, &registries));
  if (!FLAGS_help_config.empty()) {
    std::cout << registries.options.Help(FLAGS_help_config == "config" ? "" : FLAGS_help_config);
    return ssl::kExitFinished;
  }
  if (!FLAGS_list.empty()) {
    SSL_ASSIGN_OR_RETURN(const std::string names, ssl::ListNames(FLAGS_list, registries));
    std::cout << names;
    return ssl::kExitFinished;
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<ssl::SweepRun> runs, ssl::ExpandSweep(line.tokens));
  if (FLAGS_check_config) return ssl::CheckRuns(line, runs, registries, std::cout);
  if (runs.size() > 1 && FLAGS_print_config) {
    return absl::InvalidArgumentError(
        absl::StrCat("--print_config prints one configuration, the command line stands for ", runs.size()));
  }
  if (runs.size() > 1) return ssl::RunSweep(line, runs, registries, stop, std::cout);
  SSL_ASSIGN_OR_RETURN(const ssl::ConfigNode root, ssl::ComposeRoot(line, registries));
  if (FLAGS_print_config) {
    std::cout << "# @package _global_\n" << ssl::WriteYaml(root);
    return ssl::kExitFinished;
  }
  SSL_ASSIGN_OR_RETURN(const bool finished, ssl::RunEngines(root, registries, stop, std::cout));
  return finished ? ssl::kExitFinished : ssl::kExitStopped;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments = Arguments(argc, argv);
  if (argc == 1 || arguments[1] == "--help" || arguments[1] == "-h") {
    std::cout << kUsage;
    return ssl::kExitFinished;
  }
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = argc;
  char** tokens = pointers.data();
  gflags::ParseCommandLineFlags(&count, &tokens, /*remove_flags=*/true);
  // `bazel run` starts the binary elsewhere: relative paths are those of the user's directory.
  const char* working_directory = std::getenv("BUILD_WORKING_DIRECTORY");
  if (working_directory != nullptr && chdir(working_directory) != 0) {
    std::cerr << "directory " << working_directory << " cannot be entered\n";
    return ssl::kExitFailed;
  }
  ssl::InitLogging({});
  ssl::InstallTensorMemory();
  ssl::StopToken stop;
  ssl::StopOnSignals(&stop);
  const absl::StatusOr<int> exit_code = Run(MakeCommandLine(arguments[0], count, tokens), stop);
  if (exit_code.ok()) return *exit_code;
  SSL_LOG(ERROR) << exit_code.status().message();
  return ssl::ExitCodeOf(exit_code.status());
}
