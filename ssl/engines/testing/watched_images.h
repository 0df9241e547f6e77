// SPDX-License-Identifier: Apache-2.0
//
// A data set that requests a stop when somebody looks at a whole image: a sheet, not a transform.
#ifndef SSL_ENGINES_TESTING_WATCHED_IMAGES_H_
#define SSL_ENGINES_TESTING_WATCHED_IMAGES_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ssl/base/stop_token.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/image.h"
#include "ssl/data/sample.h"

namespace ssl {

class WatchedImages : public Dataset {
 public:
  // Images of side x side pixels. whole_images: is increased.
  WatchedImages(int64_t size, int side, int channels, StopToken* stop, int* whole_images)
      : size_(size), side_(side), channels_(channels), stop_(*stop), whole_images_(*whole_images) {}
  int64_t size() const override { return size_; }
  bool has_labels() const override { return false; }
  std::string description() const override { return "watched images"; }
  absl::Status Get(int64_t index, Sample* sample) const override {
    Image& image = sample->view(0).image;
    uint8_t* pixels = image.Allocate(side_, side_, channels_);
    std::fill_n(pixels, image.size_bytes(), static_cast<uint8_t>(4 * index));
    if (sample->needed != nullptr) return absl::OkStatus();
    ++whole_images_;
    stop_.Request(kStopTerminate);
    return absl::OkStatus();
  }

 private:
  const int64_t size_;
  const int side_;
  const int channels_;
  StopToken& stop_;
  int& whole_images_;
};

}  // namespace ssl

#endif  // SSL_ENGINES_TESTING_WATCHED_IMAGES_H_
