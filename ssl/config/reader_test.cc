// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/reader.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/testing_options.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Status Read(absl::string_view yaml, Options* options, UnknownKeys unknown = UnknownKeys::kError) {
  absl::StatusOr<ConfigNode> node = ParseYaml(yaml, "f.yaml", nullptr);
  if (!node.ok()) return absl::InternalError(node.status().message());
  return ReadOptions(*node, "config.LOSS", unknown, options);
}

std::string ErrorOf(absl::string_view yaml) {
  TestingOptions options;
  const absl::Status status = Read(yaml, &options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ReadOptionsTest, EveryType_IsRead) {
  TestingOptions options;
  ASSERT_OK(
      Read("normalize: False\nqueue_length: 1_0\ntemperature: 1e-2\nname: moco\n"
           "crops: [1, 2, 3]\nscales: [0, 1]\ndevices: [gpu, cpu]\nparams: {a: [1]}\n"
           "sinkhorn: {num_iters: 5}\n",
           &options));
  EXPECT_FALSE(options.normalize);
  EXPECT_EQ(options.queue_length, 10);
  EXPECT_EQ(options.temperature, 0.01);
  EXPECT_EQ(options.name, "moco");
  EXPECT_THAT(options.crops, ElementsAre(1, 2, 3));
  EXPECT_THAT(options.scales, ElementsAre(0.0, 1.0));
  EXPECT_THAT(options.devices, ElementsAre("gpu", "cpu"));
  EXPECT_EQ(options.params.FindPath("a.0")->text(), "1");
  EXPECT_EQ(options.sinkhorn.num_iters, 5);
}

struct ListOptions : public Options {
  std::vector<std::string> names;
  std::vector<std::string> strict;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("names", &names, Doc("of whom").MayBeOne());
    visitor.Field("strict", &strict, Doc("of whom"));
  }
};

TEST(ReadOptionsTest, OneString_IsAListWhereTheDeclarationSaysSo) {
  ListOptions options;
  EXPECT_OK(Read("names: res4", &options));
  EXPECT_THAT(options.names, ElementsAre("res4"));
  EXPECT_OK(Read("names: [a, b]", &options));
  EXPECT_THAT(options.names, ElementsAre("a", "b"));
  EXPECT_EQ(Read("names: ''", &options).message(), "f.yaml:1: config.LOSS.names is '', expected a list");
  EXPECT_EQ(Read("strict: res4", &options).message(),
            "f.yaml:1: config.LOSS.strict is 'res4', expected a list, as [res4]");
}

TEST(ReadOptionsTest, MissingKeys_KeepDefaults) {
  TestingOptions options;
  ASSERT_OK(Read("name: moco\n", &options));
  EXPECT_TRUE(options.normalize);
  EXPECT_EQ(options.temperature, 0.1);
  EXPECT_THAT(options.crops, ElementsAre(2, 6));
  EXPECT_EQ(options.sinkhorn.num_iters, 3);
}

TEST(ReadOptionsTest, Null_EmptiesStringsAndLists_LeavesSections) {
  TestingOptions options;
  ASSERT_OK(Read("name:\ncrops: null\ndevices: ~\nsinkhorn:\nparams:\n", &options));
  EXPECT_EQ(options.name, "");
  EXPECT_THAT(options.crops, IsEmpty());
  EXPECT_THAT(options.devices, IsEmpty());
  EXPECT_EQ(options.sinkhorn.num_iters, 3);
  EXPECT_TRUE(options.params.is_null());
  EXPECT_OK(Read("", &options));
}

TEST(ReadOptionsTest, Null_IsNoNumber) {
  EXPECT_EQ(ErrorOf("temperature:\n"), "f.yaml:1: config.LOSS.temperature is null, expected a number above 0");
}

