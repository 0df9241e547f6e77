// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/accuracy_remarks.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

SubjectFeatures Subject(const std::string& name, const std::string& title, int64_t test_images,
                        const at::Tensor& train = at::randn({20, 8})) {
  SubjectFeatures subject;
  subject.name = name;
  subject.title = title;
  subject.train.features = {train};
  subject.test.labels = at::arange(test_images, at::kLong);
  return subject;
}

std::string TextFor(double raw_pixels, double untrained, double trained, int64_t test_images) {
  AccuracyRemarks remarks;
  remarks.Add(Subject("raw_pixels", "raw pixels", test_images), raw_pixels);
  remarks.Add(Subject("untrained", "untrained network", test_images), untrained);
  remarks.Add(Subject("trained", "trained network", test_images), trained);
  return remarks.Text(/*shared_images=*/0);
}

TEST(AccuracyRemarksTextTest, ComparesByTheIntervals) {
  EXPECT_EQ(TextFor(0.4, 0.5, 0.9, 1000),
            "The trained network is better than the raw pixels and the untrained network: the 95 % intervals do not "
            "overlap.\n");
  EXPECT_EQ(TextFor(0.3, 0.38, 0.54, 37),
            "37 test images do not tell whether the trained network is better than the raw pixels or the untrained "
            "network: the 95 % intervals overlap.\n");
  EXPECT_THAT(TextFor(0.6, 0.85, 0.6, 1000),
              AllOf(HasSubstr("worse than the untrained network: the 95 % intervals do not overlap. Its training"),
                    HasSubstr("1000 test images do not tell whether the trained network is better than the raw")));
}

TEST(AccuracyRemarksTextTest, SeveralRowsOfANetwork_AreNotCompared) {
  AccuracyRemarks remarks;
  remarks.Add(Subject("untrained", "untrained network", 1000), 0.9);
  remarks.Add(Subject("trained", "trained network", 1000), 0.1);
  remarks.Add(Subject("trained", "trained network", 1000), 0.2);
  EXPECT_THAT(remarks.Text(0), IsEmpty());
}

TEST(AccuracyRemarksTextTest, EqualFeatures_AreACollapse) {
  AccuracyRemarks remarks;
  remarks.Add(Subject("trained", "trained network", 10, at::ones({20, 8})), 0.5);
  EXPECT_THAT(remarks.Text(0), HasSubstr("nearly the same features for all images (spread 0.0000"));
}

TEST(AccuracyRemarksTextTest, TestImagesThatWereTrainedOn_AreCounted) {
  AccuracyRemarks remarks;
  remarks.Add(Subject("trained", "trained network", 10), 1.0);
  EXPECT_THAT(remarks.Text(4), HasSubstr("4 of the 10 test images are training images, so that"));
}

TEST(AccuracyRemarksTextTest, IntervalIsAColumnAndAList) {
  EXPECT_EQ(IntervalColumn(0.4, 30), "   24.6 to  57.7%");
  const ConfigNode tree = IntervalTree(0.4, 30);
  ASSERT_EQ(tree.items().size(), 2u);
  EXPECT_NEAR(tree.items()[0].AsDouble().value(), 0.2459063, 1e-6);
}

class AccuracyRemarksTest : public MatrixRun {
 protected:
  // Images of two classes, in the folders "0" and "1" of `folder`, `each` of a class; those of class 1 in colour.
  void WriteImages(const std::string& folder, int each) {
    for (int i = 0; i < 2 * each; ++i) {
      Image image;
      uint8_t* const pixels = image.Allocate(8, 8, 3);
      for (int byte = 0; byte < 8 * 8 * 3; ++byte) {
        const int grey = (byte / 3 * 37 + i * 53) % 200;
        pixels[byte] = static_cast<uint8_t>(i < each ? grey : grey + byte % 3);
      }
      const std::string path = absl::StrCat(directory_, "/", folder, "/", i / each, "/", i, ".png");
      ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
      ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, EncodePng(image).value()));
    }
  }

  void SetFolders(const std::string& train, const std::string& test) {
    for (const auto& [split, folder] : {std::pair("DATA.TRAIN", train), std::pair("DATA.TEST", test)}) {
      const std::string key(split);
      Set(key + ".DATA_SOURCES", "[disk_folder]");
      Set(key + ".DATA_PATHS", absl::StrCat("[", directory_, "/", folder, "]"));
      Set(key + ".DATA_LIMIT", "-1");
      Set(key + ".IMAGE_CHANNELS", "3");
    }
    Set("DATA.TEST.TRANSFORMS", "[{name: ToTensor}]");
  }
};

