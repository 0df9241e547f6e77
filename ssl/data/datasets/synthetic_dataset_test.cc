// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/synthetic_dataset.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

SyntheticDatasetOptions SmallOptions() {
  SyntheticDatasetOptions options;
  options.size = 20;
  options.side = 8;
  options.num_classes = 4;
  return options;
}

std::string Pixels(const SyntheticDataset& dataset, int64_t index) {
  Sample sample;
  sample.ResetViews(1);
  EXPECT_OK(dataset.Get(index, &sample));
  const Image& image = sample.view(0).image;
  return std::string(reinterpret_cast<const char*>(image.pixels()), image.size_bytes());
}

TEST(SyntheticDataset, Image_DependsOnIndexAndSeedOnly) {
  const SyntheticDataset dataset(SmallOptions());
  SyntheticDatasetOptions options = SmallOptions();
  options.seed = 1;
  const SyntheticDataset other(options);

  EXPECT_EQ(Pixels(dataset, 3), Pixels(dataset, 3));
  EXPECT_EQ(Pixels(dataset, 3).size(), 8u * 8 * 3);
  EXPECT_NE(Pixels(dataset, 3), Pixels(dataset, 7));  // the same class
  EXPECT_NE(Pixels(dataset, 3), Pixels(other, 3));
}

TEST(SyntheticDataset, Label_IsIndexModuloClasses) {
  const SyntheticDataset dataset(SmallOptions());
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < 20; ++i) {
    ASSERT_OK(dataset.Get(i, &sample));
    EXPECT_EQ(sample.label, i % 4);
  }
  EXPECT_TRUE(dataset.has_labels());
}

TEST(SyntheticDataset, NoClasses_MeansNoLabels) {
  SyntheticDatasetOptions options = SmallOptions();
  options.num_classes = 0;
  options.channels = 1;
  const SyntheticDataset dataset(options);
  Sample sample;
  sample.ResetViews(1);

  ASSERT_OK(dataset.Get(0, &sample));

  EXPECT_FALSE(dataset.has_labels());
  EXPECT_EQ(sample.label, -1);
  EXPECT_EQ(sample.view(0).image.channels(), 1);
}

}  // namespace
}  // namespace ssl
