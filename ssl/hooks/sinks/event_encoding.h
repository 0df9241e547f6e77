// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a TensorBoard event file. Pure functions.
//
//   file   := record*
//   record := length, masked CRC-32C of the length's 8 bytes, payload, masked CRC-32C of the payload
//             (length: 8 bytes; CRCs: 4 bytes; all little endian: TensorFlow's TFRecord)
//   payload: a protocol buffer Event; fields, from TensorFlow's event.proto and summary.proto:
//     Event       { 1: double wall_time; 2: int64 step; 3: string file_version; 5: Summary; 7: SessionLog }
//     Summary     { 1: repeated Value }
//     Value       { 1: string tag; 2: float simple_value }
//     SessionLog  { 1: enum status, START = 1 }
#ifndef SSL_HOOKS_SINKS_EVENT_ENCODING_H_
#define SSL_HOOKS_SINKS_EVENT_ENCODING_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

// The record around `payload`.
std::string EncodeRecord(absl::string_view payload);

// The first event of a file. wall_time: seconds since 1970.
std::string EncodeFileVersion(double wall_time);

// A process starts to write at `step`: a reader drops older events of that step and later ones.
std::string EncodeSessionStart(double wall_time, int64_t step);

// One scalar per entry, stored as float.
std::string EncodeScalars(double wall_time, int64_t step, const std::map<std::string, double>& values);

}  // namespace ssl

#endif  // SSL_HOOKS_SINKS_EVENT_ENCODING_H_
