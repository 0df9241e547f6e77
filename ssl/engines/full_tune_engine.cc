// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/full_tune_engine.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/reader.h"
#include "ssl/core/batch.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/core_options.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/data/samplers/sampler_keys.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/accuracy_recorder.h"
#include "ssl/engines/checkpoint_settings.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/full_tune_data.h"
#include "ssl/engines/run_files.h"
#include "ssl/io/output_folder.h"

namespace ssl {
namespace {

constexpr char kSection[] = "FULL_TUNE";
constexpr char kLoss[] = "cross_entropy_multiple_output_single_target";
// What ends a pre-training, and keeps or measures parts of it, knows nothing of a fine-tuning.
constexpr absl::string_view kOfThePretraining =
    "HOOKS.BEST_CHECKPOINT HOOKS.COLLAPSE_MONITOR HOOKS.EARLY_STOP HOOKS.EMA_MODEL HOOKS.EVAL MODEL.GRAD_CLIP "
    "PROFILING TEST_ANCHOR TEST_START";
constexpr char kMeter[] = "accuracy_list_meter";
// Of the fine-tuning run only. No file may set it.
constexpr char kInitialWeights[] = "FULL_TUNE.initial_weights";

// A section, or key, that is there, back to its default.
void Reset(absl::string_view path, const ConfigNode& defaults, ConfigNode* config) {
  if (config->FindPath(path) == nullptr) return;
  const ConfigNode* node = defaults.FindPath(path);
  config->SetPath(path, node != nullptr ? *node : ConfigNode::Map());
}

void SetModel(const ConfigNode& defaults, const FullTuneTask& task, ConfigNode* config) {
  Reset("MODEL.FEATURE_EVAL_SETTINGS", defaults, config);
  for (const char* list :
       {"MODEL.TEMP_FROZEN_PARAMS_ITER_MAP", "MODEL.NON_TRAINABLE_PARAMS", "MODEL.MULTI_INPUT_HEAD_MAPPING"}) {
    config->SetPath(list, ConfigNode::List());
  }
  ConfigNode arguments = ConfigNode::Map();
  arguments.Set("dims", ConfigNode::FromInts({task.feature_size, task.num_classes}));
  ConfigNode head = ConfigNode::List();
  head.Append(ConfigNode::FromString("mlp"));
  head.Append(std::move(arguments));
  ConfigNode heads = ConfigNode::List();
  heads.Append(std::move(head));
  config->SetPath("MODEL.HEAD.PARAMS", std::move(heads));
  if (!task.params_file.empty()) {
    Reset("MODEL.WEIGHTS_INIT", defaults, config);
    config->SetPath("MODEL.WEIGHTS_INIT.PARAMS_FILE", ConfigNode::FromString(task.params_file));
  }
  // The new head starts from random weights, whatever heads the file has.
  config->SetPath("MODEL.WEIGHTS_INIT.SKIP_LAYERS", ConfigNode::FromStrings({"num_batches_tracked", "heads."}));
}

// Of the list only memory_checkpoint stays, without which the network may not fit into memory.
void RemoveHooks(const ConfigNode& defaults, ConfigNode* config) {
  for (const absl::string_view key : absl::StrSplit(kOfThePretraining, ' ')) Reset(key, defaults, config);
  const ConfigNode* hooks = config->Find("hooks");
  if (hooks == nullptr || !hooks->is_list()) return;
  ConfigNode kept = ConfigNode::List(hooks->location());
  for (const ConfigNode& hook : hooks->items()) {
    const ConfigNode* type = hook.Find("type");
    if (type != nullptr && type->text() == "memory_checkpoint") kept.Append(hook);
  }
  config->Set("hooks", std::move(kept));
}

// Each image that has a label, with its own, once an epoch. What chose, repeated, exchanged or joined the samples of
// the pre-training would do so to the few with labels.
void SetSamples(const ConfigNode& defaults, ConfigNode* config) {
  for (const std::string& sampler : SamplerKeys()) Reset(absl::StrCat("DATA.TRAIN.", sampler), defaults, config);
  for (const char* key : {"MINI_EPOCH_GROUPS", "ENABLE_QUEUE_DATASET", "AUGMENT_ON"}) {
    Reset(absl::StrCat("DATA.TRAIN.", key), defaults, config);
  }
  config->SetPath("DATA.TRAIN.DROP_LAST", ConfigNode::FromBool(false));
  for (const char* split : {"DATA.TRAIN", "DATA.TEST"}) {
    config->SetPath(absl::StrCat(split, ".COLLATE_FUNCTION"), ConfigNode::FromString("default_collate"));
    config->SetPath(absl::StrCat(split, ".LABEL_TYPE"), ConfigNode::FromString("standard"));
    for (const char* key : {"COLLATE_FUNCTION_PARAMS", "INPUT_KEY_NAMES", "TARGET_KEY_NAMES"}) {
      Reset(absl::StrCat(split, ".", key), defaults, config);
    }
  }
}

void SetData(const ConfigNode& defaults, const FullTuneOptions& options, const FullTuneTask& task, ConfigNode* config) {
  const ConfigNode* evaluation = config->FindPath("DATA.TEST.TRANSFORMS");
  const bool own = evaluation == nullptr || !options.transforms.items().empty();
  config->SetPath("DATA.TRAIN.TRANSFORMS", own ? options.transforms : *evaluation);
  int64_t batch_size = options.batch_size;
  for (const int64_t samples : {options.data_limit, task.samples_per_rank}) {
    if (samples > 0) batch_size = std::min(batch_size, samples);
  }
  config->SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", ConfigNode::FromInt(batch_size));
  SetSamples(defaults, config);
  SetFewLabels(options.data_limit, config);
}

void SetOptimizer(const ConfigNode& defaults, const FullTuneOptions& options, ConfigNode* config) {
  Reset("OPTIMIZER", defaults, config);
  config->SetPath("OPTIMIZER.name", ConfigNode::FromString("sgd"));
  config->SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(options.num_epochs));
  config->SetPath("OPTIMIZER.nesterov", ConfigNode::FromBool(true));
  config->SetPath("OPTIMIZER.weight_decay", ConfigNode::FromDouble(options.weight_decay));
  const std::string schedule = "OPTIMIZER.param_schedulers.lr.";
  config->SetPath(schedule + "name", ConfigNode::FromString("cosine"));
  config->SetPath(schedule + "update_interval", ConfigNode::FromString("step"));
  config->SetPath(schedule + "start_value", ConfigNode::FromDouble(options.learning_rate));
  config->SetPath(schedule + "end_value", ConfigNode::FromDouble(0.0));
}

void SetMeters(const ConfigNode& defaults, int64_t num_classes, ConfigNode* config) {
  Reset("METERS", defaults, config);
  config->SetPath("METERS.names", ConfigNode::FromStrings({kMeter}));
  std::vector<int64_t> topk = {1};
  if (num_classes > 1) topk.push_back(std::min<int64_t>(5, num_classes));
  config->SetPath(absl::StrCat("METERS.", kMeter, ".topk_values"), ConfigNode::FromInts(topk));
}

// The size of the trunk's last feature, by a forward pass over one batch.
absl::StatusOr<int64_t> FeatureSize(Model& model, EngineContext& context) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source, MakeSplitSource("TEST", context));
  SSL_RETURN_IF_ERROR(source->StartEpoch(0, 0));
  SSL_ASSIGN_OR_RETURN(const Batch* batch, source->Next());
  SSL_RET_CHECK(batch != nullptr && !batch->views.empty(), "DATA.TEST gives no pictures");
  int64_t size = 0;
  SSL_RETURN_IF_ERROR(GuardTorch("measuring the trunk's output", [&]() -> absl::Status {
    const std::vector<std::string> names = model.feature_names();
    FeatureRequest last;
    last.name = names.empty() ? "res5avg" : names.back();
    size = model.Features(batch->views[0].slice(0, 0, 2), {last})[0].flatten(1).size(1);
    return absl::OkStatus();
  }));
  return size;
}

