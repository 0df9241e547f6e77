// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/class_map.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

at::Tensor Labels(const std::vector<int64_t>& labels) { return at::tensor(labels, at::kLong); }

SplitClasses TrainingSet(std::vector<std::string> names, std::vector<int64_t> numbers = {}) {
  return {"config.DATA.TRAIN", std::move(names), std::move(numbers)};
}

SplitClasses TestSet(std::vector<std::string> names, std::vector<int64_t> numbers = {}) {
  return {"run.yaml:7: config.DATA.TEST.DATA_PATHS", std::move(names), std::move(numbers)};
}

TEST(ClassMapTest, Names_DecideWhichClassIsWhich) {
  ASSERT_OK_AND_ASSIGN(const ClassMap map, ClassMap::Create(TrainingSet({"ant", "bee", "cat", "dog"}, {0, 1, 2, 3}),
                                                            TestSet({"bee", "dog", "eel"}, {0, 1})));
  ASSERT_OK_AND_ASSIGN(const at::Tensor mapped, map.Apply(Labels({1, 0, 0, 1}), Labels({0, 1, 2, 3})));
  EXPECT_TRUE(at::equal(mapped, Labels({3, 1, 1, 3})));
}

TEST(ClassMapTest, Numbers_StayAsTheyAre) {
  ASSERT_OK_AND_ASSIGN(const ClassMap map, ClassMap::Create(TrainingSet({}, {0, 2, 9}), TestSet({}, {2, 9})));
  ASSERT_OK_AND_ASSIGN(const at::Tensor mapped, map.Apply(Labels({9, 2}), Labels({0, 2, 9})));
  EXPECT_TRUE(at::equal(mapped, Labels({9, 2})));
}

TEST(ClassMapTest, NamedClassThatTrainingLacks_IsRefused) {
  EXPECT_THAT(
      ClassMap::Create(TrainingSet({"ant", "bee"}, {0, 1}), TestSet({"ant", "yak", "zebu"}, {0, 1, 2})).status(),
      StatusIs(kInvalid, AllOf(HasSubstr("run.yaml:7: config.DATA.TEST.DATA_PATHS has classes without a sample "
                                         "in config.DATA.TRAIN: yak, zebu (2)"),
                               HasSubstr("classes there: ant, bee (2)"), HasSubstr("leave them out"))));
}

TEST(ClassMapTest, NameWithoutTrainingSamples_IsRefused) {
  // DATA_LIMIT may have left none of class bee.
  EXPECT_THAT(ClassMap::Create(TrainingSet({"ant", "bee"}, {0}), TestSet({"ant", "bee"}, {0, 1})).status(),
              StatusIs(kInvalid, AllOf(HasSubstr(": bee (1)"), HasSubstr("classes there: ant (1)"))));
}

TEST(ClassMapTest, NumberThatTrainingLacks_IsRefused) {
  EXPECT_THAT(ClassMap::Create(TrainingSet({}, {0, 1}), TestSet({}, {0, 1, 4})).status(),
              StatusIs(kInvalid, HasSubstr(": 4 (1)")));
}

TEST(ClassMapTest, UnknownNumbers_AreFoundInTheLabels) {
  ASSERT_OK_AND_ASSIGN(const ClassMap map, ClassMap::Create(TrainingSet({}), TestSet({})));
  EXPECT_OK(map.Apply(Labels({0, 1}), Labels({1, 0, 1})).status());
  EXPECT_THAT(map.Apply(Labels({0, 5}), Labels({1, 0, 1})).status(), StatusIs(kInvalid, HasSubstr(": 5 (1)")));
}

TEST(ClassMapTest, NamesAgainstNumbers_AreRefused) {
  EXPECT_THAT(
      ClassMap::Create(TrainingSet({"ant", "bee"}, {0, 1}), TestSet({}, {0, 1})).status(),
      StatusIs(kInvalid,
               AllOf(HasSubstr("run.yaml:7: config.DATA.TEST.DATA_PATHS has classes that are numbers"),
                     HasSubstr("config.DATA.TRAIN has classes with names: ant, bee (2)"), HasSubstr("LABEL_PATHS"))));
  EXPECT_THAT(ClassMap::Create(TrainingSet({}, {0, 1}), TestSet({"ant"}, {0})).status(),
              StatusIs(kInvalid, HasSubstr("config.DATA.TRAIN has classes that are numbers")));
}

TEST(ClassMapTest, Renumbering_TakesEveryClassOfTraining) {
  ASSERT_OK_AND_ASSIGN(const ClassMap map,
                       ClassMap::Create(TrainingSet({"ant", "bee", "cat"}), TestSet({"ant", "cat", "yak"})));
  ASSERT_OK_AND_ASSIGN(const at::Tensor mapped, map.Renumber(Labels({1, 0, -1, 1})));
  EXPECT_TRUE(at::equal(mapped, Labels({2, 0, -1, 2}))) << mapped;
  EXPECT_THAT(map.Renumber(Labels({2})).status(), StatusIs(kInvalid, HasSubstr(": yak (1)")));
}

TEST(ClassMapTest, LongLists_AreCut) {
  std::vector<std::string> names;
  for (int i = 10; i < 40; ++i) names.push_back("c" + std::to_string(i));
  EXPECT_THAT(ClassMap::Create(TrainingSet(names, {}), TestSet({}, {})).status(),
              StatusIs(kInvalid, AllOf(HasSubstr("c10, c11"), HasSubstr("c19, ... (30)"), Not(HasSubstr("c20")))));
}

}  // namespace
}  // namespace ssl
