// SPDX-License-Identifier: Apache-2.0
//
// For tests of transforms: builds one as a configuration would, and applies it.
#ifndef SSL_DATA_TRANSFORMS_TESTING_TRANSFORM_TEST_UTIL_H_
#define SSL_DATA_TRANSFORMS_TESTING_TRANSFORM_TEST_UTIL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform.h"

namespace ssl {

// entry: one entry of TRANSFORMS as YAML, such as "name: RandomHorizontalFlip\np: 1.0". Its file name is "run.yaml".
absl::StatusOr<std::unique_ptr<Transform>> MakeTransform(absl::string_view entry);

// A sample with one image, in which byte i is `first` + 7 * i.
Sample OneImage(int height, int width, int channels, int first = 0);

// Applies `transform` as operation 0 on sample `index`, with scratch of its own.
absl::Status ApplyTransform(const Transform& transform, Sample* sample, uint64_t index = 0);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_TESTING_TRANSFORM_TEST_UTIL_H_