// What a fine-tuning may go on with: what the user allows, and weights at another place. Never other weights to begin
// with: nothing of them would be in what goes on.
void SetAllowedChanges(const ConfigNode& defaults, ConfigNode* config) {
  constexpr char kKey[] = "CHECKPOINT.ALLOW_CHANGES";
  ConfigNode keys = ConfigNode::List();
  keys.Append(ConfigNode::FromString("MODEL.WEIGHTS_INIT.PARAMS_FILE"));
  const ConfigNode* allowed = config->FindPath(kKey);
  for (const ConfigNode& item : allowed != nullptr ? allowed->items() : std::vector<ConfigNode>()) {
    const absl::string_view key = absl::StripPrefix(item.text(), "config.");
    if (key == kSection) {
      for (const auto& [name, value] : defaults.Section(kSection).entries()) {
        keys.Append(ConfigNode::FromString(absl::StrCat(kSection, ".", name)));
      }
    } else if (key != kInitialWeights) {
      keys.Append(item);
    }
  }
  config->SetPath(kKey, std::move(keys));
}

// Opens the fine-tuning run. What is refused about an earlier one has a way out of its own.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(const ConfigNode& config, const std::string& directory,
                                                     EngineContext& context) {
  SessionOptions options;
  options.communicator = &context.communicator;
  options.stop = &context.stop;
  options.file_system = &context.file_system;
  options.progress = context.progress;
  const OpeningScope opening(context);
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(config));
  const auto admit = [&]() -> absl::Status {
    SSL_RETURN_IF_ERROR(opening.CheckNotStopped());
    if (context.communicator.rank() > 0) return absl::OkStatus();
    // The session takes its directory for the user's word; this one lies inside a run.
    SSL_RETURN_IF_ERROR(CheckOutputFolder({context.run_directory, kFullTuneFolder}));
    if (task.checkpoint.overwrite_existing) return absl::OkStatus();
    // Before the session, which would offer to allow it.
    return CheckInitialWeights(config, context.registries.options, kInitialWeights, CheckpointDirectory(directory),
                               context.file_system, context.communicator);
  };
  const absl::Status admitted = AgreeOnWork(admit, "comparing weights", context.communicator);
  absl::StatusOr<std::unique_ptr<Session>> session =
      admitted.ok() ? Session::Create(config, context.registries, std::move(options)) : admitted;
  if (!absl::IsInvalidArgument(session.status())) return session;
  std::string message(session.status().message());
  absl::StrAppend(&message, WhoSets(message, context.config));
  if (!task.checkpoint.overwrite_existing && context.file_system.IsDirectory(CheckpointDirectory(directory))) {
    absl::StrAppend(&message, "\nthe fine-tuning in ", directory, " can be started anew: engine_name=full_tune with ",
                    "config.CHECKPOINT.OVERWRITE_EXISTING=True removes that folder and nothing else");
  }
  return absl::InvalidArgumentError(message);
}

