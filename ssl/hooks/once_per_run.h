// SPDX-License-Identifier: Apache-2.0
//
// Marks a hook of which a run has one at most, because two would take each other's work: the metrics of a window, the
// model's recompute policy, the name of a metric.
#ifndef SSL_HOOKS_ONCE_PER_RUN_H_
#define SSL_HOOKS_ONCE_PER_RUN_H_

#include "ssl/core/component.h"

namespace ssl {

// The options of such a hook derive from this. An entry of config.hooks configures it, and adds no second one.
class OncePerRunOptions : public ComponentOptions {};

inline bool IsOncePerRun(const ComponentOptions& options) {
  return dynamic_cast<const OncePerRunOptions*>(&options) != nullptr;
}

}  // namespace ssl

#endif  // SSL_HOOKS_ONCE_PER_RUN_H_
