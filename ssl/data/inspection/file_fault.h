// SPDX-License-Identifier: Apache-2.0
//
// Why an image file cannot be used, told apart further than a training does (ssl/data/image_fault.h), which counts what
// it replaces: here somebody has to decide whether to copy the file again, to convert it or to remove it. Pure
// functions.
#ifndef SSL_DATA_INSPECTION_FILE_FAULT_H_
#define SSL_DATA_INSPECTION_FILE_FAULT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

enum class FileFault {
  kNone,
  kMissing,      // there is no such file
  kUnreadable,   // the system does not give its bytes: permissions, a broken disk
  kEmpty,        // 0 bytes
  kTruncated,    // JPEG, PNG or WebP whose end is missing
  kDamaged,      // JPEG, PNG or WebP with both ends that does not decode
  kNotAnImage,   // begins like no image format that is known here
  kUnsupported,  // an image of a format, or of a rare kind of these, that the decoder does not have
  kTooLarge,     // over a limit of the decoder (ssl/data/image/decode_limits.h)
};
inline constexpr int kFileFaults = 9;  // how many there are

// For people and as a key: "truncated", "not an image".
absl::string_view FileFaultName(FileFault fault);

// reason: what reading or decoding returned; OK is kNone. bytes: of the file, "" when they were not read.
FileFault ClassifyFileFault(absl::string_view bytes, const absl::Status& reason);

}  // namespace ssl

#endif  // SSL_DATA_INSPECTION_FILE_FAULT_H_
