// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/yaml.h"
#include "ssl/core/session.h"
#include "ssl/data/datasets/testing/tar_files.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/testing/png_of_16_bits.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Png(int seed) {
  Image image;
  uint8_t* pixels = image.Allocate(40, 50, 3);
  for (int i = 0; i < 40 * 50 * 3; ++i) {
    pixels[i] = static_cast<uint8_t>(128 + 100 * std::sin(seed + (0.02 + 0.013 * (seed % 5)) * (i / 3)));
  }
  return EncodePng(image).value();
}

class CheckDataEngineTest : public MatrixRun {
 protected:
  void Write(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(directory_, "/", name);
    ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
  }

  // Two classes of ten images.
  void WriteFolder() {
    for (int i = 0; i < 20; ++i) Write(absl::StrCat(i < 10 ? "photos/ant/" : "photos/bee/", i, ".png"), Png(i));
    Set("DATA.TRAIN.DATA_SOURCES", "[disk_folder]");
    Set("DATA.TRAIN.DATA_PATHS", absl::StrCat("[", directory_, "/photos]"));
    Set("DATA.TRAIN.DATA_LIMIT", "-1");
    Set("DATA.TEST.DATA_SOURCES", "[]");
  }

  ConfigNode Details() { return ReadResults(directory_ + "/data_check.json", PosixFileSystem()).value(); }
};

TEST_F(CheckDataEngineTest, Folder_WithOneOfEachFault) {
  WriteFolder();
  Write("photos/ant/3.png", "");
  Write("photos/bee/15.png", Png(15).substr(0, 100));
  Write("photos/bee/copy.png", Png(1));
  Set("DATA.TRAIN.MAX_BROKEN_FRACTION", "0.2");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_OK(report.verdict);
  EXPECT_THAT(report.summary, AllOf(HasSubstr("21 images"), HasSubstr("15.png"), HasSubstr("ant 10, bee 11"),
                                    HasSubstr("- name: Normalize"), HasSubstr("data_check.json")));
  EXPECT_EQ(Result("check_data.train.images"), 21);
  EXPECT_EQ(Result("check_data.train.broken"), 2);
  EXPECT_EQ(Result("check_data.train.exact_duplicates"), 1);
  const ConfigNode details = Details();
  EXPECT_THAT(details.FindPath("train.broken.empty.0.file")->text(), HasSubstr("photos/ant/3.png"));
  EXPECT_THAT(details.FindPath("train.broken.truncated.0.reason")->text(), HasSubstr("15.png: "));
  EXPECT_THAT(details.FindPath("train.exact_duplicates.0.1")->text(), HasSubstr("photos/bee/copy.png"));
  EXPECT_EQ(details.FindPath("train.mean")->items().size(), 3u);
}

TEST_F(CheckDataEngineTest, MoreBrokenThanATrainingTakes_IsTheVerdictAndTheReportStays) {
  WriteFolder();
  for (int i = 0; i < 5; ++i) Write(absl::StrCat("photos/ant/", i, ".png"), "no image");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_THAT(report.verdict, StatusIs(absl::StatusCode::kDataLoss,
                                       AllOf(HasSubstr("5 of 20 images"), HasSubstr("MAX_BROKEN_FRACTION"))));
  EXPECT_EQ(Details().FindPath("train.broken")->Find("not an image")->items().size(), 5u);
}

TEST_F(CheckDataEngineTest, OneBroken_EndsNoTraining) {
  WriteFolder();
  Write("photos/ant/3.png", "");
  Set("DATA.TRAIN.MAX_BROKEN_FRACTION", "0.01");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_OK(report.verdict);
  Set("DATA.TRAIN.MAX_BROKEN_FRACTION", "0");
  ASSERT_OK_AND_ASSIGN(const EngineReport strict, Run("check_data"));
  EXPECT_THAT(strict.verdict, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("allows a share of 0,")));
}

// Evaluations read it as DATA.TRAIN is read (evaluation_plan.h).
TEST_F(CheckDataEngineTest, FolderOfTestImagesAlone_IsReadAsEvaluationsReadIt) {
  WriteFolder();
  Set("DATA.TRAIN.DATA_LIMIT", "6");
  for (int i = 0; i < 5; ++i) Write(absl::StrCat("tests/ant/", i, ".png"), Png(100 + i));
  for (int i = 0; i < 3; ++i) Write(absl::StrCat("tests/bee/", i, ".png"), "no image");
  Set("DATA.TEST", absl::StrCat("{SPLIT: test, DATA_PATHS: [", directory_, "/tests]}"));
  ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_EQ(Result("check_data.train.images"), 6);
  EXPECT_EQ(Result("check_data.test.images"), 8);
  EXPECT_EQ(Result("check_data.test.broken"), 3);
  EXPECT_THAT(report.summary, HasSubstr("images of TEST that are in TRAIN as well: 0"));
  EXPECT_THAT(report.verdict, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("3 of 8 images")));
}

