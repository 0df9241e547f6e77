// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/register_hooks.h"

#include <memory>

#include "ssl/base/status_macros.h"
#include "ssl/hooks/best_checkpoint_hook.h"
#include "ssl/hooks/broken_images_hook.h"
#include "ssl/hooks/check_nan_hook.h"
#include "ssl/hooks/check_replicas_hook.h"
#include "ssl/hooks/checkpoint_hook.h"
#include "ssl/hooks/collapse_monitor_hook.h"
#include "ssl/hooks/configured_hooks.h"
#include "ssl/hooks/crop_images_hook.h"
#include "ssl/hooks/early_stop_hook.h"
#include "ssl/hooks/ema_hook.h"
#include "ssl/hooks/eval_hook.h"
#include "ssl/hooks/feature_vis_hook.h"
#include "ssl/hooks/foreign_hook_entries.h"
#include "ssl/hooks/foreign_run_blocks.h"
#include "ssl/hooks/freeze_parameters_hook.h"
#include "ssl/hooks/grad_cam_hook.h"
#include "ssl/hooks/grad_clip_hook.h"
#include "ssl/hooks/gradient_collector_hook.h"
#include "ssl/hooks/hook_entries.h"
#include "ssl/hooks/memory_checkpoint_hook.h"
#include "ssl/hooks/memory_empty_hook.h"
#include "ssl/hooks/memory_summary_hook.h"
#include "ssl/hooks/metric_printer_hook.h"
#include "ssl/hooks/model_complexity_hook.h"
#include "ssl/hooks/model_output_mask_hook.h"
#include "ssl/hooks/perf_stats_hook.h"
#include "ssl/hooks/phase_metrics_hook.h"
#include "ssl/hooks/profiler_hook.h"
#include "ssl/hooks/reload_hook.h"
#include "ssl/hooks/run_keys.h"
#include "ssl/hooks/schedule_monitor_hook.h"
#include "ssl/hooks/sinks/jsonl_sink.h"
#include "ssl/hooks/sinks/tensorboard_sink.h"
#include "ssl/hooks/straggler_hook.h"
#include "ssl/hooks/system_stats_hook.h"
#include "ssl/hooks/train_logger_hook.h"

namespace ssl {
namespace {

absl::Status RegisterEach(Registries* registries) {
  SSL_RETURN_IF_ERROR(RegisterBestCheckpointHook(registries));
  SSL_RETURN_IF_ERROR(RegisterBrokenImagesHook(registries));
  SSL_RETURN_IF_ERROR(RegisterCheckNanHook(registries));
  SSL_RETURN_IF_ERROR(RegisterCheckReplicasHook(registries));
  SSL_RETURN_IF_ERROR(RegisterCheckpointHook(registries));
  SSL_RETURN_IF_ERROR(RegisterCollapseMonitorHook(registries));
  SSL_RETURN_IF_ERROR(RegisterCropImagesHook(registries));
  SSL_RETURN_IF_ERROR(RegisterEarlyStopHook(registries));
  SSL_RETURN_IF_ERROR(RegisterEmaHook(registries));
  SSL_RETURN_IF_ERROR(RegisterEvalHook(registries));
  SSL_RETURN_IF_ERROR(RegisterFeatureVisHook(registries));
  SSL_RETURN_IF_ERROR(RegisterFreezeParametersHook(registries));
  SSL_RETURN_IF_ERROR(RegisterGradCamHook(registries));
  SSL_RETURN_IF_ERROR(RegisterGradClipHook(registries));
  SSL_RETURN_IF_ERROR(RegisterGradientCollectorHook(registries));
  SSL_RETURN_IF_ERROR(RegisterMemoryCheckpointHook(registries));
  SSL_RETURN_IF_ERROR(RegisterMemoryEmptyHook(registries));
  SSL_RETURN_IF_ERROR(RegisterMemorySummaryHook(registries));
  SSL_RETURN_IF_ERROR(RegisterMetricPrinterHook(registries));
  SSL_RETURN_IF_ERROR(RegisterModelComplexityHook(registries));
  SSL_RETURN_IF_ERROR(RegisterModelOutputMaskHook(registries));
  SSL_RETURN_IF_ERROR(RegisterPerfStatsHook(registries));
  SSL_RETURN_IF_ERROR(RegisterPhaseMetricsHook(registries));
  SSL_RETURN_IF_ERROR(RegisterProfilerHook(registries));
  SSL_RETURN_IF_ERROR(RegisterReloadHook(registries));
  SSL_RETURN_IF_ERROR(RegisterScheduleMonitorHook(registries));
  SSL_RETURN_IF_ERROR(RegisterStragglerHook(registries));
  SSL_RETURN_IF_ERROR(RegisterSystemStatsHook(registries));
  SSL_RETURN_IF_ERROR(RegisterTrainLoggerHook(registries));
  SSL_RETURN_IF_ERROR(RegisterJsonlSink(registries));
  return RegisterTensorboardSink(registries);
}

}  // namespace

absl::Status RegisterHooks(Registries* registries) {
  if (!registries->AddPackage("hooks")) return absl::OkStatus();
  registries->configured_hooks = &MakeConfiguredHooks;
  registries->configured_sinks = &MakeConfiguredSinks;
  SSL_RETURN_IF_ERROR(registries->options.Add("", [] { return std::make_unique<HookListOptions>(); }));
  SSL_RETURN_IF_ERROR(AddForeignRunBlocks(registries));
  SSL_RETURN_IF_ERROR(RegisterEach(registries));
  registries->resolvers.push_back(&ResolveForeignHookEntries);
  registries->resolvers.push_back(&ResolveRunKeys);
  registries->resolvers.push_back(&ResolveForeignRunBlocks);
  registries->resolvers.push_back(&WriteListsOfHooksInFull);
  return absl::OkStatus();
}

}  // namespace ssl
