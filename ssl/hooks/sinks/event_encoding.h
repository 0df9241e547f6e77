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
//     Value       { 1: string tag; 2: float simple_value; 4: Image; 5: HistogramProto }
//     Image       { 1: int32 height; 2: int32 width; 3: int32 colorspace, 3 for RGB; 4: bytes of a PNG file }
//     HistogramProto { 1: double min; 2: max; 3: num; 4: sum; 5: sum_squares; 6: packed repeated bucket_limit, the
//     upper
//                      edges; 7: packed repeated bucket }
//     SessionLog  { 1: enum status, START = 1 }
#ifndef SSL_HOOKS_SINKS_EVENT_ENCODING_H_
#define SSL_HOOKS_SINKS_EVENT_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/metric_report.h"

namespace ssl {

// The record around `payload`.
std::string EncodeRecord(absl::string_view payload);

// The first event of a file. wall_time: seconds since 1970.
std::string EncodeFileVersion(double wall_time);

// A process starts to write at `step`: a reader drops older events of that step and later ones.
std::string EncodeSessionStart(double wall_time, int64_t step);

// Of an event: its wall_time, which comes first.
inline constexpr size_t kWallTimeBytes = 1 + sizeof(double);

// Scalars, stored as float, then histograms, then images. An image that cannot be made a PNG is an error.
absl::StatusOr<std::string> EncodeReport(double wall_time, const MetricReport& report);

}  // namespace ssl

#endif  // SSL_HOOKS_SINKS_EVENT_ENCODING_H_
