// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/testing/golden_cases.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace ssl {

std::vector<golden::Case> GoldenCases(const std::string& category, const std::string& op) {
  const std::string own =
      std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") + "/ssl/data/testdata";
  setenv("SSL_GOLDEN_DIR", own.c_str(), /*overwrite=*/0);
  absl::StatusOr<std::vector<golden::Case>> cases = golden::ReadCategory(category);
  EXPECT_TRUE(cases.ok()) << cases.status();
  if (!cases.ok()) return {};
  std::vector<golden::Case> chosen;
  for (golden::Case& golden_case : *cases) {
    if (golden_case.op == op) chosen.push_back(std::move(golden_case));
  }
  EXPECT_FALSE(chosen.empty()) << "no case of " << op;
  return chosen;
}

Image ToImage(const at::Tensor& hwc) {
  Image image;
  uint8_t* pixels =
      image.Allocate(static_cast<int>(hwc.size(0)), static_cast<int>(hwc.size(1)), static_cast<int>(hwc.size(2)));
  const uint8_t* values = hwc.const_data_ptr<uint8_t>();
  std::copy(values, values + hwc.numel(), pixels);
  return image;
}

std::vector<int64_t> ToInts(const ConfigNode& list) {
  std::vector<int64_t> values;
  for (const ConfigNode& item : list.items()) values.push_back(item.AsInt().value());
  return values;
}

std::vector<double> ToDoubles(const ConfigNode& list) {
  std::vector<double> values;
  for (const ConfigNode& item : list.items()) values.push_back(item.AsDouble().value());
  return values;
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
