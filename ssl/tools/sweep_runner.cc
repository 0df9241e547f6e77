// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/sweep_runner.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/check/check_config.h"
#include "ssl/check/named_components.h"
#include "ssl/config/yaml.h"
#include "ssl/data/datasets/scan_progress.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/tools/apart_from_data.h"
#include "ssl/tools/directory_in_use.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/launch_check.h"
#include "ssl/tools/launch_ranks.h"
#include "ssl/tools/run_world.h"
#include "ssl/tools/signals.h"
#include "ssl/tools/sweep_identity.h"
#include "ssl/tools/sweep_table.h"
#include "ssl/tools/writable_directory.h"

namespace ssl {
namespace {

constexpr char kDirectory[] = "config.CHECKPOINT.DIR";
constexpr char kEngineChoice[] = "engine_name=";

// What all runs of a sweep have in common.
struct SweepContext {
  const CommandLine& line;
  const Registries& registries;
  StopToken& stop;
  std::ostream& out;
  // As it was when the sweep began, which takes days: a deployment must not change its later runs.
  absl::StatusOr<std::unique_ptr<ThisProgram>> program;
};

struct RunEnd {
  int exit_code = kExitFinished;
  bool user_stopped = false;
  std::string error;  // "" unless it failed
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
  RunWorld world;
  ConfigNode root;
  std::vector<std::string> warnings;
};

// Ranks of another launcher cannot start again for the next run when one of them has failed in this one.
absl::Status CheckStartsAll(const RunWorld& world) {
  const WorldPlace& place = world.place;
  const bool starts_all = world.launches && place.local_size == place.size;
  if (starts_all || (!world.launches && place.size == 1)) return absl::OkStatus();
  const std::string found = world.launches
                                ? absl::StrCat("this command starts ", place.local_size, " of ", place.size, " ranks")
                                : absl::StrCat("by ", place.source, " it is rank ", place.rank, " of ", place.size);
  return absl::InvalidArgumentError(
      absl::StrCat("a sweep runs in one process or starts all of its ranks on one host, and ", found,
                   ": start each of its runs by itself; --launch=local:N starts N ranks for each of them"));
}

absl::StatusOr<RunWorld> WorldOfStart(const ConfigNode& root, const LaunchFlags& flags, bool is_sweep) {
  SSL_ASSIGN_OR_RETURN(RunWorld world, FindWorld(root, flags));
  if (is_sweep) SSL_RETURN_IF_ERROR(CheckStartsAll(world));
  return world;
}

// below: of the directory of the sweep, where it runs.
absl::StatusOr<Member> ComposeMember(const CommandLine& line, const std::string& below, const Registries& registries) {
  Member member;
  SSL_ASSIGN_OR_RETURN(Composition composition, ComposeUnresolved(line, registries));
  SSL_ASSIGN_OR_RETURN(member.world, WorldOfStart(composition.root, line.launch, /*is_sweep=*/true));
  SSL_ASSIGN_OR_RETURN(member.root,
                       ResolveRoot(std::move(composition), member.world.shape(), registries, &member.warnings));
  const ConfigNode& base = *member.root.FindPath(kDirectory);
  member.directory = absl::StrCat(base.text(), below);
  ConfigNode node = ConfigNode::FromString(member.directory);
  node.Relocate(base.location());  // where the user chose the directory of the sweep, if so
  member.root.SetPath(kDirectory, std::move(node));
  SSL_RETURN_IF_ERROR(CheckApartFromData(member.root));
  return member;
}

// Once: what a host has no room for, it has no room for in any of the runs.
void AddProblem(const absl::Status& status, std::vector<std::string>* problems) {
  const bool is_new = std::count(problems->begin(), problems->end(), status.message()) == 0;
  if (!status.ok() && is_new) problems->emplace_back(status.message());
}

// Of each run that could not be composed, or once what is wrong with all of them.
std::vector<std::string> MistakesOf(const std::vector<SweepRun>& runs, const std::vector<absl::Status>& composed) {
  const auto is_as_first = [&](const absl::Status& status) { return status == composed.front(); };
  if (!composed.front().ok() && std::all_of(composed.begin(), composed.end(), is_as_first)) {
    return {std::string(composed.front().message())};
  }
  std::vector<std::string> mistakes;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (composed[i].ok()) continue;
    mistakes.push_back(absl::StrCat("sweep ", i + 1, " of ", runs.size(), " (", absl::StrJoin(runs[i].choices, " "),
                                    "): ", composed[i].message()));
  }
  return mistakes;
}

// Ranks are started by a process without threads, which a run in it leaves behind.
absl::Status CheckRunAlike(const std::vector<Member>& members) {
  const auto launches = [](const Member& member) { return member.world.launches; };
  const int64_t started = std::count_if(members.begin(), members.end(), launches);
  if (started == 0 || started == static_cast<int64_t>(members.size())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("of the ", members.size(), " runs of this sweep ", started,
                                                 " have several ranks, expected all or none: --launch=local:1 makes a "
                                                 "single rank of the others' process"));
}

// The engines of a sweep over engines, as one run has them: "engine_name=[train,knn]"; "" for any other sweep.
std::string EnginesOfOneRun(const std::vector<SweepRun>& runs) {
  std::vector<std::string> engines;
  for (const SweepRun& run : runs) {
    for (absl::string_view choice : run.choices) {
      if (!absl::ConsumePrefix(&choice, kEngineChoice)) continue;
      if (absl::StartsWith(choice, "[")) return "";
      if (std::count(engines.begin(), engines.end(), choice) == 0) engines.emplace_back(choice);
    }
  }
  return engines.empty() ? "" : absl::StrCat(kEngineChoice, "[", absl::StrJoin(engines, ","), "]");
}

// A comma makes several runs: the second one's engine finds nothing of what the first one has trained.
absl::Status CheckFindTrained(const std::vector<SweepRun>& runs, const std::vector<Member>& members) {
  const std::string one_run = EnginesOfOneRun(runs);
  if (one_run.empty() || ChooseDirectories(runs)) return absl::OkStatus();
  const auto trains = [](const Member& member) { return MeansToTrain(member.root); };
  for (auto member = std::find_if(members.begin(), members.end(), trains); member != members.end(); ++member) {
    const ConfigNode* weights = member->root.FindPath("config.MODEL.WEIGHTS_INIT.PARAMS_FILE");
    if (trains(*member) || (weights != nullptr && !weights->text().empty())) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("command line: each value of engine_name=A,B makes a run in a directory of its own, and in ",
                     member->directory, " nothing will be trained for ", absl::StrJoin(EngineNames(member->root), ", "),
                     "; expected ", one_run, ", one run of these engines"));
  }
  return absl::OkStatus();
}