TEST_F(CheckDataEngineTest, FolderOfTestImagesThatIsNotThere_IsFoundBeforeATraining) {
  WriteFolder();
  Set("DATA.TEST", absl::StrCat("{SPLIT: test, DATA_PATHS: [", directory_, "/nowhere]}"));
  ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  EngineContext context = Context();
  ASSERT_OK_AND_ASSIGN(const auto engine,
                       registries_.engines.Make("check_data", config_, MakeBuildContext(context, /*seed=*/3)));
  EXPECT_THAT(engine->Check(context), StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
}

TEST_F(CheckDataEngineTest, FileThatCannotBeWritten_IsTheVerdictAndTheReportStays) {
  WriteFolder();
  Write("not", "a file in the way");
  EngineContext context = Context();
  context.run_directory = directory_ + "/not/there";
  const BuildContext build{config_, registries_, *communicator_, 3, context.run_directory};
  ASSERT_OK_AND_ASSIGN(const auto engine, registries_.engines.Make("check_data", config_, build));
  ASSERT_OK_AND_ASSIGN(const EngineReport report, engine->Run(context));
  EXPECT_THAT(report.summary,
              AllOf(HasSubstr("20 images"), HasSubstr("- name: Normalize"), Not(HasSubstr("every file by name"))));
  EXPECT_THAT(report.verdict,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("/not/there cannot be written (config.CHECKPOINT.DIR chooses another): ")));
}

TEST_F(CheckDataEngineTest, RunDirectoryThatTheCommandMayNotWrite_IsLeftAlone) {
  WriteFolder();
  EngineContext context = Context();
  context.run_directory = "/sys/nowhere";
  context.keeps_results = false;
  const BuildContext build{config_, registries_, *communicator_, 3, context.run_directory};
  ASSERT_OK_AND_ASSIGN(const auto engine, registries_.engines.Make("check_data", config_, build));
  ASSERT_OK_AND_ASSIGN(const EngineReport report, engine->Run(context));
  EXPECT_OK(report.verdict);
  EXPECT_THAT(report.summary, AllOf(HasSubstr("20 images"), Not(HasSubstr("every file by name"))));
}

TEST_F(CheckDataEngineTest, NamesThatAreNoText_CanBeFoundAgain) {
  WriteFolder();
  Write("photos/ant/\xFF.png", "");
  Write("photos/ant/\xFE.png", "");
  Set("DATA.TRAIN.MAX_BROKEN_FRACTION", "0.2");
  ASSERT_OK(Run("check_data"));
  const ConfigNode details = Details();
  EXPECT_THAT(details.FindPath("train.broken.empty.0.file")->text(), HasSubstr("photos/ant/\xFE.png"));
  EXPECT_THAT(details.FindPath("train.broken.empty.1.file")->text(), HasSubstr("photos/ant/\xFF.png"));
}

TEST_F(CheckDataEngineTest, OneBrokenImage_IsTheVerdictWhereATrainingTakesNone) {
  WriteFolder();
  Write("photos/ant/3.png", "");
  Set("DATA.TRAIN.BROKEN_IMAGES", "error");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_THAT(report.verdict,
              StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("1 of 20 images"), HasSubstr("BROKEN_IMAGES"))));
}

TEST_F(CheckDataEngineTest, TestImagesThatAreTrainedOn_AreNamed) {
  WriteFolder();
  Write("test/ant/new.png", Png(77));
  Write("test/bee/known.png", Png(12));
  Set("DATA.TEST.DATA_SOURCES", "[disk_folder]");
  Set("DATA.TEST.DATA_PATHS", absl::StrCat("[", directory_, "/test]"));
  Set("DATA.TEST.DATA_LIMIT", "-1");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_THAT(report.summary, HasSubstr("images of TEST that are in TRAIN as well: 1\n"));
  const ConfigNode details = Details();
  EXPECT_THAT(details.FindPath("test.in_train.0")->text(), HasSubstr("test/bee/known.png"));
  EXPECT_EQ(Result("check_data.test.images"), 2);
}

TEST_F(CheckDataEngineTest, ImagesWithoutFiles_HaveNumbers) {
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_EQ(Result("check_data.train.images"), 60);
  EXPECT_EQ(Result("check_data.train.tiny"), 60);
  EXPECT_THAT(report.summary, HasSubstr("image 0, image 1, image 2 and 57 more"));
}

