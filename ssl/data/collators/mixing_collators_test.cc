// SPDX-License-Identifier: Apache-2.0
//
// The collators that change the rows of a batch.
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/data/collator.h"
#include "ssl/data/collators/collators.h"
#include "ssl/data/sample.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kSide = 12;
constexpr int64_t kClasses = 7;
constexpr char kPath[] = "config.DATA.TRAIN.COLLATE_FUNCTION_PARAMS";

absl::StatusOr<std::unique_ptr<const Collator>> Make(const std::string& name, const std::string& params) {
  return MakeCollator(name, ParseYaml(params, "run.yaml", nullptr).value(), kPath);
}

// cutmixup_collator without smoothing, for kClasses classes.
std::unique_ptr<const Collator> CutMixUp(const std::string& params) {
  return Make("cutmixup_collator", absl::StrCat("{num_classes: ", kClasses, ", label_smoothing: 0, ", params, "}"))
      .value();
}

// A batch in memory of its own: the value of row r of view v is 1 + r + 100 v everywhere, its class is r % kClasses.
struct TestBatch {
  explicit TestBatch(int64_t num_rows, int num_views = 1, int channels = 3) {
    rows.rows = num_rows;
    pixels.resize(num_views);
    for (int v = 0; v < num_views; ++v) {
      rows.views.push_back({nullptr, kSide, kSide, channels});
      for (int64_t r = 0; r < num_rows; ++r) {
        pixels[v].insert(pixels[v].end(), rows.views[v].row_size(), static_cast<float>(1 + r + 100 * v));
      }
      rows.views[v].values = pixels[v].data();
    }
    for (int64_t r = 0; r < num_rows; ++r) {
      indices.push_back(500 + r);
      labels.push_back(r % kClasses);
    }
    weights.resize(num_rows * kClasses);
    ones.resize(num_rows * kClasses);
    rows.indices = indices.data();
    rows.labels = labels.data();
    rows.target_weights = num_views == 1 ? weights.data() : nullptr;
    rows.target_rows = ones.data();
  }

  float Weight(int64_t row, int64_t label) const { return weights[row * kClasses + label]; }
  // Of the pixel at (y, x) of row r, all of whose channels are equal.
  float Pixel(int64_t r, int y, int x, int v = 0) const {
    const BatchRows::View& view = rows.views[v];
    const float* pixel = view.row(r) + (y * kSide + x) * view.channels;
    for (int c = 1; c < view.channels; ++c) EXPECT_EQ(pixel[c], pixel[0]);
    return pixel[0];
  }

  std::vector<std::vector<float>> pixels;  // of each view
  std::vector<int64_t> indices, labels, ones;
  std::vector<float> weights;
  BatchRows rows;
};

// How much of row r is its own, as the pixels have it. Expects the rest to be of the row at its place from the end.
std::vector<double> MixedShares(const TestBatch& batch, int v = 0) {
  std::vector<double> shares;
  for (int64_t r = 0; r < batch.rows.rows; ++r) {
    const double own = 1.0 + static_cast<double>(r) + 100.0 * v;
    const double other = static_cast<double>(batch.rows.rows - r) + 100.0 * v;
    shares.push_back((batch.Pixel(r, 0, 0, v) - other) / (own - other));
    const double expected = shares.back() * own + (1.0 - shares.back()) * other;
    for (int i = 0; i < kSide * kSide; ++i) EXPECT_NEAR(batch.Pixel(r, i / kSide, i % kSide, v), expected, 1e-5);
  }
  return shares;
}

TEST(CutMixUp, Mixup_WeighsPixelsAndClassesOfARowAndItsCounterpart) {
  for (const int channels : {1, 3}) {
    TestBatch batch(6, 1, channels);
    ASSERT_OK(CutMixUp("mixup_alpha: 0.8")->Collate({1, 2}, &batch.rows));
    const std::vector<double> shares = MixedShares(batch);
    EXPECT_GT(shares[0], 0.0);
    EXPECT_LT(shares[0], 1.0);
    for (int64_t r = 0; r < 6; ++r) {
      EXPECT_NEAR(shares[r], shares[0], 1e-5) << "one draw for a batch";
      EXPECT_NEAR(batch.Weight(r, r), shares[0], 1e-5);
      EXPECT_NEAR(batch.Weight(r, 5 - r), 1.0 - shares[0], 1e-5);
    }
  }
}

