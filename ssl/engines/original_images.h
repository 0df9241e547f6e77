// SPDX-License-Identifier: Apache-2.0
//
// The images of a data set as they are in their files, for sheets that people look at. Const use is thread-safe.
#ifndef SSL_ENGINES_ORIGINAL_IMAGES_H_
#define SSL_ENGINES_ORIGINAL_IMAGES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/image.h"

namespace ssl {

class OriginalImages {
 public:
  // dataset: outlives this.
  explicit OriginalImages(const Dataset& dataset) : dataset_(dataset) {}

  // Its path, or "image 17" where it has no file.
  std::string Name(int64_t index) const;
  // The class and the file: "ant/001.jpg"; without classes that have names, the last two parts of the path.
  std::string ShortName(int64_t index) const;

  // A broken one is what the data set puts in its place.
  absl::StatusOr<Image> Read(int64_t index) const;

 private:
  const Dataset& dataset_;
};

}  // namespace ssl

#endif  // SSL_ENGINES_ORIGINAL_IMAGES_H_