// All runs, composed: a wrong value of the last one is not worth the hours of those before it. InvalidArgument names
// every one that is wrong, that has no room here, or whose directory another sweep or run has made. Unavailable where
// one of them is up already and none is wrong: that passes, and so may what there is no room for, such as its port,
// which is that of each of its runs. As CheckCanBeWritten where a directory is not to be had. Each has all lines.
absl::StatusOr<std::vector<Member>> ComposeAll(const CommandLine& line, const std::vector<SweepRun>& runs,
                                               const Registries& registries) {
  const bool are_chosen = ChooseDirectories(runs);
  std::vector<Member> members;
  std::vector<absl::Status> composed;
  std::vector<std::string> of_others;  // runs and sweeps, which have made a directory
  std::vector<std::string> no_room;
  absl::Status storage;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string below = are_chosen ? "" : absl::StrCat("/sweep_", i);
    absl::StatusOr<Member> member = ComposeMember(WithTokens(line, runs[i]), below, registries);
    composed.push_back(member.status());
    if (!member.ok()) continue;
    const absl::Status is_up = CheckNotInUse(member->root);
    storage.Update(is_up);
    if (i == 0) storage.Update(CheckSweepNotInUse(member->root));
    storage.Update(CheckCanBeWritten(member->root));
    AddProblem(CheckRunIdentity(member->directory, runs[i].choices, PosixFileSystem()), &of_others);
    if (is_up.ok()) AddProblem(CheckCanStart(member->world), &no_room);
    members.push_back(*std::move(member));
  }
  std::vector<std::string> mistakes = MistakesOf(runs, composed);
  mistakes.insert(mistakes.end(), of_others.begin(), of_others.end());
  std::vector<std::string> problems;
  AddProblem(storage, &problems);
  problems.insert(problems.end(), mistakes.begin(), mistakes.end());
  problems.insert(problems.end(), no_room.begin(), no_room.end());
  if (mistakes.empty() && !storage.ok()) return absl::Status(storage.code(), absl::StrJoin(problems, "\n"));
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  SSL_RETURN_IF_ERROR(CheckRunAlike(members));
  SSL_RETURN_IF_ERROR(CheckFindTrained(runs, members));
  return members;
}

