// SPDX-License-Identifier: Apache-2.0
//
// The schedules of VISSL (ClassyVision, fvcore) as functions of w, the finished fraction of training in [0, 1):
//
//   constant    value
//   linear      start (1 - w) + end w
//   cosine      end + (start - end) (1 + cos(pi w)) / 2
//   multistep   values[number of milestones <= epoch], epoch = floor((w + 1e-6) num_epochs)
//   step        values[floor((w + 1e-6) n)] for n values: n equal parts of training
//   step_with_fixed_gamma   step with the num_decays + 1 values base_value gamma^i
//   polynomial  base_value (1 - w)^power
//   exponential start decay^w
//   inverse_sqrt   start sqrt(warmup_interval_length / w), at w = 0 with w = 1; without a warm-up start / sqrt(w)
//   cosine_warm_restart   end + (peak_i - end) (1 + cos(pi u)) / 2 with r = restart_interval_length (Loshchilov and
//               Hutter 2017, arXiv:1608.03983). wave_type half: u = (w mod r) / r, wave i begins at i r. full: u = w /
//               r, the peak changes in the valleys r, 3r, ... peak_i = start lr_multiplier^i; is_adaptive: the value of
//               `cosine` where the crest of the wave stands
//   composite   lengths divide [0, 1); part i runs its own schedule on (w - begin_i) / length_i ("rescaled", the
//               default) or on w itself ("fixed"); a boundary belongs to the later part
//
// Training asks for no value at w = 1 or past it: updates begin there at the latest. What a schedule says of it is its
// last value, where ClassyVision and fvcore refuse.
//
// Values change each step, those of constant, multistep and step each epoch, unless `update_interval` says otherwise;
// in a composite only its own update_interval counts.
// A schedule is immutable and thread-safe. Factories take the schedule's own node and report every wrong value, and a
// key that no schedule has, with file:line. Pinned by tests/golden (schedules).
//
//   SSL_ASSIGN_OR_RETURN(auto schedule, registries.schedules.Make("cosine", node, context));
//   optimizer.groups()[0].learning_rate = schedule->ValueAt(state.where());
#ifndef SSL_OPTIM_SCHEDULES_H_
#define SSL_OPTIM_SCHEDULES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/core/schedule.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<Schedule>> MakeConstantSchedule(const ConfigNode& params, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Schedule>> MakeLinearSchedule(const ConfigNode& params, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Schedule>> MakeCosineSchedule(const ConfigNode& params, const BuildContext& context);
// Reads config.OPTIMIZER.num_epochs, which must lie above every milestone.
absl::StatusOr<std::unique_ptr<Schedule>> MakeMultistepSchedule(const ConfigNode& params, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Schedule>> MakeStepSchedule(const ConfigNode& params, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Schedule>> MakeStepWithFixedGammaSchedule(const ConfigNode& params,
                                                                         const BuildContext& context);
absl::StatusOr<std::unique_ptr<Schedule>> MakePolynomialSchedule(const ConfigNode& params, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Schedule>> MakeExponentialSchedule(const ConfigNode& params,
                                                                  const BuildContext& context);
absl::StatusOr<std::unique_ptr<Schedule>> MakeInverseSqrtSchedule(const ConfigNode& params,
                                                                  const BuildContext& context);
absl::StatusOr<std::unique_ptr<Schedule>> MakeCosineWarmRestartSchedule(const ConfigNode& params,
                                                                        const BuildContext& context);
// Makes its parts from `schedulers` through context.registries. Lengths must add up to 1 within 1e-3; the last one
// takes the difference.
absl::StatusOr<std::unique_ptr<Schedule>> MakeCompositeSchedule(const ConfigNode& params, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_SCHEDULES_H_