TEST(CutMixUp, CutMix_TakesABoxAndItsShareOfTheLabel) {
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    TestBatch batch(4);
    ASSERT_OK(CutMixUp("mixup_alpha: 0, cutmix_alpha: 1")->Collate({1, epoch}, &batch.rows));
    for (int64_t r = 0; r < 4; ++r) {
      std::set<int> lines, columns;
      int taken = 0;
      for (int i = 0; i < kSide * kSide; ++i) {
        const float pixel = batch.Pixel(r, i / kSide, i % kSide);
        if (pixel == static_cast<float>(1 + r)) continue;
        EXPECT_EQ(pixel, static_cast<float>(4 - r));
        lines.insert(i / kSide);
        columns.insert(i % kSide);
        ++taken;
      }
      EXPECT_EQ(taken, static_cast<int>(lines.size() * columns.size())) << "a box";
      EXPECT_NEAR(batch.Weight(r, 3 - r), taken / 144.0, 1e-6);
      EXPECT_NEAR(batch.Weight(r, r), 1.0 - taken / 144.0, 1e-6);
    }
  }
}

TEST(CutMixUp, WithoutCorrection_TheLabelFollowsTheDrawnShare) {
  int differ = 0;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    TestBatch drawn(2), corrected(2);
    ASSERT_OK(CutMixUp("mixup_alpha: 0, cutmix_alpha: 1, correct_lam: False")->Collate({1, epoch}, &drawn.rows));
    ASSERT_OK(CutMixUp("mixup_alpha: 0, cutmix_alpha: 1")->Collate({1, epoch}, &corrected.rows));
    EXPECT_EQ(drawn.pixels, corrected.pixels);
    differ += drawn.Weight(0, 0) != corrected.Weight(0, 0);
    EXPECT_LE(drawn.Weight(0, 0), corrected.Weight(0, 0) + 1e-6) << "a box is cut off, never enlarged";
  }
  EXPECT_GT(differ, 10);
}

TEST(CutMixUp, MinMax_BoundsTheSidesOfTheBox) {
  const auto collator = CutMixUp("mixup_alpha: 0, cutmix_minmax: [0.25, 0.5]");
  std::set<size_t> sides;
  for (uint64_t epoch = 0; epoch < 40; ++epoch) {
    TestBatch batch(2);
    ASSERT_OK(collator->Collate({1, epoch}, &batch.rows));
    std::set<int> lines, columns;
    for (int i = 0; i < kSide * kSide; ++i) {
      if (batch.Pixel(0, i / kSide, i % kSide) == 1.0f) continue;
      lines.insert(i / kSide);
      columns.insert(i % kSide);
    }
    sides.insert({lines.size(), columns.size()});
  }
  EXPECT_THAT(sides, ElementsAre(3, 4, 5)) << "12 / 4 ... 12 / 2 - 1, as numpy's upper ends are exclusive";
}

TEST(CutMixUp, Modes_DrawForABatchAPairOrASample) {
  const auto different = [](const std::string& mode) {
    TestBatch batch(6);
    EXPECT_OK(CutMixUp("mixup_alpha: 1, mode: " + mode)->Collate({3, 4}, &batch.rows));
    const std::vector<double> shares = MixedShares(batch);
    std::set<int> rounded;
    for (size_t r = 0; r < shares.size(); ++r) {
      rounded.insert(static_cast<int>(std::lround(1e4 * shares[r])));
      EXPECT_NEAR(batch.Weight(static_cast<int64_t>(r), static_cast<int64_t>(r)), shares[r], 1e-5);
      if (mode == "pair") {
        EXPECT_NEAR(shares[r], shares[5 - r], 1e-5);
      }
    }
    return rounded.size();
  };
  EXPECT_EQ(different("batch"), 1u);
  EXPECT_EQ(different("pair"), 3u);
  EXPECT_EQ(different("elem"), 6u);
}

TEST(CutMixUp, Probabilities_DecideWhetherAndHow) {
  int mixup = 0, cutmix = 0, none = 0;
  const auto collator = CutMixUp("mixup_alpha: 1, cutmix_alpha: 1, prob: 0.8, switch_prob: 0.25");
  for (uint64_t epoch = 0; epoch < 2000; ++epoch) {
    TestBatch batch(2, 1, 1);
    ASSERT_OK(collator->Collate({1, epoch}, &batch.rows));
    const std::set<float> values(batch.pixels[0].begin(), batch.pixels[0].end());
    const bool whole = batch.Weight(0, 0) == 1.0f;
    none += whole;
    cutmix += !whole && values == std::set<float>{1.0f, 2.0f};
    mixup += !whole && values.count(1.0f) == 0;
  }
  EXPECT_NEAR(none, 400 + 40, 80) << "CutMix's box may be empty";
  EXPECT_NEAR(cutmix, 400 - 40, 80);
  EXPECT_NEAR(mixup, 1200, 80);
}