absl::StatusOr<RunEnd> RunHere(const Member& member, const SweepContext& context) {
  StopOnSignals(&context.stop, /*has_peers=*/false);
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  SSL_ASSIGN_OR_RETURN(const bool finished, RunEngines(member.root, member.warnings, context.registries, *communicator,
                                                       context.stop, context.out));
  return RunEnd{finished ? kExitFinished : kExitStopped, /*user_stopped=*/false, ""};
}

// Of a rank. The directory is a value like any other there: one with a comma would be two.
std::vector<std::string> ArgumentsOf(const Member& member, const SweepRun& run, const CommandLine& line) {
  std::vector<std::string> arguments = run.tokens;
  const auto chosen = [](const std::string& token) { return absl::StartsWith(token, "config.CHECKPOINT.DIR="); };
  arguments.erase(std::remove_if(arguments.begin(), arguments.end(), chosen), arguments.end());
  const std::string directory = WriteYaml(ConfigNode::FromString(member.directory));
  arguments.push_back(absl::StrCat(kDirectory, "=", absl::StripSuffix(directory, "\n")));
  if (!line.config_dir.empty()) arguments.push_back(absl::StrCat("--config_dir=", line.config_dir));
  return arguments;
}

// The ranks find their place in the environment, so that they need none of the command's flags for it.
absl::StatusOr<RunEnd> RunAsRanks(const Member& member, const SweepRun& run, const SweepContext& context) {
  SSL_RETURN_IF_ERROR(context.program.status());
  SSL_RETURN_IF_ERROR(UnlessInUse(CheckLaunch(member.root, member.world, context.registries), member.root));
  SSL_ASSIGN_OR_RETURN(const LaunchOutcome outcome,
                       LaunchRanks(**context.program, member.world, member.root, ArgumentsOf(member, run, context.line),
                                   context.line.launch.restarts, context.stop));
  // A second signal ends ranks that have not saved yet: not as they would have liked to, but no failure either.
  const bool ended_by_user = outcome.user_stopped && !outcome.first_failure.has_value() && outcome.exit_code != 0;
  RunEnd end{ended_by_user ? kExitStopped : outcome.exit_code, outcome.user_stopped, ""};
  if (outcome.first_failure.has_value()) end.error = DescribeEnd(*outcome.first_failure);
  return end;
}

absl::StatusOr<RunEnd> RunOne(const Member& member, const SweepRun& run, const SweepContext& context) {
  SSL_RETURN_IF_ERROR(WriteRunIdentity(member.directory, run.choices, PosixFileSystem()));
  return member.world.launches ? RunAsRanks(member, run, context) : RunHere(member, context);
}

