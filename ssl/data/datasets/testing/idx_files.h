// SPDX-License-Identifier: Apache-2.0
//
// IDX files, the format of MNIST, as tests need them.
#ifndef SSL_DATA_DATASETS_TESTING_IDX_FILES_H_
#define SSL_DATA_DATASETS_TESTING_IDX_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl {

// An IDX file of unsigned bytes with the given dimensions; `values` need not be as many as they say.
std::string IdxBytes(const std::vector<uint32_t>& shape, absl::string_view values);

// Images of 2 x 2 pixels: image i holds the value `base` + i everywhere.
std::string IdxImages(int count, int base);

// Labels 0 ... count - 1.
std::string IdxLabels(int count);

// A new folder in MNIST's layout: 3 training images, which are IdxImages(3, 100), and 2 test images, IdxImages(2, 200).
std::string MakeIdxFolder();

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_TESTING_IDX_FILES_H_
