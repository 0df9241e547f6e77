// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/results_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

ConfigNode Results() {
  ConfigNode results = ConfigNode::Map();
  results.SetPath("knn.trained", ConfigNode::FromDouble(0.8725));
  results.SetPath("knn.k", ConfigNode::FromInt(20));
  results.Set("name", ConfigNode::FromString("a \"quoted\" name"));
  results.Set("best", ConfigNode::Null());
  return results;
}

TEST(ResultsFileTest, ToJson_KeepsTypesAndOrder) {
  EXPECT_EQ(ToJson(Results()),
            "{\n  \"knn\": {\n    \"trained\": 0.8725,\n    \"k\": 20\n  },\n  \"name\": \"a \\\"quoted\\\" name\",\n"
            "  \"best\": null\n}\n");
}

TEST(ResultsFileTest, WrittenResults_ReadBackEqual) {
  const std::string path = MakeTempDir("results") + "/results.json";
  ASSERT_OK(WriteResults(path, Results(), PosixFileSystem()));
  ASSERT_OK_AND_ASSIGN(const ConfigNode results, ReadResults(path, PosixFileSystem()));
  EXPECT_EQ(results, Results());
}

// Names of files may be any bytes.
TEST(ResultsFileTest, WhatIsNoUtf8_IsReadBack) {
  ConfigNode results = ConfigNode::Map();
  results.Set("text", ConfigNode::FromString("\xC3\xA4 and \\"));
  results.Set("bytes", ConfigNode::FromString("a\xFF\\\xC3\xA4"));
  results.Set("k\xFE", ConfigNode::FromInt(1));
  EXPECT_EQ(ToJson(results),
            "{\n  \"text\": \"\xC3\xA4 and \\\\\",\n  \"bytes\": "
            "\"a\\udcff\\\\\xC3\xA4\",\n  \"k\\udcfe\": 1\n}\n");
  const std::string path = MakeTempDir("results") + "/results.json";
  ASSERT_OK(WriteResults(path, results, PosixFileSystem()));
  ASSERT_OK_AND_ASSIGN(const ConfigNode back, ReadResults(path, PosixFileSystem()));
  EXPECT_EQ(back, results);
}

TEST(ResultsFileTest, MissingFile_IsAnEmptyMap) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode results, ReadResults(MakeTempDir("none") + "/results.json", PosixFileSystem()));
  EXPECT_TRUE(results.is_map());
  EXPECT_TRUE(results.entries().empty());
}

TEST(ResultsFileTest, FileThatIsNoObject_IsNamed) {
  const std::string path = MakeTempDir("list") + "/results.json";
  ASSERT_OK((*PosixFileSystem().Create(path))->Append("[1, 2]"));
  EXPECT_THAT(ReadResults(path, PosixFileSystem()), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
}

}  // namespace
}  // namespace ssl
