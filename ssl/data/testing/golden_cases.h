// SPDX-License-Identifier: Apache-2.0
//
// Golden cases for the tests of this package: the small set in ssl/data/testdata, or the directory that SSL_GOLDEN_DIR
// names (tests/golden/golden.h).
#ifndef SSL_DATA_TESTING_GOLDEN_CASES_H_
#define SSL_DATA_TESTING_GOLDEN_CASES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/config/node.h"
#include "ssl/data/image.h"
#include "tests/golden/golden.h"

namespace ssl {

// The cases of `op`. None, or an unreadable directory, is a test failure.
std::vector<golden::Case> GoldenCases(const std::string& category, const std::string& op);

// hwc: [H, W, C] uint8.
Image ToImage(const at::Tensor& hwc);

// A list of numbers.
std::vector<int64_t> ToInts(const ConfigNode& list);
std::vector<double> ToDoubles(const ConfigNode& list);

// The largest difference between two pictures; 256 when their shapes differ.
int LargestDifference(const Image& left, const Image& right);

}  // namespace ssl

#endif  // SSL_DATA_TESTING_GOLDEN_CASES_H_
