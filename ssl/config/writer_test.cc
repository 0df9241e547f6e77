// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/writer.h"

#include <limits>

#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/reader.h"
#include "ssl/config/testing_options.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(WriteOptionsTest, EveryField_IsWrittenInOrder) {
  TestingOptions options;
  EXPECT_EQ(WriteYaml(WriteOptions(options)),
            "normalize: true\n"
            "queue_length: 0\n"
            "temperature: 0.1\n"
            "name: swav\n"
            "crops: [2, 6]\n"
            "scales: [0.5]\n"
            "devices: [cpu]\n"
            "params: null\n"
            "sinkhorn:\n"
            "  num_iters: 3\n");
}

TEST(WriteOptionsTest, WrittenText_ReadsBackToEqualOptions) {
  TestingOptions options;
  options.normalize = false;
  options.temperature = 1.0 / 3;
  options.name = "null";
  options.crops = {1, std::numeric_limits<int64_t>::max()};
  options.scales = {};
  options.params.SetPath("a.b", ConfigNode::FromString("x: y"));
  options.sinkhorn.num_iters = 7;

  ASSERT_OK_AND_ASSIGN(const ConfigNode tree, ParseYaml(WriteYaml(WriteOptions(options)), "f.yaml", nullptr));
  TestingOptions back;
  ASSERT_OK(ReadOptions(tree, "", UnknownKeys::kError, &back));

  EXPECT_EQ(WriteOptions(back), WriteOptions(options));
  EXPECT_EQ(back.temperature, options.temperature);
  EXPECT_EQ(back.name, "null");
}

TEST(WriteOptionsTest, OnlyConfigNodeFields_AreFreeForm) {
  TestingOptions options;
  const ConfigNode tree = WriteOptions(options);
  EXPECT_TRUE(tree.Find("params")->free_form());
  EXPECT_FALSE(tree.Find("sinkhorn")->free_form());
  EXPECT_FALSE(tree.Find("name")->free_form());
}

}  // namespace
}  // namespace ssl
