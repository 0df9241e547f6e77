// SPDX-License-Identifier: Apache-2.0
//
// Why an image cannot be used, wherever that is counted or told: by a training that replaces it, by the check of a data
// set, in files and in messages. Told apart so far that somebody can decide whether to copy a file again, to convert it
// or to remove it. Pure functions.
#ifndef SSL_DATA_READ_FAULT_H_
#define SSL_DATA_READ_FAULT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Values are kept in checkpoints: they do not change.
enum class ReadFault : uint8_t {
  kNone = 0,
  kDamaged = 1,      // JPEG, PNG or WebP with both ends that does not decode
  kUnsupported = 2,  // an image of a format, or of a rare kind of these, that the decoder does not have
  kTooLarge = 3,     // over a limit of the decoder (ssl/data/image/decode_limits.h)
  kMissing = 4,      // there is no such file
  kUnreadable = 5,   // the system does not give its bytes: permissions, a broken disk
  kEmpty = 6,        // 0 bytes
  kTruncated = 7,    // JPEG, PNG or WebP whose end is missing
  kNotAnImage = 8,   // begins like no image format that is known here
};
inline constexpr int kNumReadFaults = 9;  // kNone among them

// All but kNone, in the order of tables and files.
inline constexpr ReadFault kKindsOfBroken[] = {ReadFault::kMissing,     ReadFault::kUnreadable, ReadFault::kEmpty,
                                               ReadFault::kTruncated,   ReadFault::kDamaged,    ReadFault::kNotAnImage,
                                               ReadFault::kUnsupported, ReadFault::kTooLarge};

// For people, after a number, and as a key: "truncated", "not an image".
absl::string_view ReadFaultName(ReadFault fault);

// reason: what reading (AsReadError) or DecodeImage returned; OK is kNone. bytes: of the image, "" when they were not
// read.
ReadFault ReadFaultOf(absl::string_view bytes, const absl::Status& reason);

// An error of reading bytes, with a code that ReadFaultOf does not take for one of their content: DataLoss of a file
// that shrank meanwhile.
absl::Status AsReadError(const absl::Status& error);

}  // namespace ssl

#endif  // SSL_DATA_READ_FAULT_H_
