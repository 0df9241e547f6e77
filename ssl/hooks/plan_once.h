// SPDX-License-Identifier: Apache-2.0
//
// What a hook plans to do once in a run (Hook::Plan).
#ifndef SSL_HOOKS_PLAN_ONCE_H_
#define SSL_HOOKS_PLAN_ONCE_H_

#include <cstdint>

#include "ssl/core/cadence.h"

namespace ssl {

// Due when `update` updates are done, and never again: the next time is behind the end of any run.
inline Cadence OnceAt(int64_t update) { return {Cadence::Unit::kUpdate, int64_t{1} << 40, update, update, false}; }

}  // namespace ssl

#endif  // SSL_HOOKS_PLAN_ONCE_H_
