// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/schedule_options.h"

namespace ssl {

void AutoLrScalingOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("auto_scale", &auto_scale, Doc("scale with the batch size of all ranks"));
  visitor.Field("base_value", &base_value, Doc("learning rate at base_lr_batch_size").AtLeast(0));
  visitor.Field("base_lr_batch_size", &base_lr_batch_size, Doc("batch size of base_value").AtLeast(1));
  visitor.Field("scaling_type", &scaling_type, Doc("growth with the batch size").OneOf({"linear", "sqrt"}));
}

void ScheduleOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Section("auto_lr_scaling", &auto_lr_scaling, Doc("sets the values from the batch size"));
  visitor.Field("name", &name,
                Doc("schedule: constant, linear, cosine, multistep, step, step_with_fixed_gamma, polynomial, "
                    "exponential, inverse_sqrt, cosine_warm_restart, composite"));
  visitor.Field("update_interval", &update_interval,
                Doc("when the value changes; empty for the schedule's default").OneOf({"step", "epoch", ""}));
  visitor.Field("values", &values, Doc("multistep, step: one value per part").AtLeast(0));
  visitor.Field("milestones", &milestones, Doc("multistep: first epochs of the later parts").Unit("epochs"));
  visitor.Field("schedulers", &schedulers, Doc("composite: the parts, each a schedule"));
  visitor.Field("interval_scaling", &interval_scaling,
                Doc("composite: progress within a part; empty for rescaled").OneOf({"rescaled", "fixed"}));
  visitor.Field("lengths", &lengths, Doc("composite: share of training of each part").Between(0, 1));
  visitor.Field(
      "start_value", &start_value,
      Doc("linear, cosine, exponential, cosine_warm_restart: first value; inverse_sqrt: value at the warm-up's end")
          .AtLeast(0));
  visitor.Field("end_value", &end_value, Doc("linear, cosine, cosine_warm_restart: last value").AtLeast(0));
  visitor.Field("value", &value, Doc("constant: the value").AtLeast(0));
  visitor.Field("base_value", &base_value, Doc("step_with_fixed_gamma, polynomial: first value").AtLeast(0));
  visitor.Field("gamma", &gamma, Doc("step_with_fixed_gamma: factor of each decay").Above(0));
  visitor.Field("num_decays", &num_decays, Doc("step_with_fixed_gamma: number of decays").AtLeast(0));
  visitor.Field("power", &power, Doc("polynomial: exponent").AtLeast(0));
  visitor.Field("decay", &decay, Doc("exponential: factor from the beginning of training to its end").Above(0));
  visitor.Field("warmup_interval_length", &warmup_interval_length,
                Doc("inverse_sqrt: share of training of the warm-up before it").Between(0, 1));
  visitor.Field("restart_interval_length", &restart_interval_length,
                Doc("cosine_warm_restart: share of training of half a wave").Between(0, 1));
  visitor.Field("wave_type", &wave_type,
                Doc("cosine_warm_restart: falling half waves or full waves").OneOf({"half", "full"}));
  visitor.Field("lr_multiplier", &lr_multiplier,
                Doc("cosine_warm_restart: factor of the peak after a restart").AtLeast(0));
  visitor.Field("is_adaptive", &is_adaptive, Doc("cosine_warm_restart: peaks on the cosine of the whole training"));
}

LearningRateOptions::LearningRateOptions() {
  name = "multistep";
  update_interval = "epoch";
  values = {0.1, 0.01, 0.001};
  milestones = {30, 60};
}

}  // namespace ssl