TEST_F(AccuracyRemarksTest, ABaselineThatFails_LeavesTheOtherFigures) {
  SaveRandomCheckpoint();
  for (const auto& [engine, section] :
       {std::pair("knn", "NEAREST_NEIGHBOR"), std::pair("linear_eval", "LINEAR_EVAL")}) {
    Restart();
    fail_at_call_ = 3;  // of the untrained network, after one image of the trained one
    Set(absl::StrCat(section, ".BASELINES"), "[raw_pixels, untrained]");
    ASSERT_OK_AND_ASSIGN(const EngineReport report, Run(engine));
    EXPECT_THAT(report.verdict, StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("a baseline failed"),
                                                                            HasSubstr("untrained network, features of "
                                                                                      "TRAIN: call 3 fails"))));
    EXPECT_THAT(report.summary, AllOf(HasSubstr("raw pixels "), HasSubstr("\ntrained network "))) << engine;
    EXPECT_GT(Result(absl::StrCat(engine, ".trained")), 0.0);
    EXPECT_EQ(results_.FindPath(absl::StrCat(engine, ".untrained")), nullptr);
  }
}

TEST_F(AccuracyRemarksTest, Intervals_StandBesideTheAccuracies) {
  SaveRandomCheckpoint();
  for (const char* engine : {"knn", "linear_eval"}) {
    ASSERT_OK_AND_ASSIGN(const EngineReport report, Run(engine));
    const double top1 = Result(absl::StrCat(engine, ".trained"));
    EXPECT_THAT(report.summary, AllOf(HasSubstr("95 % interval"), HasSubstr(IntervalColumn(top1, 20)))) << engine;
    EXPECT_TRUE(*results_.FindPath(absl::StrCat(engine, ".trained_interval")) == IntervalTree(top1, 20)) << engine;
    EXPECT_THAT(report.summary, Not(HasSubstr("top-5"))) << "of four classes nearly all are among five";
  }
  EXPECT_GE(Result("linear_eval.trained_top5"), 0.0) << "results.json keeps it";
}

// The first batches of a data set that begins with a grey class are grey.
TEST_F(AccuracyRemarksTest, AGreyClassAmongColouredOnes_HasRawPixels) {
  WriteImages("photos", 20);
  WriteImages("others", 3);
  SetFolders("photos", "others");
  Set("DATA.TEST.BATCHSIZE_PER_REPLICA", "4");
  SaveRandomCheckpoint();
  for (const auto& [engine, section] :
       {std::pair("knn", "NEAREST_NEIGHBOR"), std::pair("linear_eval", "LINEAR_EVAL")}) {
    Set(absl::StrCat(section, ".BASELINES"), "[raw_pixels]");
    ASSERT_OK_AND_ASSIGN(const EngineReport report, Run(engine));
    EXPECT_OK(report.verdict) << engine;
    EXPECT_GE(Result(absl::StrCat(engine, ".raw_pixels")), 0.0) << engine;
  }
}

TEST_F(AccuracyRemarksTest, TestImagesThatAreTrainingImages_AreTold) {
  WriteImages("photos", 8);
  SetFolders("photos", "photos/../photos");
  SaveRandomCheckpoint();
  for (const char* engine : {"knn", "linear_eval", "neighbors"}) {
    Set("NEIGHBORS", "{NUM_QUERIES: 2, TOPK: 2, IMAGE_SIDE: 16, LAYERS: [all], BASELINES: []}");
    ASSERT_OK_AND_ASSIGN(const EngineReport report, Run(engine));
    EXPECT_THAT(report.summary, HasSubstr("16 of the 16 test images are training images")) << engine;
    EXPECT_EQ(Result(absl::StrCat(engine, ".test_images_in_training")), 16) << engine;
  }
}

}  // namespace
}  // namespace ssl
