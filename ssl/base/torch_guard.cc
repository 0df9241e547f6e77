// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/torch_guard.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>
#include <oneapi/dnnl/dnnl_common.hpp>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <typeinfo>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/base/collective_check.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/start_thread.h"
#include "ssl/base/status_util.h"

namespace ssl {
namespace {

// What NCCL says below the first line where CUDA has no memory for it: "Cuda failure 2 'out of memory'". Else "".
absl::string_view NcclsMemoryLine(absl::string_view message) {
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    if (absl::StrContains(line, "Cuda failure") && absl::StrContains(line, "'out of memory'")) return line;
  }
  return "";
}

// LibTorch appends C++ frames after the first line.
absl::Status FromMessage(absl::StatusCode code, absl::string_view what, absl::string_view message) {
  const absl::string_view reason = NcclsMemoryLine(message);
  return absl::Status(
      code, absl::StrCat(what, ": ", message.substr(0, message.find('\n')), reason.empty() ? "" : "; ", reason));
}

// "c10::ValueError" of the exception's own type, not of the one it is caught by.
std::string TypeName(const std::exception& error) {
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &failed), &std::free);
  return failed == 0 ? name.get() : typeid(error).name();
}

// The CPU allocators throw a plain c10::Error.
bool HostIsOutOfMemory(absl::string_view message) {
  return absl::StrContains(message, "can't allocate memory") || absl::StrContains(message, "not enough memory");
}

// The accelerators' allocators throw an exception of its own. The driver (error 2) and NVIDIA's libraries, which also
// allocate themselves, say it in their messages; NCCL, whose other errors are another rank's.
bool DeviceIsOutOfMemory(const c10::Error& error, absl::string_view message) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         absl::StrContains(message, "CUDA error: out of memory") ||
         absl::StrContains(message, "_STATUS_ALLOC_FAILED") || !NcclsMemoryLine(message).empty();
}

// Under deterministic algorithms, of which LibTorch says "put_ does not have a deterministic implementation, but you
// set ..." with advice for programs in Python. "" for any other message.
absl::string_view WithoutDeterministicVersion(absl::string_view message) {
  const size_t end = message.find(" does not have a deterministic implementation");
  return end == absl::string_view::npos ? "" : message.substr(0, end);
}

absl::Status OutOfMemory(absl::Status status) { return WithDetail(std::move(status), kDetailCause, kCauseMemory); }

absl::StatusCode CodeOf(const c10::Error& error) {
  if (dynamic_cast<const c10::ValueError*>(&error) || dynamic_cast<const c10::IndexError*>(&error) ||
      dynamic_cast<const c10::TypeError*>(&error)) {
    return absl::StatusCode::kInvalidArgument;
  }
  if (dynamic_cast<const c10::NotImplementedError*>(&error)) {
    return absl::StatusCode::kUnimplemented;
  }
  return absl::StatusCode::kInternal;
}

absl::Status FromTorch(absl::string_view what, const c10::Error& error) {
  const char* message = error.what_without_backtrace();
  const bool is_device = DeviceIsOutOfMemory(error, message);
  if (is_device || HostIsOutOfMemory(message)) {
    const absl::Status status = OutOfMemory(FromMessage(absl::StatusCode::kResourceExhausted, what, message));
    return is_device ? WithDetail(status, kDetailMemory, kMemoryOfDevice) : status;
  }
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) {
    return WithDetail(FromMessage(absl::StatusCode::kUnavailable, what, message), kDetailCause, kCausePeer);
  }
  const absl::string_view varying = WithoutDeterministicVersion(message);
  if (!varying.empty()) {
    return absl::UnimplementedError(
        absl::StrCat(what, ": ", varying,
                     " has no deterministic version: change the settings that compute with it, or "
                     "take what varies with config.REPRODUCIBILITY.CUDDN_DETERMINISTIC=False"));
  }
  return FromMessage(CodeOf(error), what, message);
}

absl::Status FromException(absl::string_view what, const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) return FromTorch(what, *torch_error);
  // oneDNN says no more than that it "could not create a primitive".
  const auto* const of_onednn = dynamic_cast<const dnnl::error*>(&error);
  const bool lacks_memory = of_onednn != nullptr && of_onednn->status == dnnl_out_of_memory;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr || lacks_memory) {
    return OutOfMemory(FromMessage(absl::StatusCode::kResourceExhausted, what, "out of memory"));
  }
  // What std::thread throws, in LibTorch's code as well.
  const auto* const refused = dynamic_cast<const std::system_error*>(&error);
  if (refused != nullptr && refused->code() == std::errc::resource_unavailable_try_again) {
    return NoThreadError(what, error);
  }
  return FromMessage(absl::StatusCode::kInternal, what, error.what());
}

}  // namespace

absl::Status GuardTorch(absl::string_view what, absl::FunctionRef<absl::Status()> fn) {
  try {
    return fn();
  } catch (const CollectiveError& error) {
    return Annotate(error.status(), what);
  } catch (const std::exception& error) {
    return WithDetail(FromException(what, error), kDetailException, TypeName(error));
  } catch (...) {
    return FromMessage(absl::StatusCode::kInternal, what, "exception of an unknown type");
  }
}

}  // namespace ssl
