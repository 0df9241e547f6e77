// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/testing/golden_cases.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ssl {

void RunGolden(const std::string& category, const std::string& op, const golden::CaseRunner& runner,
               const golden::CaseLimit& limit, const std::string& folder) {
  absl::StatusOr<std::vector<golden::Case>> cases = golden::ReadCategory(category, golden::Directory(folder));
  ASSERT_TRUE(cases.ok()) << cases.status();
  std::vector<golden::Case> chosen;
  for (golden::Case& golden_case : *cases) {
    if (golden_case.op == op) chosen.push_back(std::move(golden_case));
  }
  golden::RunCases(absl::StrCat(category, " ", op), chosen, {{op, runner}}, {}, limit);
}

Image ToImage(const at::Tensor& hwc) {
  Image image;
  if (!hwc.defined() || hwc.dim() != 3 || hwc.scalar_type() != at::kByte) {
    throw std::invalid_argument("found another tensor, expected bytes of shape [H, W, C]");  // RunCases catches it
  }
  const at::Tensor rows = hwc.contiguous();
  uint8_t* pixels =
      image.Allocate(static_cast<int>(rows.size(0)), static_cast<int>(rows.size(1)), static_cast<int>(rows.size(2)));
  const uint8_t* values = rows.const_data_ptr<uint8_t>();
  std::copy(values, values + rows.numel(), pixels);
  return image;
}

CropBox BoxOf(const golden::Case& golden_case, const Image& image) {
  const std::vector<int64_t> box = golden_case.Ints("box", 4);
  const bool is_inside = box[0] >= 0 && box[1] >= 0 && box[2] > 0 && box[3] > 0 && box[0] <= image.height() - box[2] &&
                         box[1] <= image.width() - box[3];
  if (!is_inside) throw std::invalid_argument("the box is no part of the image");
  return {static_cast<int>(box[0]), static_cast<int>(box[1]), static_cast<int>(box[2]), static_cast<int>(box[3])};
}

Extent SizeOf(const golden::Case& golden_case) {
  const std::vector<int64_t> size = golden_case.Ints("size", 2);
  for (const int64_t side : size) {
    if (side < 1 || side > 1000) throw std::invalid_argument("size is none of an image");
  }
  return {static_cast<int>(size[0]), static_cast<int>(size[1])};
}

int LargestDifference(const Image& left, const Image& right) {
  if (left.height() != right.height() || left.width() != right.width() || left.channels() != right.channels()) {
    return 256;
  }
  int largest = 0;
  for (int64_t i = 0; i < left.size_bytes(); ++i) {
    largest = std::max(largest, std::abs(left.pixels()[i] - right.pixels()[i]));
  }
  return largest;
}

}  // namespace ssl
