// SPDX-License-Identifier: Apache-2.0
//
// Which part of a data set a split is: HOLD_OUT_FRACTION and DATA_LIMIT.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/dataset_builder.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetPartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    AddSource("grey", {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
    AddSource("uneven", {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1});
    AddSource("different", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    AddSource("unlabelled", {});
    AddSource("one", {0});
  }

  // Images of one pixel, whose value is the index: one for each label, or 12 without.
  void AddSource(const std::string& name, const std::vector<int64_t>& labels) {
    const auto make = [=](const ConfigNode&, const BuildContext&) -> absl::StatusOr<std::unique_ptr<Dataset>> {
      ImageArray array;
      array.count = labels.empty() ? 12 : static_cast<int64_t>(labels.size());
      array.height = array.width = 1;
      for (int64_t i = 0; i < array.count; ++i) array.pixels.push_back(static_cast<uint8_t>(i));
      array.labels = labels;
      return ArrayDataset::Create(std::move(array), absl::StrCat("images ", name));
    };
    ASSERT_OK(registries_.datasets.Register(name, make));
  }

  // Of the lines below DATA_SOURCES, of which the first is line 4 of run.yaml.
  absl::StatusOr<std::unique_ptr<Dataset>> Build(const std::string& source, const std::string& lines) {
    config_ = ParseYaml(absl::StrCat("DATA:\n  TRAIN:\n    DATA_SOURCES: [", source, "]\n", lines), "run.yaml", nullptr)
                  .value();
    return BuildDataset(*config_.FindPath("DATA.TRAIN"), {config_, registries_, *local_});
  }

  Registries registries_;
  ConfigNode config_;
  const std::unique_ptr<Communicator> local_ = MakeLocalCommunicator();
};

// Which images the data set has.
std::vector<int> ImagesOf(const Dataset& dataset) {
  std::vector<int> images;
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    EXPECT_OK(dataset.Get(i, &sample));
    EXPECT_EQ(sample.label, dataset.Label(i));
    images.push_back(sample.view(0).image.pixels()[0]);
  }
  return images;
}

TEST_F(DatasetPartsTest, BalancedLimit_HasEquallyManyOfEachClass) {
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      Build("grey", "    DATA_LIMIT: 8\n    DATA_LIMIT_SAMPLING: {IS_BALANCED: True, SKIP_NUM_SAMPLES: 3}\n"));
  std::vector<int64_t> labels;
  for (const int image : ImagesOf(*dataset)) labels.push_back(image % 3);
  EXPECT_THAT(labels, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2));
}

TEST_F(DatasetPartsTest, BalancedLimit_NeedsClasses) {
  EXPECT_THAT(Build("unlabelled", "    DATA_LIMIT: 8\n    DATA_LIMIT_SAMPLING: {IS_BALANCED: True}\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:5: config.DATA.TRAIN.DATA_LIMIT_SAMPLING.IS_BALANCED: sample 0 has no "
                                 "class")));
}

TEST_F(DatasetPartsTest, BalancedLimit_NamesAClassThatIsTooSmall) {
  for (const char* hold_out : {"0.0", "0.25"}) {
    EXPECT_THAT(Build("uneven", absl::StrCat("    DATA_LIMIT: 8\n    DATA_LIMIT_SAMPLING: {IS_BALANCED: True}\n",
                                             "    HOLD_OUT_FRACTION: ", hold_out, "\n")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("IS_BALANCED: class 1 has 3 samples, but 4 are needed")));
  }
}

TEST_F(DatasetPartsTest, HoldOut_SaysWhereOneOfEachClassIsMore) {
  const auto log_of = [&](const std::string& lines) {
    const CapturedLog log;
    EXPECT_OK(Build("grey", "    HOLD_OUT_FRACTION: " + lines).status());
    return log.Text();
  };
  EXPECT_THAT(log_of("0.01\n    SPLIT: test\n"),
              HasSubstr("run.yaml:4: config.DATA.TRAIN.HOLD_OUT_FRACTION is 0.01: 3 of 12 images are held out"));
  EXPECT_EQ(log_of("0.01\n"), "") << "told once";
  EXPECT_EQ(log_of("0.25\n    SPLIT: test\n"), "");
}

