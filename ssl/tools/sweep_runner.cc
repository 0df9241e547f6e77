// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/sweep_runner.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/check/check_config.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/results_file.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/run_world.h"
#include "ssl/tools/sweep_identity.h"

namespace ssl {
namespace {

constexpr char kDirectory[] = "config.CHECKPOINT.DIR";
// Numbers of a run in the table; results.json has all.
constexpr size_t kMostResults = 12;

struct Outcome {
  std::string directory;
  int exit_code = kExitFinished;
  std::string error;  // "" unless the run failed
};

// Whether the choices give each run another directory.
bool ChooseDirectories(const std::vector<SweepRun>& runs) {
  std::set<std::string> chosen;
  for (const SweepRun& run : runs) {
    for (const std::string& choice : run.choices) {
      if (absl::StartsWith(choice, "config.CHECKPOINT.DIR=")) chosen.insert(choice);
    }
  }
  return chosen.size() == runs.size();
}

CommandLine WithTokens(CommandLine line, const SweepRun& run) {
  line.tokens = run.tokens;
  return line;
}

// What one run of the sweep is.
struct Member {
  std::string directory;
  ConfigNode root;
  std::vector<std::string> warnings;
};

// All runs, composed: a wrong value of the last one is not worth the hours of those before it. InvalidArgument names
// every one that is wrong, or whose directory another sweep or run has made.
absl::StatusOr<std::vector<Member>> ComposeAll(const CommandLine& line, const std::vector<SweepRun>& runs,
                                               const Registries& registries) {
  const bool are_chosen = ChooseDirectories(runs);
  std::vector<Member> members;
  std::vector<std::string> problems;
  for (const SweepRun& run : runs) {
    std::vector<std::string> warnings;
    absl::StatusOr<ConfigNode> root = ComposeRoot(WithTokens(line, run), registries, &warnings);
    const std::string below = are_chosen ? "" : absl::StrCat("/sweep_", members.size());
    Member& member = members.emplace_back();
    if (!root.ok()) {
      problems.push_back(absl::StrCat("sweep ", members.size(), " of ", runs.size(), " (",
                                      absl::StrJoin(run.choices, " "), "): ", root.status().message()));
      continue;
    }
    member.root = *std::move(root);
    member.warnings = std::move(warnings);
    const ConfigNode& base = *member.root.FindPath(kDirectory);
    member.directory = absl::StrCat(base.text(), below);
    const absl::Status status = CheckRunIdentity(member.directory, run.choices, PosixFileSystem());
    if (!status.ok()) problems.emplace_back(status.message());
    ConfigNode node = ConfigNode::FromString(member.directory);
    node.Relocate(base.location());  // where the user chose the directory of the sweep, if so
    member.root.SetPath(kDirectory, std::move(node));
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  return members;
}

absl::StatusOr<bool> RunOne(const Member& member, const SweepRun& run, const Registries& registries, StopToken& stop,
                            std::ostream& out) {
  SSL_RETURN_IF_ERROR(WriteRunIdentity(member.directory, run.choices, PosixFileSystem()));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  return RunEngines(member.root, member.warnings, registries, *communicator, stop, out);
}

// "knn.trained=0.8796 train.seconds=12.5": the numbers of the run's results.
void AppendNumbers(const ConfigNode& node, const std::string& path, std::vector<std::string>* numbers) {
  for (const auto& [key, value] : node.entries()) AppendNumbers(value, JoinPath(path, key), numbers);
  const absl::StatusOr<double> number =
      node.is_scalar() ? node.AsDouble() : absl::StatusOr<double>(absl::UnknownError(""));
  if (number.ok()) numbers->push_back(absl::StrFormat("%s=%.6g", path, *number));
}

// A sweep is one process, so that a run which fails leaves no rank waiting for the next one.
absl::Status CheckIsOneProcess(const RunWorld& world, const LaunchFlags& flags) {
  const WorldPlace& place = world.place;
  if (!world.launches && place.size == 1) return absl::OkStatus();
  const std::string asked = flags.launch.empty() ? "config.DISTRIBUTED.NUM_NODES and NUM_PROC_PER_NODE ask"
                                                 : absl::StrCat("--launch=", flags.launch, " asks");
  const std::string found =
      world.launches ? absl::StrCat(asked, " for ", place.size, place.size == 1 ? " rank" : " ranks")
                     : absl::StrCat(place.source, " has started it as rank ", place.rank, " of ", place.size);
  return absl::InvalidArgumentError(absl::StrCat(
      "a sweep runs in one process, and ", found, ": start each of its runs by itself, or take that away; ",
      "config.DISTRIBUTED.VIRTUAL_RANKS=", place.size, " gives one process as many ranks"));
}

absl::StatusOr<RunWorld> WorldOfStart(const ConfigNode& root, const LaunchFlags& flags, bool is_sweep) {
  SSL_ASSIGN_OR_RETURN(RunWorld world, FindWorld(root, flags));
  if (is_sweep) SSL_RETURN_IF_ERROR(CheckIsOneProcess(world, flags));
  return world;
}

// What a start would be refused for because of the run that its directory holds.
absl::Status Refusal(const CommandLine& line, const Registries& registries) {
  SSL_ASSIGN_OR_RETURN(Composition composition, ComposeUnresolved(line, registries));
  SSL_ASSIGN_OR_RETURN(const RunWorld world, FindWorld(composition.root, line.launch));
  SSL_ASSIGN_OR_RETURN(const ConfigNode root, ResolveRoot(std::move(composition), world.shape(), registries));
  return CheckStart(root, registries);
}

// A configuration without mistakes may still be another one than that of the run in its directory.
void AddRefusal(const CommandLine& line, const Registries& registries, ConfigReport* report) {
  if (VerdictOf(*report) != ConfigVerdict::kRuns) return;
  const absl::Status status = Refusal(line, registries);
  if (!status.ok()) report->mistakes.emplace_back(status.message());
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
  if (numbers.size() > kMostResults) {
    const size_t more = numbers.size() - kMostResults;
    numbers.resize(kMostResults);
    numbers.push_back(absl::StrCat("(", more, " more in results.json)"));
  }
  const char* state = outcome.exit_code == kExitFinished  ? "finished"
                      : outcome.exit_code == kExitStopped ? "stopped"
                                                          : "failed";
  return absl::StrFormat("sweep_%-3d %-9s %s  %s%s\n", number, state, absl::StrJoin(run.choices, " "),
                         absl::StrJoin(numbers, " "), outcome.error);
}

}  // namespace

absl::StatusOr<int> RunSweep(const CommandLine& line, const std::vector<SweepRun>& runs, const Registries& registries,
                             StopToken& stop, std::ostream& out) {
  SSL_ASSIGN_OR_RETURN(const Composition first, ComposeUnresolved(WithTokens(line, runs.front()), registries));
  SSL_RETURN_IF_ERROR(WorldOfStart(first.root, line.launch, /*is_sweep=*/true).status());
  SSL_ASSIGN_OR_RETURN(const std::vector<Member> members, ComposeAll(line, runs, registries));
  std::vector<Outcome> outcomes;
  int exit_code = kExitFinished;
  for (size_t i = 0; i < runs.size() && !stop.requested(); ++i) {
    out << "sweep " << i + 1 << " of " << runs.size() << ": " << absl::StrJoin(runs[i].choices, " ") << "\n"
        << std::flush;
    Outcome& outcome = outcomes.emplace_back();
    outcome.directory = members[i].directory;
    const absl::StatusOr<bool> finished = RunOne(members[i], runs[i], registries, stop, out);
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
  const auto place_world = [&](ConfigNode* root) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const RunWorld world, WorldOfStart(*root, line.launch, runs.size() > 1));
    SetWorldShape(world.shape(), root);
    return absl::OkStatus();
  };
  for (const SweepRun& run : runs) {
    ConfigReport report = CheckConfig(MakeComposeRequest(WithTokens(line, run), registries), registries, place_world);
    if (runs.size() == 1) AddRefusal(line, registries, &report);
    if (runs.size() > 1) out << absl::StrJoin(run.choices, " ") << "\n";
    out << FormatReport(report) << std::flush;
    const int own_code = ExitCodeOf(VerdictOf(report));
    if (exit_code == kExitFinished || own_code == kExitConfiguration) exit_code = own_code;
  }
  return exit_code;
}

}  // namespace ssl
