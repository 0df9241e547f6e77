// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/fsdp_config.h"

#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/core_options.h"

namespace ssl {

void FsdpSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("AUTO_SETUP_FSDP", &auto_setup,
                Doc("sets TRAINER.TASK_NAME: self_supervision_fsdp_task and a single parameter group").MayChange());
}

absl::Status ResolveFsdp(ConfigNode* config) {
  const ConfigNode* const section = config->FindPath("MODEL.FSDP_CONFIG");
  if (section == nullptr) return absl::OkStatus();
  FsdpSection options;
  SSL_RETURN_IF_ERROR(ReadOptions(*section, "config.MODEL.FSDP_CONFIG", UnknownKeys::kIgnore, &options));
  if (!options.auto_setup) return absl::OkStatus();
  ConfigNode task = ConfigNode::FromString(kShardingTask);
  task.Relocate(section->Find("AUTO_SETUP_FSDP")->location());  // who asked for it
  config->SetPath("TRAINER.TASK_NAME", std::move(task));
  config->SetPath("OPTIMIZER.construct_single_param_group_only", ConfigNode::FromBool(true));
  return absl::OkStatus();
}

}  // namespace ssl