TEST(ReadOptionsTest, AllProblems_AreReportedAtOnceInOrderOfFields) {
  EXPECT_EQ(ErrorOf("name: [a]\n"
                    "normalize: maybe\n"
                    "queue_length: 101\n"
                    "temperature: 0\n"
                    "crops: [1, a, 0]\n"
                    "scales: 0.5\n"
                    "devices: [cpu, gpo]\n"
                    "sinkhorn: {num_iters: 1.5, epsilon: 1}\n"
                    "tempreture: 3\n"),
            "f.yaml:2: config.LOSS.normalize is 'maybe', expected true or false\n"
            "f.yaml:3: config.LOSS.queue_length is '101', expected an integer between 0 and 100\n"
            "f.yaml:4: config.LOSS.temperature is '0', expected a number above 0\n"
            "f.yaml:1: config.LOSS.name is a list, expected a string\n"
            "f.yaml:5: config.LOSS.crops.1 is 'a', expected an integer of at least 1\n"
            "f.yaml:5: config.LOSS.crops.2 is '0', expected an integer of at least 1\n"
            "f.yaml:6: config.LOSS.scales is '0.5', expected a list, as [0.5]\n"
            "f.yaml:7: config.LOSS.devices.1 is 'gpo', expected one of 'cpu', 'gpu'"
            "; did you mean 'gpu'?\n"
            "f.yaml:8: config.LOSS.sinkhorn.num_iters is '1.5', expected an integer of at least 1\n"
            "f.yaml:8: unknown key 'config.LOSS.sinkhorn.epsilon'\n"
            "f.yaml:9: unknown key 'config.LOSS.tempreture'; did you mean 'temperature'?");
}

TEST(ReadOptionsTest, WrongValues_LeaveTheirFieldsAlone_RightOnesAreSet) {
  TestingOptions options;
  EXPECT_FALSE(Read("crops: [7, a]\nqueue_length: -1\nname: moco\n", &options).ok());
  EXPECT_THAT(options.crops, ElementsAre(2, 6));
  EXPECT_EQ(options.queue_length, 0);
  EXPECT_EQ(options.name, "moco");
}

struct FreeFormOptions : public Options {
  ConfigNode list = ConfigNode::List();
  ConfigNode map = ConfigNode::Map();
  ConfigNode any = ConfigNode::FromString("auto");

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("list", &list, Doc("Entries."));
    visitor.Field("map", &map, Doc("Parameters."));
    visitor.Field("any", &any, Doc("Anything."));
  }
};

// "[a]" without its brackets is no empty list.
TEST(ReadOptionsTest, FreeFormListsAndMaps_AreOfTheKindOfTheirDefault) {
  FreeFormOptions options;
  EXPECT_EQ(Read("list: abc\nmap: [1]\nany: 3\n", &options).message(),
            "f.yaml:1: config.LOSS.list is 'abc', expected a list, as [abc]\n"
            "f.yaml:2: config.LOSS.map is a list, expected a map");
  EXPECT_TRUE(options.list.is_list());
  EXPECT_FALSE(Read("list: {name: nope}\n", &options).ok());
  EXPECT_FALSE(Read("map: 3\n", &options).ok());
  EXPECT_OK(Read("list: [{name: a}]\nmap: {b: 1}\nany: [1]\n", &options));
  EXPECT_OK(Read("list:\nmap:\nany:\n", &options));
}

TEST(ReadOptionsTest, UnknownKeys_MayBeIgnoredAtEveryLevel) {
  TestingOptions options;
  EXPECT_OK(Read("other: 1\nsinkhorn: {other: 2}\n", &options, UnknownKeys::kIgnore));
}

TEST(ReadOptionsTest, NoMap_IsAnError) {
  EXPECT_EQ(ErrorOf("[1]"), "f.yaml:1: config.LOSS is a list, expected a map");
  EXPECT_EQ(ErrorOf("sinkhorn: 3"), "f.yaml:1: config.LOSS.sinkhorn is '3', expected a map");
}

TEST(ReadOptionsTest, CommandLineValue_IsNamedByItsToken) {
  ConfigNode node = ConfigNode::Map();
  node.Set("queue_length", ConfigNode::Scalar("x", false, {"command line", 3}));
  TestingOptions options;
  EXPECT_EQ(ReadOptions(node, "", UnknownKeys::kError, &options).message(),
            "command line:3: queue_length is 'x', expected an integer between 0 and 100");
}

}  // namespace
}  // namespace ssl