// What a start would be refused for because of this host, or of the run that its directory holds, and warned of. The
// check has resolved the configuration, and said in the log what that came to.
absl::Status Refusal(const CommandLine& line, const Registries& registries, ConfigReport* report) {
  SSL_ASSIGN_OR_RETURN(Composition composition, ComposeUnresolved(line, registries));
  SSL_ASSIGN_OR_RETURN(const RunWorld world, FindWorld(composition.root, line.launch));
  SSL_RETURN_IF_ERROR(CheckApartFromData(composition.root));
  SSL_RETURN_IF_ERROR(CheckNotInUse(composition.root));
  SSL_RETURN_IF_ERROR(CheckCanStart(world));
  SSL_RETURN_IF_ERROR(CheckCanBeWritten(composition.root));
  for (const std::string& warning : {CrowdWarning(world), OverruledWarning(composition.root, world)}) {
    if (!warning.empty()) report->warnings.push_back(warning);
  }
  ConfigNode config = report->config;
  config.SetPath("CHECKPOINT.DIR", *composition.root.FindPath("config.CHECKPOINT.DIR"));
  composition.root.Set("config", std::move(config));
  return CheckStart(composition.root, registries);
}

// Files of the run among its images are mistakes of the data, of which this is the cause.
void AddPlaceOfRun(const CommandLine& line, const Registries& registries, ConfigReport* report) {
  const absl::StatusOr<Composition> composition = ComposeUnresolved(line, registries);
  const absl::Status place = composition.ok() ? CheckApartFromData(composition->root) : absl::OkStatus();
  if (!place.ok()) report->mistakes.emplace(report->mistakes.begin(), place.message());
}

// A configuration without mistakes may still not be that of the run in its directory, or ask for more ranks than there
// is room for. Returns whether it is refused for its directory (exit code 5), as where that run is up.
bool AddRefusal(const CommandLine& line, const Registries& registries, ConfigReport* report) {
  if (VerdictOf(*report) == ConfigVerdict::kMistakes) AddPlaceOfRun(line, registries, report);
  if (VerdictOf(*report) != ConfigVerdict::kRuns && !LacksDeviceAlone(*report)) return false;
  const absl::Status status = Refusal(line, registries, report);
  if (!status.ok()) (absl::IsDataLoss(status) ? report->damaged_data : report->mistakes).emplace_back(status.message());
  return ExitCodeOf(status) == kExitStorage;
}

// Takes what parts say in the log while a configuration is tried out, each line once.
class LoggedLines : public LogSink {
 public:
  LoggedLines() { AddLogSink(this); }
  ~LoggedLines() override { RemoveLogSink(this); }
  LoggedLines(const LoggedLines&) = delete;
  LoggedLines& operator=(const LoggedLines&) = delete;

  void Write(LogSeverity severity, absl::string_view /*file*/, int /*line*/, absl::string_view message) override {
    if (severity == LogSeverity::kError) return;
    if (absl::EndsWith(message, kSoFar)) {  // whoever waits wants it now, and nobody later
      std::cerr << message << std::endl;
      return;
    }
    std::vector<std::string>& lines = severity == LogSeverity::kWarning ? warnings_ : notes_;
    if (std::count(lines.begin(), lines.end(), message) == 0) lines.emplace_back(message);
  }

  const std::vector<std::string>& warnings() const { return warnings_; }
  // "notes:", and a line for each; "" for none.
  std::string Notes() const {
    return notes_.empty() ? "" : absl::StrCat("notes:\n  ", absl::StrJoin(notes_, "\n  "), "\n");
  }

 private:
  std::vector<std::string> warnings_;
  std::vector<std::string> notes_;
};

// What is to be told of one run beside its report goes to `notes`.
ConfigReport CheckAndListen(const ComposeRequest& request, const Registries& registries,
                            const WorldPlacement& place_world, std::string* notes) {
  ConfigReport report;
  {
    const LoggedLines logged;
    report = CheckConfig(request, registries, place_world);
    report.warnings.insert(report.warnings.end(), logged.warnings().begin(), logged.warnings().end());
    *notes = logged.Notes();
  }
  report.tokens_for_here = FindTokensForHere(request, registries, place_world, report);
  return report;
}