// One of each class is held out, nine are left.
TEST_F(DatasetPartsTest, HoldOut_AndALimitOfTheRest_ShareNoImage) {
  const std::string hold_out = "    HOLD_OUT_FRACTION: 0.25\n";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> test, Build("grey", hold_out + "    SPLIT: test\n"));
  const std::vector<int> held_out = ImagesOf(*test);
  EXPECT_EQ(held_out.size(), 3u);
  for (const int limit : {1, 3, 6, 9}) {
    for (const char* balanced : {"False", "True"}) {
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> train,
                           Build("grey", absl::StrCat(hold_out, "    DATA_LIMIT: ", limit,
                                                      "\n    DATA_LIMIT_SAMPLING: {IS_BALANCED: ", balanced, "}\n")));
      EXPECT_EQ(train->size(), limit);
      for (const int image : ImagesOf(*train)) {
        EXPECT_EQ(std::count(held_out.begin(), held_out.end(), image), 0) << limit << " balanced: " << balanced;
      }
    }
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> some,
                       Build("grey", hold_out + "    SPLIT: test\n    DATA_LIMIT: 2\n"));
  EXPECT_EQ(some->size(), 2);
}

// What was enough to train on without a test set is enough to evaluate on a part of it.
TEST_F(DatasetPartsTest, LimitThatTheWholeDataSetHas_IsAllThatIsLeft) {
  const auto build = [&](int limit, const std::string& sampling) {
    return Build("grey", absl::StrCat("    HOLD_OUT_FRACTION: 0.25\n    DATA_LIMIT: ", limit,
                                      "\n    DATA_LIMIT_SAMPLING: {", sampling, "}\n"));
  };
  constexpr struct {
    int limit;
    const char* sampling;
    int64_t left;
  } kLimits[] = {{12, "", 9},
                 {10, "", 9},
                 {10, "SKIP_NUM_SAMPLES: 2", 7},
                 {12, "IS_BALANCED: True", 9},
                 {11, "IS_BALANCED: True", 9},
                 {9, "IS_BALANCED: True, SKIP_NUM_SAMPLES: 3", 6},
                 {9, "IS_BALANCED: True, SKIP_NUM_SAMPLES: 1", 6}};
  for (const auto& [limit, sampling, left] : kLimits) {
    const CapturedLog log;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> train, build(limit, sampling));
    EXPECT_EQ(train->size(), left) << limit << " " << sampling;
    EXPECT_THAT(log.Text(), HasSubstr(absl::StrCat("run.yaml:5: config.DATA.TRAIN.DATA_LIMIT is ", limit,
                                                   ", of which HOLD_OUT_FRACTION leaves ", left)));
  }
  EXPECT_THAT(build(13, "").status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("together at most 12")));
  EXPECT_THAT(build(1, "SKIP_NUM_SAMPLES: 11").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("together at most 9")));
}

TEST_F(DatasetPartsTest, HoldOut_WhereNoClassHasTwoImages_IsOfAllTogether) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> train, Build("different", "    HOLD_OUT_FRACTION: 0.1\n"));
  EXPECT_EQ(train->size(), 11);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> test,
                       Build("different", "    HOLD_OUT_FRACTION: 0.1\n    SPLIT: test\n"));
  EXPECT_EQ(test->size(), 1);
}

TEST_F(DatasetPartsTest, HoldOut_OfOneImage_IsRefused) {
  EXPECT_THAT(
      Build("one", "    HOLD_OUT_FRACTION: 0.1\n    SPLIT: test\n").status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("run.yaml:4: config.DATA.TRAIN.HOLD_OUT_FRACTION is 0.1, but images one has 1 image")));
}

}  // namespace
}  // namespace ssl
