// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/hook_aliases.h"

namespace ssl {
namespace {

constexpr char kReportsGradients[] =
    "No loss takes gradients of modules here; the hook reports their norms, as metrics.";
constexpr char kKnownToTheRun[] = "The run's configuration has it.";
constexpr char kToldOnce[] = "It is told once; config.HOOKS.MEMORY_SUMMARY.LOG_ITERATION_NUM says after which step.";
constexpr char kNoBoxes[] = "Images have no boxes with classes and scores; every crop of the batch is drawn.";
constexpr char kOfTheWindow[] = "A report has all values since the last one; config.LOG_FREQUENCY says how often.";

// Of hooks that LiBai and detectron2 have alike.
using Sentences = std::map<std::string, std::string>;

Sentences OfBestCheckpointer() {
  return {{"eval_period", "It looks at every evaluation; those of EvalHook have a period of their own."},
          {"file_prefix", "The checkpoint has the name best (checkpoints/best.step)."}};
}

Sentences OfEvalHook() { return {{"eval_after_train", "The last epoch is always evaluated."}}; }

Sentences OfIterationTimer() {
  return {{"warmup_iter", "config.HOOKS.TRAIN_LOGGER.SKIP_FIRST_K says how many iterations timing leaves out."}};
}

Sentences OfJsonWriter() {
  return {{"json_file", "The file is metrics.jsonl in the run's directory."}, {"window_size", kOfTheWindow}};
}

Sentences OfMetricPrinter() {
  return {{"batch_size", kKnownToTheRun}, {"max_iter", kKnownToTheRun}, {"window_size", "Losses are medians of 200."}};
}

Sentences OfPeriodicCheckpointer() {
  return {{"file_prefix", "Checkpoints are checkpoints/step_<iteration> in the run's directory."},
          {"max_iter", kKnownToTheRun},
          {"max_to_keep", "config.CHECKPOINT.KEEP_LAST says how many are kept."}};
}

Sentences OfTensorboardWriter() {
  return {{"log_dir", "Event files are in tb_logs of the run's directory."}, {"window_size", kOfTheWindow}};
}

// What it is told of boxes.
Sentences OfVisualize() {
  return {{"vis_dt", "Nothing is detected here; feature_vis and grad_cam draw what a network looks at."},
          {"vis_gt.kwargs.class_names", kNoBoxes},
          {"vis_gt.kwargs.thresh", kNoBoxes},
          {"vis_gt.type", "Sheets are PNG files."}};
}

}  // namespace

const std::vector<HookAlias>& HookAliases() {
  static const std::vector<HookAlias>& aliases = *new std::vector<HookAlias>{
      {"LiBai",
       "BestCheckpointer",
       "best_checkpoint",
       {{"val_metric", "METRICS"}, {"mode", "MODE"}},
       {},
       OfBestCheckpointer()},
      {"LiBai", "CommonMetricPrinter", "metric_printer", {}, {}, OfMetricPrinter()},
      {"LiBai", "EvalHook", "eval", {{"eval_period", "ITER_FREQUENCY"}}, {{"EPOCH_FREQUENCY", "-1"}}, OfEvalHook()},
      {"LiBai", "IterationTimer", "perf_stats", {}, {{"MONITOR_PERF_STATS", "true"}}, OfIterationTimer()},
      {"LiBai", "JSONWriter", "jsonl", {}, {}, OfJsonWriter()},
      {"LiBai", "LRScheduler", "schedule_monitor", {}},
      {"LiBai",
       "PeriodicCheckpointer",
       "checkpoint",
       {{"period", "CHECKPOINT_ITER_FREQUENCY"}},
       {{"CHECKPOINT_FREQUENCY", "-1"}},
       OfPeriodicCheckpointer()},
      {"LiBai", "PeriodicWriter", "train_logger", {{"period", "LOG_FREQUENCY"}}, {{"LOG_FREQUENCY", "20"}}},
      {"LiBai", "TensorboardXWriter", "tensorboard", {}, {}, OfTensorboardWriter()},
      {"United Perception", "auto_checkpoint", "checkpoint", {}},
      {"United Perception", "auto_save_best", "best_checkpoint", {}},
      {"United Perception", "auto_save_best_multitask", "best_checkpoint", {{"tasks", "METRICS"}}},
      {"United Perception",
       "auto_save_metric",
       "phase_metrics",
       {},
       {},
       {{"metric_json", "The file is metrics.json in the run's directory, a line for each phase."},
        {"detail_metric", "All values of the meters are kept; config.METERS.names has the meters."}}},
      {"United Perception",
       "feature_vis",
       "feature_vis",
       {},
       {},
       {{"gt_dir", "It names drawings of boxes, which these methods have none of."}}},
      {"United Perception",
       "grad_cam",
       "grad_cam",
       {},
       {},
       {{"class_names", "Drawings bear no text, and need no names of classes."}}},
      {"United Perception", "grad_clipper", "grad_clipper", {}},
      {"United Perception",
       "gradient_collector",
       "gradient_collector",
       {},
       {},
       {{"collect_func_module", kReportsGradients}}},
      {"United Perception",
       "memory_analysis",
       "system_stats",
       {{"freq", "FREQUENCY"}, {"logdir", "LOGDIR"}, {"summary_writer", "SUMMARY_WRITER"}},
       {{"SUMMARY_WRITER", "tensorboard"}}},
      {"United Perception", "memory_checkpoint", "memory_checkpoint", {}},
      {"United Perception", "memory_empty", "memory_empty", {}},
      {"United Perception", "reload", "reload", {}},
      {"United Perception",
       "train_val_logger",
       "train_logger",
       {{"freq", "LOG_FREQUENCY"},
        {"logdir", "LOGDIR"},
        {"skip_first_k", "SKIP_FIRST_K"},
        {"summary_writer", "SUMMARY_WRITER"}},
       {{"LOG_FREQUENCY", "1"}, {"SUMMARY_WRITER", "tensorboard"}}},
      {"United Perception",
       "visualize",
       "crop_images",
       {{"vis_gt.kwargs.vis_dir", "save_dir"}},
       {{"save_dir", "vis_gt"}},
       {},
       OfVisualize()},
      {"VISSL", "CheckNanLossHook", "check_nan", {}},
      {"VISSL", "EmaHook", "ema", {}},
      {"VISSL", "FreezeParametersHook", "freeze_parameters", {}},
      {"VISSL", "GradClipHook", "grad_clip", {}},
      {"VISSL", "LogGpuMemoryHook", "memory_summary", {}},
      {"VISSL", "LogLossLrEtaHook", "train_logger", {}},
      {"VISSL", "LogLossMetricsCheckpointHook", "checkpoint", {}},
      {"VISSL", "LogPerfTimeMetricsHook", "perf_stats", {}, {{"MONITOR_PERF_STATS", "true"}}},
      {"VISSL", "ModelOutputMaskHook", "model_output_mask", {}},
      {"VISSL", "SSLModelComplexityHook", "model_complexity", {}},
      {"detectron2",
       "BestCheckpointer",
       "best_checkpoint",
       {{"val_metric", "METRICS"}, {"mode", "MODE"}},
       {},
       OfBestCheckpointer()},
      {"detectron2", "CommonMetricPrinter", "metric_printer", {}, {}, OfMetricPrinter()},
      {"detectron2",
       "EvalHook",
       "eval",
       {{"eval_period", "ITER_FREQUENCY"}},
       {{"EPOCH_FREQUENCY", "-1"}},
       OfEvalHook()},
      {"detectron2", "IterationTimer", "perf_stats", {}, {{"MONITOR_PERF_STATS", "true"}}, OfIterationTimer()},
      {"detectron2", "JSONWriter", "jsonl", {}, {}, OfJsonWriter()},
      {"detectron2", "LRScheduler", "schedule_monitor", {}},
      {"detectron2",
       "PeriodicCheckpointer",
       "checkpoint",
       {{"period", "CHECKPOINT_ITER_FREQUENCY"}},
       {{"CHECKPOINT_FREQUENCY", "-1"}},
       OfPeriodicCheckpointer()},
      {"detectron2", "PeriodicWriter", "train_logger", {{"period", "LOG_FREQUENCY"}}, {{"LOG_FREQUENCY", "20"}}},
      {"detectron2", "TensorboardXWriter", "tensorboard", {}, {}, OfTensorboardWriter()},
      {"detectron2",
       "TorchProfiler",
       "profiler",
       {},
       {},
       {{"output_dir", "Traces are in profile/ of the run's directory."}}},
      {"detectron2", "TorchMemoryStats", "memory_summary", {}, {}, {{"max_runs", kToldOnce}, {"period", kToldOnce}}},
  };
  return aliases;
}

const std::vector<HookElsewhere>& HooksElsewhere() {
  static const std::vector<HookElsewhere>& hooks = *new std::vector<HookElsewhere>{
      {"United Perception", "yolox_noaug",
       "It turns a detector's mosaic and mixup of images off for the last epochs, and no transform or collator here "
       "mixes images. Other TRANSFORMS for the last epochs are a second run, which begins with the first one's "
       "weights (config.MODEL.WEIGHTS_INIT.PARAMS_FILE)."},
      {"detectron2", "CallbackHook",
       "A program that embeds the library adds a class of its own (Session::AddHook), for which one line is enough."},
      {"detectron2", "PreciseBN", "Running statistics are those of training; no second pass measures them."},
  };
  return hooks;
}

}  // namespace ssl
