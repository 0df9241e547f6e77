// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/torch_guard.h"

#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ssl {
namespace {

// LibTorch appends C++ frames after the first line.
absl::Status FromMessage(absl::StatusCode code, absl::string_view what, absl::string_view message) {
  return absl::Status(code, absl::StrCat(what, ": ", message.substr(0, message.find('\n'))));
}

absl::StatusCode CodeOf(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) {
    return absl::StatusCode::kResourceExhausted;
  }
  if (dynamic_cast<const c10::ValueError*>(&error) || dynamic_cast<const c10::IndexError*>(&error) ||
      dynamic_cast<const c10::TypeError*>(&error)) {
    return absl::StatusCode::kInvalidArgument;
  }
  if (dynamic_cast<const c10::NotImplementedError*>(&error)) {
    return absl::StatusCode::kUnimplemented;
  }
  if (dynamic_cast<const c10::DistError*>(&error)) return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::Status GuardTorch(absl::string_view what, absl::FunctionRef<absl::Status()> fn) {
  try {
    return fn();
  } catch (const c10::Error& error) {
    return FromMessage(CodeOf(error), what, error.what_without_backtrace());
  } catch (const std::bad_alloc& error) {
    return FromMessage(absl::StatusCode::kResourceExhausted, what, "out of memory");
  } catch (const std::exception& error) {
    return FromMessage(absl::StatusCode::kInternal, what, error.what());
  } catch (...) {
    return FromMessage(absl::StatusCode::kInternal, what, "exception of an unknown type");
  }
}

}  // namespace ssl