int ExitCodeOf(ConfigVerdict verdict) {
  switch (verdict) {
    case ConfigVerdict::kRuns:
      return kExitFinished;
    case ConfigVerdict::kMistakes:
      return kExitConfiguration;
    case ConfigVerdict::kDamagedData:
      return kExitData;
    case ConfigVerdict::kIncomplete:
      return kExitIncomplete;
  }
  return kExitFailed;
}

}  // namespace

absl::StatusOr<int> RunSweep(const CommandLine& line, const std::vector<SweepRun>& runs, const Registries& registries,
                             StopToken& stop, std::ostream& out) {
  const SweepContext context{line, registries, stop, out, ThisProgram::Open()};
  SSL_ASSIGN_OR_RETURN(const std::vector<Member> members, ComposeAll(line, runs, registries));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock, LockSweep(members.front().root));
  std::vector<SweepOutcome> outcomes;
  int exit_code = kExitFinished;
  bool is_stopped = false;
  for (size_t i = 0; i < runs.size() && !is_stopped; ++i) {
    out << "sweep " << i + 1 << " of " << runs.size() << ": " << absl::StrJoin(runs[i].choices, " ") << "\n"
        << std::flush;
    SweepOutcome& outcome = outcomes.emplace_back();
    outcome.directory = members[i].directory;
    const absl::StatusOr<RunEnd> end = RunOne(members[i], runs[i], context);
    outcome.exit_code = end.ok() ? end->exit_code : ExitCodeOf(end.status());
    outcome.error = end.ok() ? end->error : std::string(end.status().message());
    // While ranks run, their launcher hears signals in this one's place. A run that stops by itself stops no other.
    is_stopped = stop.requested() || (end.ok() && end->user_stopped);
    if (exit_code == kExitFinished) exit_code = outcome.exit_code;
  }
  for (size_t i = 0; i < outcomes.size(); ++i) out << SweepRow(i, runs[i], outcomes[i], PosixFileSystem());
  if (outcomes.size() < runs.size()) out << runs.size() - outcomes.size() << " runs were not started\n";
  return is_stopped ? kExitStopped : exit_code;
}

int CheckRuns(const CommandLine& line, const std::vector<SweepRun>& runs, const Registries& registries,
              std::ostream& out) {
  int exit_code = kExitFinished;
  const auto place_world = [&](ConfigNode* root) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const RunWorld world, WorldOfStart(*root, line.launch, runs.size() > 1));
    SetWorldShape(world.shape(), RanksFrom(line.launch), root);
    // Of a sweep it is said once, below.
    if (!world.launches || runs.size() > 1) return absl::OkStatus();
    return CheckRoom(world.place.local_size, HostRoom::OfThisHost());
  };
  std::string reports;
  for (const SweepRun& run : runs) {
    std::string notes;
    ConfigReport report =
        CheckAndListen(MakeComposeRequest(WithTokens(line, run), registries), registries, place_world, &notes);
    const bool is_storage = runs.size() == 1 && AddRefusal(line, registries, &report);
    if (runs.size() > 1) absl::StrAppend(&reports, absl::StrJoin(run.choices, " "), "\n");
    absl::StrAppend(&reports, notes, FormatReport(report));
    const int own_code = is_storage ? kExitStorage : ExitCodeOf(VerdictOf(report));
    if (exit_code == kExitFinished || own_code == kExitConfiguration) exit_code = own_code;
  }
  const bool may_start = runs.size() > 1 && exit_code == kExitFinished;
  const absl::Status refusal = may_start ? ComposeAll(line, runs, registries).status() : absl::OkStatus();
  // Alone: that each by itself would run is not what was asked.
  if (!refusal.ok()) reports = absl::StrCat("as a sweep they would not start: ", refusal.message(), "\n");
  out << reports << std::flush;
  return refusal.ok() ? exit_code : ExitCodeOf(refusal);
}

}  // namespace ssl
