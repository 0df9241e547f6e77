// SPDX-License-Identifier: Apache-2.0
//
// Golden cases for the tests of this package: the small set in ssl/data/testdata, or the directory that SSL_GOLDEN_DIR
// names (tests/golden/golden.h).
#ifndef SSL_DATA_TESTING_GOLDEN_CASES_H_
#define SSL_DATA_TESTING_GOLDEN_CASES_H_

#include <ATen/core/Tensor.h>

#include <string>

#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/image.h"
#include "tests/golden/golden.h"

namespace ssl {

// In pixels.
struct Extent {
  int height = 0;
  int width = 0;
};

// This package's own set.
inline constexpr char kGoldenFolder[] = "ssl/data/testdata";
// What make_augment.py in that folder writes. No other set has it, so a test of it is not tagged golden.
inline constexpr char kAugmentFolder[] = "ssl/data/testdata/augment";

// Runs the cases of `op` as golden::RunCases does. None, or an unreadable directory, is a test failure.
void RunGolden(const std::string& category, const std::string& op, const golden::CaseRunner& runner,
               const golden::CaseLimit& limit = nullptr, const std::string& folder = kGoldenFolder);

// hwc: [H, W, C] uint8; another tensor ends the case with a failure.
Image ToImage(const at::Tensor& hwc);

// The parameter "box" of a case: top, left, height and width of a part of `image`. Another box ends the case with a
// failure.
CropBox BoxOf(const golden::Case& golden_case, const Image& image);

// The parameter "size": height and width, of at most a thousand pixels each. Another one ends the case with a failure.
Extent SizeOf(const golden::Case& golden_case);

// The largest difference between two images; 256 when their shapes differ.
int LargestDifference(const Image& left, const Image& right);

}  // namespace ssl

#endif  // SSL_DATA_TESTING_GOLDEN_CASES_H_
