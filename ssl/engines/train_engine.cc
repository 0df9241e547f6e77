// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/train_engine.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ssl/base/clock.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/run_progress.h"
#include "ssl/core/session.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/broken_images_results.h"
#include "ssl/engines/run_files.h"
#include "ssl/hooks/broken_images_hook.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

constexpr char kTrainSeconds[] = "train_seconds";
constexpr char kBrokenTotal[] = "broken_images.total";

// What earlier sessions of this run took; nothing for a run that starts from the beginning.
double EarlierSeconds(const ConfigNode& results, bool resumed) {
  const ConfigNode* recorded = results.Find(kTrainSeconds);
  return resumed && recorded != nullptr ? recorded->AsDouble().value_or(0.0) : 0.0;
}

// Before the session starts, which removes the checkpoints: while they are there, a start after a crash knows that
// there is something to remove.
absl::Status RemoveEarlierEvaluations(EngineContext& context) {
  context.results = ConfigNode::Map();
  const auto remove = [&] {
    return RemoveEvaluationFiles(context.run_directory, context.registries.engines.Names(), context.file_system);
  };
  return OnRankZero(remove, "removing what evaluations of an earlier run left", context.communicator);
}

absl::Status NoteBeginning(const EngineContext& context) {
  return context.on_training_begins != nullptr ? context.on_training_begins() : absl::OkStatus();
}

// A file that was cut off, or is another program's, is no reason to refuse a training that is done.
absl::StatusOr<std::map<std::string, int64_t>> ReadOrSetAsideCounts(const std::string& path, FileSystem& file_system) {
  absl::StatusOr<std::map<std::string, int64_t>> counts = ReadBrokenImageCounts(file_system, path);
  if (!absl::IsDataLoss(counts.status())) return counts;
  const std::string aside = absl::StrCat(path, ".damaged");
  SSL_RETURN_IF_ERROR(file_system.Rename(path, aside));
  SSL_LOG(WARNING) << counts.status().message() << "; it is " << aside << " now";
  return std::map<std::string, int64_t>();
}

// What the hook broken_images has counted over the whole run; nothing where it has met none.
absl::Status AddBrokenImages(EngineContext& context) {
  if (context.run_directory.empty()) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(
      const auto counts,
      ReadOrSetAsideCounts(absl::StrCat(context.run_directory, "/", kBrokenImagesFile), context.file_system));
  if (counts.empty()) return absl::OkStatus();
  context.results.Set(kBrokenImagesKey, BrokenImagesTree(counts));
  return absl::OkStatus();
}

// results: with what AddBrokenImages has put there.
std::string Summary(const Session& session, bool stopped, double seconds, const ConfigNode& results) {
  const TrainState& state = session.state();
  const bool is_early = !stopped && state.iteration < state.max_iterations;  // a hook ended it, and has logged why
  const absl::string_view how = stopped ? "stopped" : is_early ? "finished early" : "finished";
  const ConfigNode* broken = results.FindPath(kBrokenTotal);
  return absl::StrFormat(
      "%s at iteration %d of %d after %.1f s of training%s%s%s", how, state.iteration, state.max_iterations, seconds,
      broken == nullptr ? "" : absl::StrCat("; of the run's images ", broken->text(), " could not be read"),
      is_early ? absl::StrCat(": ", session.end_reason()) : "", stopped ? "; the same command goes on" : "");
}

class TrainEngine : public Engine {
 public:
  bool trains() const override { return true; }

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    SessionOptions options;
    options.communicator = &context.communicator;
    options.stop = &context.stop;
    options.file_system = &context.file_system;
    options.run_directory = context.held_directory;
    options.progress = context.progress;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(context.config, context.registries, std::move(options)));
    // Until here a stop may end the process at once; from here on it has something to save.
    if (context.progress != nullptr) context.progress->phase = "starting";
    // What takes the place of an earlier run is built, and nothing refuses it; what goes on has to be restored first.
    const bool replaces = session->removed_earlier_run();
    if (replaces) SSL_RETURN_IF_ERROR(NoteBeginning(context));
    if (replaces) SSL_RETURN_IF_ERROR(RemoveEarlierEvaluations(context));
    SSL_RETURN_IF_ERROR(session->Start());
    if (!replaces) SSL_RETURN_IF_ERROR(NoteBeginning(context));
    const double earlier = EarlierSeconds(context.results, session->state().iteration > 0);
    const int64_t first_iteration = session->state().iteration;
    const absl::Time begin = Clock::Real().Now();
    SSL_ASSIGN_OR_RETURN(const TrainOutcome outcome, session->Train());
    const bool has_trained = session->state().iteration > first_iteration;
    const double seconds = earlier + (has_trained ? absl::ToDoubleSeconds(Clock::Real().Now() - begin) : 0.0);
    context.results.Set(kTrainSeconds, ConfigNode::FromDouble(seconds));
    SSL_RETURN_IF_ERROR(
        OnRankZero([&] { return AddBrokenImages(context); }, "counting broken images", context.communicator));

    EngineReport report;
    report.stopped = outcome == TrainOutcome::kStopped;
    report.summary = Summary(*session, report.stopped, seconds, context.results);
    return report;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeTrainEngine(const ConfigNode& config, const BuildContext& context) {
  return std::make_unique<TrainEngine>();
}

}  // namespace ssl