TEST(CutMixUp, Smoothing_SpreadsAShareOverAllClasses) {
  TestBatch batch(2);
  const auto collator = Make("cutmixup_collator", "{num_classes: 7, label_smoothing: 0.14, prob: 0}").value();
  ASSERT_OK(collator->Collate({1, 2}, &batch.rows));
  for (int64_t label = 0; label < kClasses; ++label) {
    EXPECT_NEAR(batch.Weight(0, label), label == 0 ? 0.88 : 0.02, 1e-6);
    EXPECT_NEAR(batch.Weight(1, label), label == 1 ? 0.88 : 0.02, 1e-6);
  }
  EXPECT_THAT(MixedShares(batch), Each(1.0));
}

TEST(CutMixUp, SeveralViews_AreMixedApartAndHaveNoTargets) {
  Sample sample;
  sample.ResetViews(3);
  const auto collator = CutMixUp("mixup_alpha: 1");
  EXPECT_EQ(collator->Targets(sample).kind, TargetLayout::Kind::kNone);
  TestBatch batch(4, 3);
  ASSERT_OK(collator->Collate({1, 2}, &batch.rows));
  std::set<double> shares;
  for (int v = 0; v < 3; ++v) shares.insert(MixedShares(batch, v)[0]);
  EXPECT_EQ(shares.size(), 3u);

  sample.ResetViews(1);
  EXPECT_EQ(collator->Targets(sample).kind, TargetLayout::Kind::kWeights);
  EXPECT_EQ(collator->Targets(sample).columns, kClasses);
}

TEST(CutMixUp, Draws_FollowFromSeedEpochAndSamples) {
  const auto share = [](uint64_t seed, uint64_t epoch, int64_t first_index) {
    TestBatch batch(2);
    batch.indices[0] = first_index;
    EXPECT_OK(CutMixUp("mixup_alpha: 1")->Collate({seed, epoch}, &batch.rows));
    return batch.Weight(0, 0);
  };
  const std::set<float> shares = {share(1, 2, 3), share(1, 2, 3), share(2, 2, 3), share(1, 3, 3), share(1, 2, 4)};
  EXPECT_EQ(shares.size(), 4u);
}

TEST(CutMixUp, ViewsOfItsMethod_AreChecked) {
  const auto check = [](const std::string& method, const std::vector<int>& sides) {
    Sample sample;
    sample.ResetViews(static_cast<int>(sides.size()));
    for (size_t v = 0; v < sides.size(); ++v) sample.view(static_cast<int>(v)).image.Allocate(sides[v], sides[v], 3);
    return Make("cutmixup_collator", absl::StrCat("{ssl_method: ", method, "}")).value()->Check(sample);
  };
  EXPECT_OK(check("null", {8}));
  EXPECT_OK(check("null", {8, 8, 4}));
  EXPECT_OK(check("moco", {8, 8}));
  EXPECT_OK(check("simclr", {8, 8, 8}));
  EXPECT_THAT(check("moco", {8, 8, 8}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("COLLATE_FUNCTION is cutmixup_collator with ssl_method moco, but the transforms make "
                                 "3 views; expected 2 views of one size")));
  EXPECT_THAT(check("simclr", {8, 4}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("view 1 is 4 x 4")));
}

TEST(CutMixUp, WrongLabelsAndParameters_AreNamed) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  TestBatch batch(2);
  batch.labels[1] = kClasses;
  EXPECT_THAT(CutMixUp("mixup_alpha: 1")->Collate({1, 2}, &batch.rows),
              StatusIs(invalid, HasSubstr("sample 501 has label 7, expected 0 to 6, as num_classes of "
                                          "cutmixup_collator is 7")));
  Sample sample;
  sample.ResetViews(1);
  const std::vector<int64_t> row = {1, 0};
  sample.label_row = row;
  EXPECT_THAT(CutMixUp("mixup_alpha: 1")->Check(sample),
              StatusIs(invalid, HasSubstr("a sample has labels for 2 classes, expected one class")));
  EXPECT_THAT(Make("cutmixup_collator", "mixup_alpha: 0"),
              StatusIs(invalid, HasSubstr("mixup_alpha and cutmix_alpha are 0, expected one above 0")));
  EXPECT_THAT(Make("cutmixup_collator", "cutmix_minmax: [0.5, 0.2]"),
              StatusIs(invalid, HasSubstr(absl::StrCat("run.yaml:1: ", kPath, ".cutmix_minmax is [0.5, 0.2]"))));
  EXPECT_THAT(Make("cutmixup_collator", "mode: all"), StatusIs(invalid, HasSubstr("run.yaml:1: ")));
  EXPECT_OK(Make("cutmixup_collator", "{cutmix_minmax: null, ssl_method: null}"));
}

