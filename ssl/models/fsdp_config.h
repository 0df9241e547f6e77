// SPDX-License-Identifier: Apache-2.0
//
// MODEL.FSDP_CONFIG, VISSL's section for parameters that ranks share out (ssl/core/parameter_shards.h).
//
// TRAINER.TASK_NAME: self_supervision_fsdp_task shares them out: all trainable ones, of any trunk that is a chain of
// blocks and of any heads. The names "regnet_fsdp", "mlp_fsdp" and so on are those without "_fsdp", which files of
// VISSL have to choose here instead.
#ifndef SSL_MODELS_FSDP_CONFIG_H_
#define SSL_MODELS_FSDP_CONFIG_H_

#include "absl/status/status.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

struct FsdpSection : public Options {
  bool auto_setup = false;

  void VisitFields(FieldVisitor& visitor) override;
};

// What AUTO_SETUP_FSDP: True sets, as in VISSL: the task, and a single parameter group. VISSL's other consequences are
// names, which mean the same here, and number formats, which MODEL.AMP_PARAMS has here. config: the tree under
// "config".
absl::Status ResolveFsdp(ConfigNode* config);

}  // namespace ssl

#endif  // SSL_MODELS_FSDP_CONFIG_H_