class FullTuneEngine : public Engine {
 public:
  explicit FullTuneEngine(FullTuneOptions options) : options_(std::move(options)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    return WithEvaluationPlan("full_tune", context, [this](EngineContext& complete) { return Tune(complete); });
  }

  std::string TrainingDirectory(const std::string& run_directory) const override {
    return absl::StrCat(run_directory, "/", kFullTuneFolder);
  }

  absl::Status Check(EngineContext& context) const override {
    return CheckWithEvaluationPlan(context, [this](EngineContext& complete) -> absl::Status {
      SSL_RETURN_IF_ERROR(MakeModelToCheck(complete).status());
      SSL_ASSIGN_OR_RETURN(const FullTuneTask task, PrepareData(complete));
      // What the weights decide, data sets do not ask for.
      return OpenPhases(FullTuneConfig(complete.config, complete.registries.options.Defaults(), options_, task),
                        complete);
    });
  }

 private:
  absl::StatusOr<EngineReport> Tune(EngineContext& context) const {
    FullTuneTask task;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Open(context, &task));
    auto recorder = std::make_unique<AccuracyRecorder>();
    const AccuracyRecorder& accuracies = *recorder;
    SSL_RETURN_IF_ERROR(session->AddHook(std::move(recorder)));
    SSL_ASSIGN_OR_RETURN(const TrainOutcome outcome, session->Train());
    EngineReport report;
    report.stopped = outcome == TrainOutcome::kStopped;
    report.summary = absl::StrCat("fine-tuning of ", task.num_classes, " classes in ", task.directory,
                                  report.stopped ? ", stopped: this command goes on" : "", "\n", accuracies.Table());
    if (!report.stopped && !accuracies.epochs().empty()) {
      const std::vector<double>& top1 = accuracies.top1();
      ConfigNode results = ConfigNode::Map();
      results.Set("top1", ConfigNode::FromDouble(top1.back()));
      results.Set("top5", ConfigNode::FromDouble(accuracies.top5().back()));
      results.Set("best_top1", ConfigNode::FromDouble(*std::max_element(top1.begin(), top1.end())));
      SetResults("full_tune", results, task.weights, &context.results);
    }
    return report;
  }

  // A training that goes on beside this process may remove the checkpoint before one or all ranks have read its
  // weights; there is a newer one then. What any rank misses all hear of in one agreement; of its other errors a rank
  // alone knows, and asking the others would meet them in another operation.
  absl::StatusOr<std::unique_ptr<Session>> Open(EngineContext& context, FullTuneTask* task) const {
    for (int tries_left = 2;; --tries_left) {
      SSL_ASSIGN_OR_RETURN(*task, Prepare(context));
      const ConfigNode config = FullTuneConfig(context.config, context.registries.options.Defaults(), options_, *task);
      absl::StatusOr<std::unique_ptr<Session>> session = OpenSession(config, task->directory, context);
      const bool is_missed = absl::IsNotFound(session.status());
      if (tries_left == 0 || !(is_missed || absl::IsAborted(session.status()))) return session;
      const bool is_gone =
          is_missed && !task->params_file.empty() && !context.file_system.IsDirectory(task->params_file);
      if (!AnyRank(is_gone, context.communicator).value_or(false)) return session;
      SSL_LOG(INFO) << "full_tune: " << task->params_file << " was removed meanwhile: once more from the newest one";
    }
  }

  absl::StatusOr<FullTuneTask> PrepareData(EngineContext& context) const {
    SSL_ASSIGN_OR_RETURN(const LabelledData data, OpenLabelledData(options_.num_classes, options_.data_limit, context));
    FullTuneTask task;
    task.num_classes = data.num_classes;
    task.samples_per_rank = std::max<int64_t>(1, data.num_samples / context.communicator.size());
    return task;
  }

  absl::StatusOr<FullTuneTask> Prepare(EngineContext& context) const {
    SSL_ASSIGN_OR_RETURN(FullTuneTask task, PrepareData(context));
    SSL_ASSIGN_OR_RETURN(const EvaluationModel network, MakeEvaluationModel(context, EvaluationWeights::kTrained));
    task.directory = TrainingDirectory(context.run_directory);
    task.params_file = network.checkpoint;
    task.weights = {network.weights, network.iteration};
    SSL_ASSIGN_OR_RETURN(const uint32_t checksum, HashState(*network.model));
    // Of a file, the content: its path says nothing about the weights.
    const std::string iteration = network.checkpoint.empty() ? "" : absl::StrCat(network.weights, ", ");
    task.initial_weights = absl::StrFormat("%scrc32c:%08x", iteration, checksum);
    SSL_ASSIGN_OR_RETURN(task.feature_size, FeatureSize(*network.model, context));
    return task;
  }

  const FullTuneOptions options_;
};

}  // namespace

void FullTuneOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("NUM_EPOCHS", &num_epochs, Doc("train epochs; each is followed by a test (ours)").AtLeast(1));
  visitor.Field("BATCH_SIZE", &batch_size, Doc("samples per rank and step (ours)").AtLeast(1));
  visitor.Field("LEARNING_RATE", &learning_rate, Doc("at the start; falls to 0 along a cosine (ours)").Above(0.0));
  visitor.Field("WEIGHT_DECAY", &weight_decay, Doc("of weights (ours)").AtLeast(0.0));
  visitor.Field("DATA_LIMIT", &data_limit,
                Doc("training samples, equally many of each class; -1: all (ours)").AtLeast(-1));
  visitor.Field("NUM_CLASSES", &num_classes, Doc("0: counted from the labels (ours)").AtLeast(0));
  visitor.Field("TRANSFORMS", &transforms, Doc("of training; []: DATA.TEST.TRANSFORMS (ours)"));
}

ConfigNode FullTuneConfig(const ConfigNode& config, const ConfigNode& defaults, const FullTuneOptions& options,
                          const FullTuneTask& task) {
  ConfigNode tuned = config;
  tuned.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(task.directory));
  tuned.SetPath("CHECKPOINT.RESUME_FROM", ConfigNode::FromInt(-1));  // is about the run that is tuned
  tuned.SetPath("CHECKPOINT.EVALUATE", ConfigNode::FromString(""));
  // Whether a fine-tuning that is there may go on is decided by the weights that it began with, not by where they lie.
  // AUTO_RESUME, OVERWRITE_EXISTING and ALLOW_CHANGES mean the training that the command does: this one, too.
  tuned.SetPath(kInitialWeights, ConfigNode::FromString(task.initial_weights));
  SetAllowedChanges(defaults, &tuned);
  tuned.Set("TEST_MODEL", ConfigNode::FromBool(true));
  tuned.Set("TEST_ONLY", ConfigNode::FromBool(false));
  tuned.Set("TEST_EVERY_NUM_EPOCH", ConfigNode::FromInt(1));
  tuned.SetPath("LOSS.name", ConfigNode::FromString(kLoss));
  SetModel(defaults, task, &tuned);
  SetData(defaults, options, task, &tuned);
  RemoveHooks(defaults, &tuned);
  SetOptimizer(defaults, options, &tuned);
  SetMeters(defaults, task.num_classes, &tuned);
  return tuned;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeFullTuneEngine(const ConfigNode& config, const BuildContext& context) {
  FullTuneOptions options;
  SSL_RETURN_IF_ERROR(
      ReadOptions(config.Section(kSection), absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  if (options.data_limit == 0) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOfKey("FULL_TUNE.DATA_LIMIT", config),
                                                   "config.FULL_TUNE.DATA_LIMIT is 0, expected at least 1, or -1 for "
                                                   "all"));
  }
  return std::make_unique<FullTuneEngine>(std::move(options));
}

}  // namespace ssl
