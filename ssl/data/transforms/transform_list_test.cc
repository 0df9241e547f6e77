// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/transform_list.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/register_transforms.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<std::unique_ptr<Transform>>> MakeList(const std::string& text) {
  const ConfigNode list = ParseYaml(text, "run.yaml", nullptr).value();
  Registries registries;
  EXPECT_OK(RegisterTransforms(&registries));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const ConfigNode config = ConfigNode::Map();
  return MakeTransforms(list, "run.yaml:1: TRANSFORMS", {config, registries, *communicator});
}

std::vector<bool> FlippedViews(const Transform& transform) {
  Sample sample = OneImage(2, 2, 1);
  sample.ResetViews(4);
  EXPECT_OK(ApplyTransform(transform, &sample));
  std::vector<bool> flipped;
  for (int v = 0; v < 4; ++v) flipped.push_back(sample.view(v).flipped);
  return flipped;
}

TEST(TransformList, Entries_AreBuiltInOrder) {
  ASSERT_OK_AND_ASSIGN(const auto transforms, MakeList("[{name: ToTensor}, {name: RandomHorizontalFlip, p: 1}]"));
  ASSERT_EQ(transforms.size(), 2u);
  EXPECT_EQ(transforms[0]->name(), "ToTensor");
  EXPECT_EQ(transforms[1]->name(), "RandomHorizontalFlip");
  ASSERT_OK_AND_ASSIGN(const auto none, MakeList("[]"));
  EXPECT_TRUE(none.empty());
}

TEST(TransformList, Indices_RestrictATransformToSomeViews) {
  ASSERT_OK_AND_ASSIGN(const auto some, MakeList("[{name: RandomHorizontalFlip, p: 1, indices: [2, 0]}]"));
  EXPECT_EQ(some[0]->name(), "RandomHorizontalFlip");
  EXPECT_EQ(FlippedViews(*some[0]), (std::vector<bool>{true, false, true, false}));
  ASSERT_OK_AND_ASSIGN(const auto all, MakeList("[{name: RandomHorizontalFlip, p: 1, indices: []}]"));
  EXPECT_EQ(FlippedViews(*all[0]), (std::vector<bool>{true, true, true, true}));
}

TEST(TransformList, Indices_LeaveTheFloatRuleAsItIs) {
  ASSERT_OK_AND_ASSIGN(const auto transforms,
                       MakeList("[{name: ToTensor, indices: [0]}, {name: RandomErasing, indices: [0]}]"));
  EXPECT_EQ(transforms[0]->float_rule(), FloatRule::kTable);
  EXPECT_EQ(transforms[1]->float_rule(), FloatRule::kByChance);
}

TEST(TransformList, IndexWithoutAView_IsAnError) {
  ASSERT_OK_AND_ASSIGN(const auto transforms, MakeList("[{name: RandomHorizontalFlip, indices: [0, 1]}]"));
  Sample sample = OneImage(2, 2, 1);
  EXPECT_THAT(ApplyTransform(*transforms[0], &sample),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("indices has 1, expected less than 1, the number of views")));
}

TEST(TransformList, SelectedView_DrawsAsItWouldAmongAll) {
  ASSERT_OK_AND_ASSIGN(const auto some, MakeList("[{name: RandomHorizontalFlip, indices: [2]}]"));
  ASSERT_OK_AND_ASSIGN(const auto all, MakeList("[{name: RandomHorizontalFlip}]"));
  std::set<bool> seen;
  for (int index = 0; index < 20; ++index) {
    Sample one = OneImage(2, 2, 1);
    Sample other = OneImage(2, 2, 1);
    one.ResetViews(3);
    other.ResetViews(3);
    ASSERT_OK(ApplyTransform(*some[0], &one, index));
    ASSERT_OK(ApplyTransform(*all[0], &other, index));
    EXPECT_EQ(one.view(2).flipped, other.view(2).flipped);
    seen.insert(one.view(2).flipped);
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(TransformList, WrongEntries_NamePlaceAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeList("[{name: ToTensor}, ToTensor]"),
              StatusIs(invalid, HasSubstr("run.yaml:1: TRANSFORMS.1 is 'ToTensor', expected a map with a name")));
  EXPECT_THAT(MakeList("[{name: ToTenser}]"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("ToTensor")));
  EXPECT_THAT(MakeList("- name: RandomHorizontalFlip\n  indices: [1, 1]"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.RandomHorizontalFlip.indices is a list, expected a "
                                          "list of different view numbers from 0")));
  EXPECT_THAT(MakeList("[{name: RandomHorizontalFlip, indices: 3}]"), StatusIs(invalid, HasSubstr("indices is '3'")));
  EXPECT_THAT(MakeList("[{name: RandomHorizontalFlip, indices: [-1]}]"), StatusIs(invalid, HasSubstr("indices")));
  EXPECT_THAT(MakeList("[{name: ImgReplicatePil, indices: [0]}]"),
              StatusIs(invalid, HasSubstr("indices is given, but ImgReplicatePil changes the views as a whole")));
  std::string many = "[";
  for (int i = 0; i < 1025; ++i) many += "{name: ToTensor}, ";
  EXPECT_THAT(MakeList(many + "]"), StatusIs(invalid, HasSubstr("has 1025 entries, expected at most 1024")));
}

TEST(TransformList, OtherLibraries_AreRefusedByName) {
  EXPECT_THAT(MakeList("- name: OverlayEmoji\n  transform_type: augly"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("run.yaml:2: TRANSFORMS.OverlayEmoji.transform_type is 'augly'"),
                             HasSubstr("transforms of other libraries are not here"))));
}

TEST(TransformContext, StreamsOfNestedOperations_AreDistinct) {
  TransformScratch scratch;
  std::set<uint64_t> operations;
  int count = 0;
  for (uint64_t outer : {0, 1, 2, 1022, 1023}) {
    const TransformContext context{1, 0, 0, outer, scratch};
    operations.insert(context.operation);
    ++count;
    for (uint64_t middle : {0, 1, 1022, 1023}) {
      const TransformContext nested = context.Nested(middle);
      operations.insert(nested.operation);
      ++count;
      for (uint64_t inner : {0, 1, 1023}) {
        operations.insert(nested.Nested(inner).operation);
        ++count;
      }
    }
  }
  EXPECT_EQ(operations.size(), static_cast<size_t>(count));
}

}  // namespace
}  // namespace ssl
