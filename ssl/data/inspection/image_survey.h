// SPDX-License-Identifier: Apache-2.0
//
// Reads every image of a data set once, with several threads, and notes what can be said of each by itself. What they
// are together (duplicates, means) is for the caller: ssl/engines/data_report.h.
#ifndef SSL_DATA_INSPECTION_IMAGE_SURVEY_H_
#define SSL_DATA_INSPECTION_IMAGE_SURVEY_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/decode_mode.h"
#include "ssl/data/inspection/difference_hash.h"
#include "ssl/data/read_fault.h"

namespace ssl {

// Equal for equal bytes; for different ones with a probability of about 2^-96. Meant for one process.
struct ContentKey {
  int64_t bytes = 0;
  uint64_t hash = 0;
  uint32_t crc = 0;

  std::tuple<int64_t, uint64_t, uint32_t> AsTuple() const { return {bytes, hash, crc}; }
  bool operator==(const ContentKey& other) const { return AsTuple() == other.AsTuple(); }
  bool operator<(const ContentKey& other) const { return AsTuple() < other.AsTuple(); }
};

struct SurveyedImage {
  ReadFault fault = ReadFault::kNone;
  std::string reason;  // of a fault: "photos/a.jpg: image file is empty"
  ContentKey content;  // of the file, or of the pixels where there is no file
  // The rest is of an image without fault.
  int height = 0;
  int width = 0;
  int channels = 0;
  bool has_16_bits = false;  // the file, in which a value of 16 bits becomes one of 8 here
  int brightest = 0;         // value of any channel
  std::optional<DifferenceHash> difference_hash;
  // Per channel, of all pixels, where 1 is white.
  std::array<double, 3> mean = {};
  std::array<double, 3> mean_square = {};
};

struct SurveyOptions {
  int64_t threads = 1;  // at least 1; the caller's is one of them
  DecodeLimits limits;
  Grey16 grey16 = Grey16::kScale;
  const StopToken* stop = nullptr;                     // null: nobody stops it
  std::function<void(int64_t done)> on_progress = {};  // called by the caller's thread
};

// One for each image, in the order of the data set; the same for any number of threads. An image that cannot be read is
// a fault, not an error: of its file or shard, opened as the data set opens it, or of its pixels where it has none.
// Cancelled when it was stopped; an error of the process, such as no memory or file descriptor left, is returned.
// Memory: 250 bytes an image, and an image for each thread.
absl::StatusOr<std::vector<SurveyedImage>> SurveyImages(const Dataset& dataset, const SurveyOptions& options);

}  // namespace ssl

#endif  // SSL_DATA_INSPECTION_IMAGE_SURVEY_H_
