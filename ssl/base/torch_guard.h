// SPDX-License-Identifier: Apache-2.0
//
// The one place where exceptions of LibTorch (and of the standard library) become a Status.
// Called at the build, step, eval and load boundaries only; code below throws freely and
// code above never sees an exception. Thread-safe; fn runs on the calling thread.
//
//   return GuardTorch("step 12", [&] { return TrainStep(batch); });
//   // RESOURCE_EXHAUSTED: step 12: CUDA out of memory. Tried to allocate ...

#ifndef SSL_BASE_TORCH_GUARD_H_
#define SSL_BASE_TORCH_GUARD_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Runs fn and returns its Status. An exception becomes "what: first line of its message":
//   out of memory (c10's and the standard's)     -> kResourceExhausted, cause kCauseMemory; with kMemoryOfDevice when
//                                                   it is an accelerator's: c10::OutOfMemoryError, and CUDA's messages
//   c10::ValueError, IndexError, TypeError       -> kInvalidArgument
//   c10::NotImplementedError                     -> kUnimplemented
//   CollectiveError (collective_check.h)         -> the Status that it carries, with its details, and nothing below
//   c10::DistError and its other subclasses      -> kUnavailable, cause kCausePeer
//   anything else                                -> kInternal
// with its type as kDetailException (ssl/base/error_detail.h). A Status that fn returns passes unchanged.
absl::Status GuardTorch(absl::string_view what, absl::FunctionRef<absl::Status()> fn);

}  // namespace ssl

#endif  // SSL_BASE_TORCH_GUARD_H_
