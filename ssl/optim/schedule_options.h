// SPDX-License-Identifier: Apache-2.0
//
// The keys of a schedule (VISSL's): one struct for all of them, because a node of OPTIMIZER.param_schedulers holds the
// keys of every schedule side by side. Plain values, thread-compatible.
#ifndef SSL_OPTIM_SCHEDULE_OPTIONS_H_
#define SSL_OPTIM_SCHEDULE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

// Scales the schedule to the batch of all ranks; see lr_scaling.h.
struct AutoLrScalingOptions : public Options {
  bool auto_scale = false;
  double base_value = 0.1;
  int64_t base_lr_batch_size = 256;
  std::string scaling_type = "linear";

  void VisitFields(FieldVisitor& visitor) override;
};

// What a schedule reads, also as a child of `composite`. `update_interval` is "step", "epoch" or "", which means the
// schedule's own default. Where 0 is no possible value, it stands for a key that is missing.
struct ScheduleOptions : public Options {
  AutoLrScalingOptions auto_lr_scaling;
  std::string name;
  std::string update_interval;
  std::vector<double> values;
  std::vector<int64_t> milestones;  // epochs
  ConfigNode schedulers = ConfigNode::List();
  std::vector<std::string> interval_scaling;
  std::vector<double> lengths;
  double start_value = 0.1;
  double end_value = 0.0;
  double value = 0.1;
  double base_value = 0.1;
  double gamma = 0.1;
  int64_t num_decays = 0;
  double power = 1.0;
  double decay = 0.1;
  double warmup_interval_length = 0.0;
  double restart_interval_length = 0.0;
  std::string wave_type = "half";
  double lr_multiplier = 1.0;
  bool is_adaptive = false;

  void VisitFields(FieldVisitor& visitor) override;
};

// The same with VISSL's defaults of the learning rate: multistep at epochs 30 and 60.
struct LearningRateOptions : public ScheduleOptions {
  LearningRateOptions();
};

}  // namespace ssl

#endif  // SSL_OPTIM_SCHEDULE_OPTIONS_H_