TEST(MixingCollators, PairsNeedAnEvenBatch) {
  for (const char* name : {"cutmixup_collator", "multicrop_mixup_collator"}) {
    const auto collator = Make(name, "{}").value();
    EXPECT_TRUE(collator->mixes_samples());
    EXPECT_OK(collator->CheckRows(4));
    EXPECT_THAT(collator->CheckRows(3),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(name), HasSubstr("a batch has 3, expected an even number"),
                               HasSubstr("set DROP_LAST to True"))));
  }
  EXPECT_FALSE(Make("multicrop_collator", "{}").value()->mixes_samples());
  EXPECT_OK(Make("multicrop_collator", "{}").value()->CheckRows(3));
}

TEST(MulticropMixup, PairsOfSamples_BecomeTheirWeightedMeans) {
  TestBatch batch(6, 2);
  ASSERT_OK(Make("multicrop_mixup_collator", "{}").value()->Collate({1, 2}, &batch.rows));
  ASSERT_EQ(batch.rows.rows, 3);
  const double second = batch.Pixel(0, 0, 0) - 1.0;  // the share of sample 1
  EXPECT_GT(second, 0.0);
  EXPECT_LT(second, 1.0);
  for (int v = 0; v < 2; ++v) {
    for (int r = 0; r < 3; ++r) {
      const double expected = 1 + 2 * r + 100 * v + second;
      for (int i = 0; i < kSide * kSide; ++i) EXPECT_NEAR(batch.Pixel(r, i / kSide, i % kSide, v), expected, 1e-4);
    }
  }
  EXPECT_THAT(std::vector<int64_t>(batch.indices.begin(), batch.indices.begin() + 3), ElementsAre(500, 502, 504));
  EXPECT_THAT(std::vector<int64_t>(batch.labels.begin(), batch.labels.begin() + 3), ElementsAre(0, 2, 4));
}

TEST(MulticropMixup, RowsOfLabels_StayThoseOfTheFirstSample) {
  TestBatch batch(4, 2);
  batch.labels = {1, 0, 2, 2, 0, 1, 2, 2};
  batch.rows.labels = batch.labels.data();
  batch.rows.label_columns = 2;
  const auto collator = Make("multicrop_mixup_collator", "{}").value();
  ASSERT_OK(collator->Collate({1, 2}, &batch.rows));
  EXPECT_THAT(std::vector<int64_t>(batch.labels.begin(), batch.labels.begin() + 4), ElementsAre(1, 0, 0, 1));
  batch.rows.rows = 4;
  batch.rows.labels = nullptr;
  EXPECT_OK(collator->Collate({1, 2}, &batch.rows));
}

TEST(OneHot, AClass_HasARowOfUnknownOthers) {
  const auto collator = Make("targets_one_hot_default_collator", "num_classes: 3").value();
  Sample sample;
  sample.ResetViews(1);
  ASSERT_OK(collator->Check(sample));
  EXPECT_EQ(collator->Targets(sample).kind, TargetLayout::Kind::kRows);
  EXPECT_EQ(collator->Targets(sample).columns, 3);
  TestBatch batch(2);
  batch.labels = {2, 0};
  ASSERT_OK(collator->Collate({1, 2}, &batch.rows));
  EXPECT_THAT(std::vector<int64_t>(batch.ones.begin(), batch.ones.begin() + 6), ElementsAre(-1, -1, 1, 1, -1, -1));
  batch.labels[1] = 3;
  EXPECT_THAT(collator->Collate({1, 2}, &batch.rows),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sample 501 has label 3, expected 0 to 2")));
}

TEST(OneHot, Rows_StayAsTheyAreAndMustFit) {
  const auto collator = Make("targets_one_hot_default_collator", "num_classes: 3").value();
  Sample sample;
  sample.ResetViews(1);
  const std::vector<int64_t> row = {1, 0, -1};
  sample.label_row = row;
  EXPECT_OK(collator->Check(sample));
  EXPECT_EQ(collator->Targets(sample).kind, TargetLayout::Kind::kLabels);
  TestBatch batch(2);
  batch.rows.target_rows = nullptr;
  const std::vector<int64_t> labels = batch.labels;
  EXPECT_OK(collator->Collate({1, 2}, &batch.rows));
  EXPECT_EQ(batch.labels, labels);
  EXPECT_THAT(
      Make("targets_one_hot_default_collator", "num_classes: 4").value()->Check(sample),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("num_classes of targets_one_hot_default_collator is 4, but a sample has labels for 3")));
  sample.ResetViews(2);
  EXPECT_THAT(collator->Check(sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("make 2 views; expected 1 view")));
  EXPECT_THAT(Make("targets_one_hot_default_collator", "{}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat(kPath, ".num_classes is not set"))));
}

}  // namespace
}  // namespace ssl