TEST_F(CheckDataEngineTest, ImagesInTarShards_AreLookedAtAsFilesAre) {
  Write("shard.tar", TarMember("ant/0.png", Png(1)) + TarMember("ant/1.png", Png(2).substr(0, 100)) +
                         TarMember("ant/2.png", Png(1)) + TarMember("ant/3.png", "") + TarMember("ant/4.png", Png(3)) +
                         TarMember("ant/5.png", Png(4)) + TarEnd());
  Set("DATA.TRAIN.DATA_SOURCES", "[tar_shards]");
  Set("DATA.TRAIN.DATA_PATHS", absl::StrCat("[", directory_, "/shard.tar]"));
  Set("DATA.TRAIN.DATA_LIMIT", "-1");
  Set("DATA.TRAIN.MAX_BROKEN_FRACTION", "0.5");
  Set("DATA.TEST.DATA_SOURCES", "[]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_OK(report.verdict);
  EXPECT_EQ(Result("check_data.train.images"), 6);
  EXPECT_EQ(Result("check_data.train.broken"), 2);
  EXPECT_EQ(Result("check_data.train.exact_duplicates"), 1);
  const ConfigNode details = Details();
  EXPECT_EQ(details.FindPath("train.broken.truncated.0.file")->text(), directory_ + "/shard.tar/ant/1.png");
  EXPECT_EQ(details.FindPath("train.broken.empty.0.file")->text(), directory_ + "/shard.tar/ant/3.png");
  EXPECT_EQ(details.FindPath("train.bytes")->text(),
            absl::StrCat(100 + 2 * Png(1).size() + Png(3).size() + Png(4).size()));
}

TEST_F(CheckDataEngineTest, FilesOfOtherKinds_AreCounted) {
  WriteFolder();
  for (const char* name : {"photos/ant/a.heic", "photos/bee/b.heic", "photos/bee/c.gif"}) Write(name, "x");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  const std::string kinds = "3 files of kinds that are not read: .heic 2, .gif 1";
  EXPECT_THAT(report.summary, HasSubstr(absl::StrCat("  passed over: ", kinds, "\n")));
  EXPECT_EQ(Details().FindPath("train.passed_over.0")->text(), kinds);
}

TEST_F(CheckDataEngineTest, ImagesWithSeveralClasses_CountForEach) {
  WriteFolder();
  std::vector<int64_t> labels;
  for (int i = 0; i < 20; ++i) {
    for (const int64_t label : {i < 5 ? 1 : 0, i < 8 ? 1 : -1, 0}) labels.push_back(label);
  }
  ASSERT_OK(WriteNpy<int64_t>(PosixFileSystem(), directory_ + "/labels.npy", {20, 3}, labels));
  Set("DATA.TRAIN.LABEL_SOURCES", "[disk_filelist]");
  Set("DATA.TRAIN.LABEL_PATHS", absl::StrCat("[", directory_, "/labels.npy]"));
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_THAT(report.summary, HasSubstr("images: class 0 5, class 1 8\n"));
}

TEST_F(CheckDataEngineTest, SeveralRanks_HaveOneVerdict) {
  WriteFolder();
  for (int i = 0; i < 5; ++i) Write(absl::StrCat("photos/ant/", i, ".png"), "no image");
  std::vector<absl::Status> verdicts(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(120)).Run([&](Communicator& communicator) -> absl::Status {
    const BuildContext build{config_, registries_, communicator, 3, directory_};
    SSL_ASSIGN_OR_RETURN(const auto engine, registries_.engines.Make("check_data", config_, build));
    ConfigNode results = ConfigNode::Map();
    EngineContext context{config_, registries_, communicator, *stop_, *file_system_, directory_, results};
    SSL_ASSIGN_OR_RETURN(const EngineReport report, engine->Run(context));
    verdicts[communicator.rank()] = report.verdict;
    return absl::OkStatus();
  }));
  EXPECT_EQ(verdicts[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(verdicts[1].ok());
}

TEST_F(CheckDataEngineTest, ImagesOf16Bits_AreTold) {
  WriteFolder();
  Write("photos/ant/deep.png", PngOf16Bits(8, {4096}));
  ASSERT_OK_AND_ASSIGN(EngineReport report, Run("check_data"));
  EXPECT_THAT(report.summary, HasSubstr("1   values are divided by 256 (config.DATA.TRAIN.GRAY_16_BIT is scale); the "
                                        "brightest value is then 16 of 255"));
  Set("DATA.TRAIN.GRAY_16_BIT", "clip");
  ASSERT_OK_AND_ASSIGN(report, Run("check_data"));
  EXPECT_THAT(report.summary, HasSubstr("1   grey values above 255 become white ("));
}

TEST_F(CheckDataEngineTest, Stop_LeavesNothing) {
  stop_->Request(kStopTerminate);
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("check_data"));
  EXPECT_TRUE(report.stopped);
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/data_check.json"));
}

TEST_F(CheckDataEngineTest, FolderThatIsNotThere_NamesTheKey) {
  WriteFolder();
  Set("DATA.TRAIN.DATA_PATHS", "[elsewhere]");
  EXPECT_THAT(Run("check_data").status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("DATA_PATHS")));
}

}  // namespace
}  // namespace ssl
