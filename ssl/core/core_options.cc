// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/core_options.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"

namespace ssl {
namespace {

// Collects the problems of several sections.
class SectionReader {
 public:
  explicit SectionReader(const ConfigNode& config) : config_(config) {}

  void Read(absl::string_view path, Options* options) {
    const ConfigNode* node = path.empty() ? &config_ : config_.FindPath(path);
    if (node == nullptr || node->kind() == ConfigNode::Kind::kNull) return;  // defaults
    const std::string full_path = absl::StrCat("config", path.empty() ? "" : ".", path);
    const absl::Status status = ReadOptions(*node, full_path, UnknownKeys::kIgnore, options);
    if (!status.ok()) problems_.emplace_back(status.message());
  }

  absl::Status status() const {
    return problems_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(problems_, "\n"));
  }

 private:
  const ConfigNode& config_;
  std::vector<std::string> problems_;
};

// What shares out parameters reduces their gradients itself, block by block.
absl::Status CheckCompression(const TaskOptions& options, const ConfigNode& config) {
  const std::string& compression = options.replicas.gradient_compression;
  if (compression == "none" || !options.trainer.shards_parameters()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      config.FindPath("DISTRIBUTED.GRADIENT_COMPRESSION")->location().ToString(),
      ": config.DISTRIBUTED.GRADIENT_COMPRESSION is ", compression, ", and config.TRAINER.TASK_NAME is ", kShardingTask,
      ", which reduces gradients in their own type: set one to none, or the other to ", TrainerOptions().task_name));
}

}  // namespace

void RunOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SEED_VALUE", &seed, Doc("seed of everything random"));
  ReportOptions::VisitFields(visitor);
  visitor.Field("TEST_ONLY", &test_only, Doc("run test phases only"));
  visitor.Field("TEST_MODEL", &test_model, Doc("run test phases"));
  visitor.Field("TEST_EVERY_NUM_EPOCH", &test_every_num_epoch, Doc("train epochs between test phases").AtLeast(1));
  visitor.Field("TEST_START", &test_start,
                Doc("epoch, from 1, before which no test phase follows, but after the last epoch (ours)").AtLeast(1));
  visitor.Field(
      "TEST_ANCHOR", &test_anchor,
      Doc("epoch from which TEST_EVERY_NUM_EPOCH counts: 1 tests after 1, N + 1, ..., 0 after N, 2 N, ... (ours)")
          .AtLeast(0));
}

Cadence TestCadence(const RunOptions& options) {
  return {Cadence::Unit::kEpoch, options.test_every_num_epoch, options.test_start, options.test_anchor, true};
}

void CheckpointOptions::VisitFields(FieldVisitor& visitor) {
  // Where and how often, not what: none of these changes the training itself.
  visitor.Field("DIR", &directory, Doc("run directory: checkpoints, logs, metrics and results").MayChange());
  visitor.Field("AUTO_RESUME", &auto_resume,
                Doc("continue from the newest checkpoint in DIR; False: refuse a DIR with checkpoints").MayChange());
  CheckpointCadenceOptions::VisitFields(visitor);
  visitor.Field("KEEP_LAST", &keep_last, Doc("checkpoints to keep, 0 for all (ours)").AtLeast(0).MayChange());
  visitor.Field("OVERWRITE_EXISTING", &overwrite_existing,
                Doc("start anew: remove what another or a finished run left in DIR").MayChange());
  visitor.Field("RESUME_FROM", &resume_from,
                Doc("go back to the checkpoint of this iteration, -1: the newest (ours)").AtLeast(-1).MayChange());
  visitor.Field(
      "EVALUATE", &evaluate,
      Doc("name of the checkpoint that evaluations read, such as best; empty: the newest (ours)").MayChange());
  visitor.Field("ALLOW_CHANGES", &allow_changes,
                Doc("keys that may differ from the run that DIR holds, or sections (ours)").MayChange());
  visitor.Field("SAVE_IN_BACKGROUND", &save_in_background,
                Doc("training goes on while a checkpoint is written (ours)").MayChange());
}

void LossOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("name", &name, Doc("method and loss; its own keys stand in the section of that name"));
}

void TrainerOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("TRAIN_STEP_NAME", &train_step_name, Doc("what the loop does for an update"));
  visitor.Field("TASK_NAME", &task_name,
                Doc("self_supervision_fsdp_task shares out parameters between ranks: less memory, the same training")
                    .OneOf({"self_supervision_task", kShardingTask})
                    .MayChange());
}

void ReductionOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("DDP_BUCKET_CAP_MB", &bucket_mib,
                Doc("MiB of gradients that ranks reduce in one operation").AtLeast(1).MayChange());
}

void ReplicaOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("BROADCAST_BUFFERS", &broadcast_buffers,
                Doc("before each update and test phase, all ranks take over rank 0's running statistics"));
  visitor.Field(
      "GRADIENT_COMPRESSION", &gradient_compression,
      Doc("type in which ranks exchange gradients: half the bytes, rounded before and after the sum; fp16 has "
          "a small range as well and wants a loss scale (ours)")
          .OneOf({"none", "bf16", "fp16"}));
}

void MachineOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("DEVICE", &device,
                Doc("where to compute; gpu needs a build with CUDA").OneOf({"cpu", "gpu"}).MayChange());
}

void ReproducibilityOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field(
      "CUDDN_DETERMINISTIC", &deterministic_convolutions,
      Doc("on a GPU: algorithms that give the same bits each time, instead of the fastest ones; an operation that has "
          "none ends the run (ssl_main; a host program holds an AlgorithmScope)")
          .MayChange());
  visitor.Field(
      "IEEE_CONVOLUTIONS", &ieee_convolutions,
      Doc("convolutions of float32 round as their definition does: no Winograd filtering on a CPU, no TF32 on "
          "a GPU (ours; a host program holds an IeeeConvolutionScope)")
          .MayChange());
}

absl::StatusOr<TaskOptions> ReadTaskOptions(const ConfigNode& config) {
  TaskOptions options;
  UpdateOptions optimizer;
  BatchSizeOptions data;
  ModelNameOptions model;
  AmpOptions amp;
  MeasuredOptions meters;
  SectionReader reader(config);
  reader.Read("", &options.run);
  reader.Read("CHECKPOINT", &options.checkpoint);
  reader.Read("LOSS", &options.loss);
  reader.Read("MACHINE", &options.machine);
  reader.Read("REPRODUCIBILITY", &options.reproducibility);
  reader.Read("OPTIMIZER", &optimizer);
  reader.Read("DATA.TRAIN", &data);
  reader.Read("MODEL", &model);
  reader.Read("MODEL.AMP_PARAMS", &amp);
  reader.Read("METERS", &meters);
  reader.Read("TRAINER", &options.trainer);
  reader.Read("DATA", &options.reduction);
  reader.Read("DISTRIBUTED", &options.replicas);
  SSL_RETURN_IF_ERROR(reader.status());
  SSL_RETURN_IF_ERROR(CheckCompression(options, config));
  options.num_epochs = optimizer.num_epochs;
  options.optimizer_name = optimizer.name;
  options.shards_optimizer = optimizer.use_zero;
  options.parameter_grouping = optimizer.param_group_constructor;
  options.batch_size = data.batch_size_per_replica;
  options.model_name = model.base_model_name;
  options.batches_per_update = optimizer.batches_per_update;
  options.meters = meters.names;
  options.meters_in_training = meters.enable_training_meter;
  SSL_ASSIGN_OR_RETURN(options.precision, PrecisionOf(amp, options.machine.device, config.Section("MODEL.AMP_PARAMS")));
  return options;
}

}  // namespace ssl
