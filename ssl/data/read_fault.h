// SPDX-License-Identifier: Apache-2.0
//
// Why an image could not be read and another one took its place, as far as an error's code tells; what is wrong with a
// file in detail, ssl/data/inspection finds out.
#ifndef SSL_DATA_READ_FAULT_H_
#define SSL_DATA_READ_FAULT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Values are kept in checkpoints: they do not change.
enum class ReadFault : uint8_t {
  kNone = 0,
  kDamaged = 1,
  kFormat = 2,      // of another format, or of a kind that is not supported
  kLimit = 3,       // over a limit of pixels, bytes or scans
  kMissing = 4,     // no such file
  kUnreadable = 5,  // the system refuses
};
inline constexpr int kNumReadFaults = 6;  // kNone among them

// By the codes of DecodeImage and FileSystem. `error` is one.
inline ReadFault ReadFaultOf(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kDataLoss:
      return ReadFault::kDamaged;
    case absl::StatusCode::kUnimplemented:
      return ReadFault::kFormat;
    case absl::StatusCode::kResourceExhausted:
      return ReadFault::kLimit;
    case absl::StatusCode::kNotFound:
      return ReadFault::kMissing;
    default:
      return ReadFault::kUnreadable;
  }
}

// After a number: "3 of another format".
inline absl::string_view ReadFaultName(ReadFault fault) {
  constexpr absl::string_view kNames[] = {"readable",     "damaged", "of another format",
                                          "over a limit", "missing", "unreadable"};
  return kNames[static_cast<int>(fault)];
}

}  // namespace ssl

#endif  // SSL_DATA_READ_FAULT_H_
