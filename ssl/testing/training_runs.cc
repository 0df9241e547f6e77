// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/training_runs.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/meters/register_meters.h"
#include "ssl/methods/register_methods.h"

namespace ssl {
namespace {

constexpr char kBase[] = R"(
SEED_VALUE: 5
LOG_FREQUENCY: 1000
TEST_MODEL: False
DATA:
  NUM_DATALOADER_WORKERS: 1
  TRAIN:
    DATA_SOURCES: [synthetic]
    LABEL_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 80
    DEFAULT_GRAY_IMG_SIZE: 16
    RANDOM_SYNTHETIC_LABELS: 4
    DROP_LAST: True
OPTIMIZER: {name: sgd, momentum: 0.9, num_epochs: 4}
)";

class TraceHook : public Hook {
 public:
  explicit TraceHook(RankTrace* trace) : trace_(*trace) {}
  absl::string_view name() const override { return "trace"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }

  absl::Status OnStart(StepContext& context) override {
    trace_.first_iteration = context.state.iteration;
    return absl::OkStatus();
  }

  absl::Status OnLossAndMeter(StepContext& context) override {
    trace_.losses.push_back(context.loss.item<double>());
    const int64_t* const indices = context.batch->indices.const_data_ptr<int64_t>();
    trace_.images.emplace_back(indices, indices + context.batch->size());
    return absl::OkStatus();
  }

 private:
  RankTrace& trace_;
};

absl::StatusOr<ConfigNode> ConfigOf(const TrainingRun& run) {
  SSL_ASSIGN_OR_RETURN(ConfigNode config, TrainingConfig(run.config));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", ConfigNode::FromInt(run.ranks));
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", ConfigNode::FromInt(run.samples_per_update / run.ranks));
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(run.directory));
  return config;
}

absl::Status TrainRank(const TrainingRun& run, const Registries& registries, Communicator& communicator,
                       RankTrace* trace) {
  SSL_ASSIGN_OR_RETURN(ConfigNode config, ConfigOf(run));
  SessionOptions options;
  options.communicator = &communicator;
  if (run.make_source != nullptr) options.train_source = run.make_source(communicator);
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                       Session::Create(std::move(config), registries, std::move(options)));
  SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<TraceHook>(trace)));
  if (run.prepare != nullptr) SSL_RETURN_IF_ERROR(run.prepare(*session, communicator));
  SSL_RETURN_IF_ERROR(session->Start());
  bool goes_on = true;
  while (goes_on && (run.last_iteration < 0 || session->state().iteration < run.last_iteration)) {
    SSL_ASSIGN_OR_RETURN(goes_on, session->Step());
  }
  return session->Finish();
}

}  // namespace

absl::Status RegisterProgramParts(Registries* registries) {
  SSL_RETURN_IF_ERROR(RegisterMethods(registries));
  SSL_RETURN_IF_ERROR(RegisterData(registries));
  SSL_RETURN_IF_ERROR(RegisterHooks(registries));
  return RegisterMeters(registries);
}

absl::StatusOr<ConfigNode> TrainingConfig(const std::vector<std::string>& texts) {
  SSL_ASSIGN_OR_RETURN(ConfigNode config, ParseYaml(kBase, "base.yaml", nullptr));
  for (const std::string& text : texts) {
    SSL_ASSIGN_OR_RETURN(const ConfigNode part, ParseYaml(text, "test.yaml", nullptr));
    MergeInto(&config, part);
  }
  return config;
}

absl::StatusOr<std::vector<RankTrace>> Train(const TrainingRun& run) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterProgramParts(&registries));
  if (run.add_parts != nullptr) SSL_RETURN_IF_ERROR(run.add_parts(&registries));
  std::vector<RankTrace> traces(static_cast<size_t>(run.ranks));
  const auto train = [&](Communicator& communicator) {
    return TrainRank(run, registries, communicator, &traces[static_cast<size_t>(communicator.rank())]);
  };
  SSL_RETURN_IF_ERROR(run.take_turns ? VirtualWorld(run.ranks, *MakeLocalCommunicator()).Run(train)
                                     : ThreadWorld(run.ranks, absl::Seconds(120)).Run(train));
  return traces;
}

std::vector<double> MeanLosses(const std::vector<RankTrace>& ranks) {
  std::vector<double> means = ranks[0].losses;
  for (size_t step = 0; step < means.size(); ++step) {
    for (size_t rank = 1; rank < ranks.size(); ++rank) means[step] += ranks[rank].losses[step];
    means[step] /= static_cast<double>(ranks.size());
  }
  return means;
}

}  // namespace ssl
