// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/sweep_runner.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/check/check_config.h"
#include "ssl/engines/results_file.h"
#include "ssl/tools/exit_codes.h"

namespace ssl {
namespace {

constexpr char kDirectoryKey[] = "config.CHECKPOINT.DIR=";
constexpr size_t kMostResults = 4;  // numbers per line of the table

struct Outcome {
  std::string directory;
  int exit_code = kExitFinished;
  std::string error;  // "" unless the run failed
};

bool ChoosesDirectory(const SweepRun& run) {
  return std::any_of(run.choices.begin(), run.choices.end(),
                     [](const std::string& choice) { return absl::StartsWith(choice, kDirectoryKey); });
}

absl::StatusOr<bool> RunOne(CommandLine line, const SweepRun& run, size_t number, const Registries& registries,
                            StopToken& stop, std::ostream& out, std::string* directory) {
  line.tokens = run.tokens;
  SSL_ASSIGN_OR_RETURN(ConfigNode root, ComposeRoot(line, registries));
  *directory = root.FindPath("config.CHECKPOINT.DIR")->text();
  if (!ChoosesDirectory(run)) {
    absl::StrAppend(directory, "/sweep_", number);
    root.SetPath("config.CHECKPOINT.DIR", ConfigNode::FromString(*directory));
  }
  return RunEngines(root, registries, stop, out);
}

// "knn.trained=0.8796 train.seconds=12.5": the first numbers of the run's results.
void AppendNumbers(const ConfigNode& node, const std::string& path, std::vector<std::string>* numbers) {
  for (const auto& [key, value] : node.entries()) AppendNumbers(value, JoinPath(path, key), numbers);
  const absl::StatusOr<double> number =
      node.is_scalar() ? node.AsDouble() : absl::StatusOr<double>(absl::UnknownError(""));
  if (number.ok() && numbers->size() < kMostResults) numbers->push_back(absl::StrFormat("%s=%.6g", path, *number));
}

int ExitCodeOf(ConfigVerdict verdict) {
  switch (verdict) {
    case ConfigVerdict::kRuns:
      return kExitFinished;
    case ConfigVerdict::kMistakes:
      return kExitConfiguration;
    case ConfigVerdict::kIncomplete:
      return kExitIncomplete;
  }
  return kExitFailed;
}

std::string TableLine(size_t number, const SweepRun& run, const Outcome& outcome) {
  std::vector<std::string> numbers;
  const absl::StatusOr<ConfigNode> results =
      ReadResults(absl::StrCat(outcome.directory, "/results.json"), PosixFileSystem());
  if (outcome.exit_code == kExitFinished && results.ok()) AppendNumbers(*results, "", &numbers);
  const char* state = outcome.exit_code == kExitFinished  ? "finished"
                      : outcome.exit_code == kExitStopped ? "stopped"
                                                          : "failed";
  return absl::StrFormat("sweep_%-3d %-9s %s  %s%s\n", number, state, absl::StrJoin(run.choices, " "),
                         absl::StrJoin(numbers, " "), outcome.error);
}

}  // namespace

int RunSweep(const CommandLine& line, const std::vector<SweepRun>& runs, const Registries& registries, StopToken& stop,
             std::ostream& out) {
  std::vector<Outcome> outcomes;
  int exit_code = kExitFinished;
  for (size_t i = 0; i < runs.size() && !stop.requested(); ++i) {
    out << "sweep " << i + 1 << " of " << runs.size() << ": " << absl::StrJoin(runs[i].choices, " ") << "\n"
        << std::flush;
    Outcome& outcome = outcomes.emplace_back();
    const absl::StatusOr<bool> finished = RunOne(line, runs[i], i, registries, stop, out, &outcome.directory);
    if (!finished.ok()) {
      outcome.exit_code = ExitCodeOf(finished.status());
      outcome.error = std::string(finished.status().message());
    } else if (!*finished) {
      outcome.exit_code = kExitStopped;
    }
    if (exit_code == kExitFinished) exit_code = outcome.exit_code;
  }
  for (size_t i = 0; i < outcomes.size(); ++i) out << TableLine(i, runs[i], outcomes[i]);
  if (outcomes.size() < runs.size()) out << runs.size() - outcomes.size() << " runs were not started\n";
  return stop.requested() ? kExitStopped : exit_code;
}

int CheckRuns(const CommandLine& line, const std::vector<SweepRun>& runs, const Registries& registries,
              std::ostream& out) {
  int exit_code = kExitFinished;
  for (const SweepRun& run : runs) {
    CommandLine own = line;
    own.tokens = run.tokens;
    const ConfigReport report = CheckConfig(MakeComposeRequest(own, registries), registries);
    if (runs.size() > 1) out << absl::StrJoin(run.choices, " ") << "\n";
    out << FormatReport(report) << std::flush;
    const int own_code = ExitCodeOf(VerdictOf(report));
    if (exit_code == kExitFinished || own_code == kExitConfiguration) exit_code = own_code;
  }
  return exit_code;
}

}  // namespace ssl
