// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/graph_runs.h"

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/core/graph_train_step.h"
#include "ssl/core/metric_history.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/testing/standin_graph.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

constexpr int64_t kStepsPerEpoch = 6;

// A trunk without kernels of its own for the CPU. The learning rate is another one in each update. Without threads that
// read ahead, each batch is copied within its own update, and can be counted there.
constexpr char kCommon[] = R"(
DATA: {NUM_DATALOADER_WORKERS: 0, TRAIN: {DATA_LIMIT: 96, BATCHSIZE_PER_REPLICA: 16}}
MODEL:
  TRUNK:
    NAME: vision_transformer
    VISION_TRANSFORMERS: {IMAGE_SIZE: 16, PATCH_SIZE: 4, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_DIM: 30,
                          QKV_BIAS: True}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.1, end_value: 0.0}}}
)";

using Values = std::vector<std::pair<std::string, double>>;

// What an observer of the run sees: each loss, reports of phases, and what was measured in each update.
class NotesHook : public Hook {
 public:
  absl::string_view name() const override { return "notes"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }

  absl::Status OnLossAndMeter(StepContext& context) override {
    losses_.push_back(context.loss.detach());
    const Batch& batch = *context.batch;
    batch_tensors_ += static_cast<int64_t>(batch.views.size()) + (batch.targets.defined() ? 1 : 0);
    return absl::OkStatus();
  }

  absl::Status OnUpdate(StepContext& context) override {
    values_.emplace_back("learning rate", context.optimizer->groups()[0].learning_rate);
    return absl::OkStatus();
  }

  absl::Status OnPhaseEnd(StepContext& context) override {
    for (const MeterReport& report : context.meter_reports) {
      for (const MeterValue& value : report.values) {
        values_.emplace_back(absl::StrCat(report.meter, " ", value.metric), value.value);
      }
    }
    return absl::OkStatus();
  }

  absl::Status OnEnd(StepContext& context) override {
    for (const at::Tensor& loss : losses_) values_.emplace_back("loss", loss.item<double>());
    for (const char* name : {"Training/Loss", "Training/grad_norm"}) {
      const MetricHistory* history = context.metrics.History(name);
      for (int64_t age = 0; history != nullptr && age < history->size(); ++age) {
        values_.emplace_back(name, history->FromNewest(age).value);
      }
    }
    *out_ = values_;
    return absl::OkStatus();
  }

  explicit NotesHook(Values* out) : out_(out) {}
  int64_t batch_tensors() const { return batch_tensors_; }

 private:
  Values* const out_;
  std::vector<at::Tensor> losses_;
  Values values_;
  int64_t batch_tensors_ = 0;
};

int64_t Total(const TransferCounts& counts) {
  int64_t total = 0;
  for (const auto& entry : counts) total += entry.second;
  return total;
}

// Those of a run on the stand-in; `step`: the session's, once it is made.
absl::StatusOr<Registries> Parts(GraphTrainStep** step) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterProgramParts(&registries));
  SSL_RETURN_IF_ERROR(RegisterStandinGraph(&registries));
  SSL_RETURN_IF_ERROR(registries.train_steps.Register(
      "watched_graph_step",
      [step](const ConfigNode& params, const BuildContext& context) -> absl::StatusOr<std::unique_ptr<TrainStep>> {
        SSL_ASSIGN_OR_RETURN(std::unique_ptr<TrainStep> made, MakeGraphTrainStep(params, context));
        *step = static_cast<GraphTrainStep*>(made.get());
        return made;
      }));
  return registries;
}

// One step of the session, and what passed between host and device if it was a replay.
absl::Status Step(Session& session, const NotesHook& notes, const GraphTrainStep* step, GraphRunOutcome* outcome) {
  const int64_t replays = step != nullptr ? step->replays() : 0;
  const int64_t batch_tensors = notes.batch_tensors();
  const bool reports = session.state().iteration % kStepsPerEpoch == 0;  // at the end of the phase before it
  const TransferLog log;
  const int64_t iteration = session.state().iteration;
  SSL_ASSIGN_OR_RETURN(const bool goes_on, session.Step());
  SSL_RET_CHECK(goes_on || session.state().iteration > iteration, "the run ends before its last iteration");
  if (step == nullptr || step->replays() == replays || reports) return absl::OkStatus();
  for (const auto& [what, count] : log.reads()) outcome->reads[what] += count;
  outcome->uploads += Total(log.uploads());
  outcome->batch_uploads += notes.batch_tensors() - batch_tensors;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GraphRunOutcome> TrainGraphRun(GraphRun run) {
  GraphTrainStep* step = nullptr;
  SSL_ASSIGN_OR_RETURN(const Registries registries, Parts(&step));
  std::vector<std::string> texts = {kCommon};
  texts.insert(texts.end(), run.config.begin(), run.config.end());
  SSL_ASSIGN_OR_RETURN(ConfigNode whole, TrainingConfig(texts));
  whole.SetPath("DATA.TEST", *whole.FindPath("DATA.TRAIN"));  // for those that test
  whole.SetPath("MACHINE.DEVICE", ConfigNode::FromString(run.device));
  whole.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(run.directory));
  const std::string name = run.step == "graph_train_step" ? "watched_graph_step" : run.step;
  whole.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString(name));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(whole, registries, {}));
  GraphRunOutcome outcome;
  auto notes = std::make_unique<NotesHook>(&outcome.values);
  const NotesHook& noted = *notes;
  SSL_RETURN_IF_ERROR(session->AddHook(std::move(notes)));
  if (run.hook != nullptr) SSL_RETURN_IF_ERROR(session->AddHook(std::move(run.hook)));
  SSL_RETURN_IF_ERROR(session->Start());
  while (session->state().iteration < run.last_iteration) {
    SSL_RETURN_IF_ERROR(Step(*session, noted, step, &outcome));
  }
  if (step != nullptr) outcome.recordings = step->recordings();
  if (step != nullptr) outcome.replays = step->replays();
  SSL_RETURN_IF_ERROR(session->Finish());
  return outcome;
}

}  // namespace ssl
