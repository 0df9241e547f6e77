// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/run_record.h"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const FailureSource kSource{"train", "checkpoints", 1};
constexpr char kReportOfRankThree[] = "logs/rank3_failure.json";

class RunRecordTest : public ::testing::Test {
 protected:
  // A training, as Open leaves it.
  absl::StatusOr<std::unique_ptr<RunRecord>> OpenOnly(const std::vector<std::string>& engines, bool trains,
                                                      const std::string& seed = "0") {
    root_.Set("seed", ConfigNode::FromString(seed));
    return RunRecord::Open(
        directory_, engines, trains, root_, [this] { return admission_; }, files_, *communicator_);
  }

  // The same, begun.
  absl::StatusOr<std::unique_ptr<RunRecord>> Open(const std::vector<std::string>& engines, bool trains,
                                                  const std::string& seed = "0") {
    absl::StatusOr<std::unique_ptr<RunRecord>> record = OpenOnly(engines, trains, seed);
    const absl::Status begun = record.ok() && trains ? (*record)->Begin() : absl::OkStatus();
    return begun.ok() ? std::move(record) : begun;
  }

  // Of a run with more ranks.
  void LeaveReportOfRankThree() {
    ASSERT_OK(files_.CreateDirectories(absl::StrCat(directory_, "/", kRankFolder)));
    ASSERT_OK(WriteFileAtomically(files_, absl::StrCat(directory_, "/", kReportOfRankThree), "of rank 3"));
  }

  std::string Read(const std::string& name) {
    return files_.Read(absl::StrCat(directory_, "/", name)).value_or("(missing)");
  }
  bool Has(const std::string& name) { return files_.Exists(absl::StrCat(directory_, "/", name)); }

  const std::string directory_ = absl::StrCat(MakeTempDir("record"), "/run");
  FileSystem& files_ = PosixFileSystem();
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  absl::Status admission_;  // of trainings
  ConfigNode root_ = ConfigNode::Map();
};

TEST_F(RunRecordTest, SecondTraining_IsRefusedBeforeItWrites) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> first, Open({"train"}, true, "1"));
  EXPECT_NE(first->held(), nullptr);
  EXPECT_THAT(
      Open({"train"}, true, "2"),
      StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr("cannot be used"), HasSubstr("is held by process"))));
  EXPECT_THAT(Read("train_config.yaml"), HasSubstr("seed: \"1\""));
}

TEST_F(RunRecordTest, TrainingThatIsNotAdmitted_ChangesNothing) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"train"}, true, "1"));
    record->WriteFailure(absl::InternalError("bad"), kSource, {});
  }
  LeaveReportOfRankThree();
  admission_ = absl::InvalidArgumentError("other settings");
  EXPECT_THAT(Open({"train"}, true, "2"), StatusIs(absl::StatusCode::kInvalidArgument, "other settings"));
  EXPECT_THAT(Read("train_config.yaml"), HasSubstr("seed: \"1\""));
  EXPECT_THAT(Read("failure.json"), HasSubstr("bad"));
  EXPECT_EQ(Read(kReportOfRankThree), "of rank 3");
  EXPECT_OK(Open({"knn"}, false, "2"));
}

TEST_F(RunRecordTest, TrainingThatHasNotBegun_LeavesTheFilesOfTheRunThatIsThere) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"train"}, true, "1"));
    record->WriteFailure(absl::InternalError("bad"), kSource, {});
  }
  LeaveReportOfRankThree();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, OpenOnly({"train"}, true, "2"));
  record->WriteFailure(absl::InvalidArgumentError("mistake"), kSource, {});
  EXPECT_THAT(Read("train_config.yaml"), HasSubstr("seed: \"1\""));
  EXPECT_THAT(Read("failure.json"), HasSubstr("bad"));
  EXPECT_EQ(Read(kReportOfRankThree), "of rank 3");
  // What is no mistake of the command keeps this run from going on.
  record->WriteFailure(absl::DataLossError("damaged"), kSource, {});
  EXPECT_THAT(Read("failure.json"), HasSubstr("damaged"));
  ASSERT_OK(record->Begin());
  EXPECT_THAT(Read("train_config.yaml"), HasSubstr("seed: \"2\""));
  EXPECT_FALSE(Has("failure.json"));
  EXPECT_FALSE(Has(kReportOfRankThree));
  record->WriteFailure(absl::InvalidArgumentError("mistake"), kSource, {});
  EXPECT_THAT(Read("failure.json"), HasSubstr("mistake"));
}

TEST_F(RunRecordTest, FirstTrainingThatIsRefused_LeavesAReport) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, OpenOnly({"train"}, true));
  record->WriteFailure(absl::InvalidArgumentError("mistake"), kSource, {});
  EXPECT_THAT(Read("failure.json"), HasSubstr("mistake"));
  EXPECT_FALSE(Has("train_config.yaml"));
}

TEST_F(RunRecordTest, WrittenConfiguration_DoesNotRepeatWhatAStartDoesOnce) {
  root_.SetPath("config.CHECKPOINT.OVERWRITE_EXISTING", ConfigNode::FromBool(true));
  root_.SetPath("config.CHECKPOINT.RESUME_FROM", ConfigNode::FromInt(7));
  ASSERT_OK(Open({"train"}, true));
  EXPECT_THAT(Read("train_config.yaml"), AllOf(HasSubstr("OVERWRITE_EXISTING: false"), HasSubstr("RESUME_FROM: -1")));
  // What an evaluation evaluates stays.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> evaluation, Open({"knn"}, false));
  ASSERT_OK(evaluation->SaveResults());
  EXPECT_THAT(Read("knn_config.yaml"), AllOf(HasSubstr("OVERWRITE_EXISTING: false"), HasSubstr("RESUME_FROM: 7")));
}

TEST_F(RunRecordTest, Evaluation_HasItsOwnFilesAndNoLock) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> training, Open({"train", "knn"}, true, "1"));
  training->WriteFailure(absl::InternalError("bad"), kSource, {});
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> evaluation, Open({"knn", "linear_eval"}, false, "2"));
  EXPECT_EQ(evaluation->held(), nullptr);
  EXPECT_THAT(Read("train_config.yaml"), HasSubstr("seed: \"1\""));
  EXPECT_THAT(Read("failure.json"), HasSubstr("bad"));
  ASSERT_OK(evaluation->SaveResults());
  EXPECT_THAT(Read("knn_linear_eval_config.yaml"), HasSubstr("seed: \"2\""));
  evaluation->WriteFailure(absl::InternalError("worse"), kSource, {});
  EXPECT_THAT(Read("failure.json"), HasSubstr("bad"));
  EXPECT_THAT(Read("knn_linear_eval_failure.json"), HasSubstr("worse"));
}

TEST_F(RunRecordTest, NextStart_RemovesTheFailureOfTheOneBefore) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"train"}, true));
    record->WriteFailure(absl::InternalError("bad"), kSource, {});
    EXPECT_TRUE(Has("failure.json"));
  }
  ASSERT_OK(Open({"train"}, true).status());
  EXPECT_FALSE(Has("failure.json"));
}

TEST_F(RunRecordTest, Results_KeepWhatAnotherCommandWrote) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> training, Open({"train"}, true));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> evaluation, Open({"knn"}, false));
  evaluation->results().SetPath("knn.trained", ConfigNode::FromDouble(0.5));
  ASSERT_OK(evaluation->SaveResults());
  training->results().Set("train_seconds", ConfigNode::FromInt(3));
  ASSERT_OK(training->SaveResults());
  EXPECT_THAT(Read("results.json"), AllOf(HasSubstr("\"trained\": 0.5"), HasSubstr("\"train_seconds\": 3")));
}

TEST_F(RunRecordTest, Results_OfAnotherCommandAreNotSetBack) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> earlier, Open({"knn"}, false));
    earlier->results().SetPath("knn.trained", ConfigNode::FromDouble(0.5));
    ASSERT_OK(earlier->SaveResults());
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> training, Open({"train"}, true));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> evaluation, Open({"knn"}, false));
  evaluation->results().SetPath("knn.trained", ConfigNode::FromDouble(0.9));
  ASSERT_OK(evaluation->SaveResults());
  training->results().Set("train_seconds", ConfigNode::FromInt(3));
  ASSERT_OK(training->SaveResults());
  EXPECT_THAT(Read("results.json"), AllOf(HasSubstr("\"trained\": 0.9"), HasSubstr("\"train_seconds\": 3")));
}

// A training that starts anew removes the folder, and makes it again; one that goes on changes what is in it.
TEST_F(RunRecordTest, ResultsOfARunThatWasReplaced_AreNotThoseOfTheNewOne) {
  const std::string checkpoints = absl::StrCat(directory_, "/checkpoints");
  ASSERT_OK(files_.CreateDirectories(absl::StrCat(checkpoints, "/step_7")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> evaluation, Open({"knn"}, false));
  evaluation->results().SetPath("knn.trained", ConfigNode::FromDouble(0.5));
  ASSERT_OK(files_.Rename(checkpoints + "/step_7", checkpoints + "/step_9"));
  ASSERT_OK(evaluation->SaveResults());
  EXPECT_THAT(Read("results.json"), HasSubstr("\"trained\": 0.5"));

  ASSERT_OK(files_.RemoveAll(checkpoints));
  ASSERT_OK(files_.RemoveFile(absl::StrCat(directory_, "/results.json")));
  evaluation->results().SetPath("knn.trained", ConfigNode::FromDouble(0.6));
  EXPECT_THAT(evaluation->SaveResults(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(checkpoints + " was removed or replaced"), HasSubstr("evaluate again"))));
  ASSERT_OK(files_.CreateDirectories(absl::StrCat(checkpoints, "/step_7")));
  EXPECT_THAT(evaluation->SaveResults(), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(Has("results.json"));
}

TEST_F(RunRecordTest, ResultsOfATraining_StayOutOfADirectoryThatWasReplaced) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"train"}, true));
  ASSERT_OK(files_.RemoveAll(directory_));
  ASSERT_OK(files_.CreateDirectories(directory_));
  record->results().Set("train_seconds", ConfigNode::FromInt(3));
  EXPECT_THAT(record->SaveResults(), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(Has("results.json"));
}

TEST_F(RunRecordTest, DirectoryThatIsGone_GetsNoReport) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"train"}, true));
  ASSERT_OK(files_.RemoveAll(directory_));
  ASSERT_OK(files_.CreateDirectories(directory_));
  record->WriteFailure(absl::InternalError("bad"), kSource, {});
  EXPECT_FALSE(Has("failure.json"));
}

// An evaluation holds no lock that would tell.
TEST_F(RunRecordTest, DirectoryThatWasReplacedUnderAnEvaluation_GetsNoReport) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"knn"}, false));
  ASSERT_OK(files_.RemoveAll(directory_));
  ASSERT_OK(files_.CreateDirectories(directory_));
  record->WriteFailure(absl::InternalError("bad"), kSource, {});
  EXPECT_FALSE(Has("knn_failure.json"));
}

TEST_F(RunRecordTest, FileInThePlaceOfTheDirectory_IsAMatterOfThePlace) {
  ASSERT_OK(WriteFileAtomically(files_, directory_, "no directory"));
  EXPECT_THAT(Open({"train"}, true), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is in the way")));
  EXPECT_THAT(Open({"knn"}, false), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is in the way")));
}

TEST_F(RunRecordTest, DamagedResults_AreSetAside) {
  for (const std::string& text :
       {std::string(), std::string(64, '\0'), std::string("{\n  \"knn\": {\n    \"trai"), std::string("[1, 2]\n")}) {
    for (const bool trains : {true, false}) {
      ASSERT_OK(files_.CreateDirectories(directory_));
      ASSERT_OK(WriteFileAtomically(files_, absl::StrCat(directory_, "/results.json"), text));
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({trains ? "train" : "knn"}, trains));
      EXPECT_EQ(Read("results.json.damaged"), text);
      EXPECT_FALSE(Has("results.json"));
      record->results().SetPath("knn.trained", ConfigNode::FromDouble(0.5));
      ASSERT_OK(record->SaveResults());
      EXPECT_EQ(Read("results.json"), "{\n  \"knn\": {\n    \"trained\": 0.5\n  }\n}\n");
    }
  }
}

TEST_F(RunRecordTest, ResultsDamagedMeanwhile_AreSetAside) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"train"}, true));
  ASSERT_OK(WriteFileAtomically(files_, absl::StrCat(directory_, "/results.json"), "{"));
  record->results().Set("seconds", ConfigNode::FromInt(1));
  ASSERT_OK(record->SaveResults());
  EXPECT_EQ(Read("results.json.damaged"), "{");
  EXPECT_EQ(Read("results.json"), "{\n  \"seconds\": 1\n}\n");
}

TEST_F(RunRecordTest, ResultsThatAnEngineTakesBack_LeaveTheFile) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> earlier, Open({"knn"}, false));
    earlier->results().SetPath("knn.trained", ConfigNode::FromDouble(0.5));
    earlier->results().SetPath("knn.k", ConfigNode::FromInt(20));
    earlier->results().SetPath("gone.top1", ConfigNode::FromInt(1));
    ASSERT_OK(earlier->SaveResults());
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"linear_eval"}, false));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> other, Open({"knn"}, false));
  other->results().SetPath("export.file", ConfigNode::FromString("a"));
  ASSERT_OK(other->SaveResults());
  ConfigNode now = ConfigNode::Map();
  now.SetPath("knn.k", ConfigNode::FromInt(5));
  record->results() = now;
  ASSERT_OK(record->SaveResults());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> later, Open({"knn"}, false));
  now.SetPath("export.file", ConfigNode::FromString("a"));
  EXPECT_TRUE(later->results() == now) << Read("results.json");
}

// Whoever runs the file again gets the results that lie beside it.
TEST_F(RunRecordTest, ConfigurationOfAnEvaluation_ComesWithItsResults) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> first, Open({"knn"}, false, "1"));
    EXPECT_FALSE(Has("knn_config.yaml"));
    first->results().SetPath("knn.trained", ConfigNode::FromDouble(0.5));
    ASSERT_OK(first->SaveResults());
    EXPECT_THAT(Read("knn_config.yaml"), HasSubstr("seed: \"1\""));
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> second, Open({"knn"}, false, "2"));
  second->WriteFailure(absl::InvalidArgumentError("mistake"), kSource, {});
  EXPECT_THAT(Read("knn_failure.json"), HasSubstr("mistake"));
  EXPECT_THAT(Read("knn_config.yaml"), HasSubstr("seed: \"1\""));
  // The same figures once more, of other settings.
  ASSERT_OK(second->SaveResults());
  EXPECT_THAT(Read("knn_config.yaml"), HasSubstr("seed: \"2\""));
}

// Of a run of somebody else: what an evaluation may not read or write is no reason to fail.
TEST_F(RunRecordTest, RightThatAnEvaluationLacks_NeverEndsIt) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> earlier, Open({"knn"}, false));
    earlier->results().SetPath("knn.trained", ConfigNode::FromDouble(0.5));
    earlier->results().SetPath("export.file", ConfigNode::FromString("a"));
    ASSERT_OK(earlier->SaveResults());
  }
  const std::string before = Read("results.json");
  int call = 1;
  for (bool failed = true; failed; ++call) {
    FaultFileSystem files(PosixFileSystem(), directory_);
    files.set_fault_reads(true);
    files.FailCall(call, EACCES, FaultFileSystem::Repeat::kOnce);
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<RunRecord> record,
        RunRecord::Open(
            directory_, {"knn"}, false, root_, [] { return absl::OkStatus(); }, files, *communicator_));
    failed = files.failed_calls() > 0;
    const bool sees_results = record->results().Find("knn") != nullptr;
    EXPECT_TRUE(sees_results || failed);
    if (!failed) break;
    record->results().SetPath("knn.trained", ConfigNode::FromDouble(0.7));
    EXPECT_OK(record->SaveResults()) << call;
    // Unread, they would be replaced by those of this evaluation alone.
    EXPECT_THAT(Read("results.json"), HasSubstr("\"file\": \"a\"")) << call;
    ASSERT_OK(WriteFileAtomically(files_, absl::StrCat(directory_, "/results.json"), before));
  }
  EXPECT_GT(call, 5);
}

// What was said of the configuration comes before the directory is open, and belongs to the run's record.
TEST_F(RunRecordTest, EarlierWarnings_StandInTheLogOfTheRun) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunRecord> record, Open({"train"}, true));
  ::testing::internal::CaptureStderr();
  record->AddToLog({"a.yaml:3: unknown key", "a.yaml:4: key stands twice"});
  SSL_LOG(INFO) << "and so on";
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(Read("log.txt"), AllOf(HasSubstr("a.yaml:3: unknown key\n"), HasSubstr("a.yaml:4: key stands twice\n"),
                                     HasSubstr("and so on\n")));
  EXPECT_THAT(printed, AllOf(HasSubstr("and so on"), Not(HasSubstr("a.yaml"))));
}

std::string TextOf(const std::string& path) { return PosixFileSystem().Read(path).value_or(""); }

// What a rank does with its record, from opening to a failure.
absl::Status LeaveAllFiles(const std::string& directory, Communicator& communicator) {
  const std::string who = absl::StrCat("rank ", communicator.rank());
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<RunRecord> record,
                       RunRecord::Open(
                           directory, {"train"}, true, ConfigNode::Map(), [] { return absl::OkStatus(); },
                           PosixFileSystem(), communicator));
  record->AddToLog({absl::StrCat("a warning of ", who)});
  SSL_RETURN_IF_ERROR(record->Begin());
  record->results().Set("saved_by", ConfigNode::FromString(who));
  SSL_RETURN_IF_ERROR(record->SaveResults());
  record->WriteFailure(absl::InternalError(absl::StrCat("a failure of ", who)), kSource, RunProgress());
  InitLogging({});
  return communicator.Barrier();
}

TEST(RunRecordWorldTest, RankZeroWritesAndTheOthersHaveTheirOwnLogAndReport) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& options) -> absl::Status {
    const std::string directory = absl::StrCat(options.rendezvous.file, ".run");
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
    SSL_RETURN_IF_ERROR(LeaveAllFiles(directory, *communicator));
    EXPECT_THAT(TextOf(directory + "/log.txt"), AllOf(HasSubstr("of rank 0"), Not(HasSubstr("of rank 1"))));
    EXPECT_THAT(TextOf(directory + "/logs/rank1.txt"), AllOf(HasSubstr("of rank 1"), Not(HasSubstr("of rank 0"))));
    EXPECT_THAT(TextOf(directory + "/results.json"), HasSubstr("rank 0"));
    EXPECT_THAT(TextOf(directory + "/failure.json"), HasSubstr("a failure of rank 0"));
    EXPECT_THAT(TextOf(directory + "/logs/rank1_failure.json"), HasSubstr("a failure of rank 1"));
    EXPECT_TRUE(PosixFileSystem().Exists(directory + "/train_config.yaml"));
    return communicator->Barrier();
  }));
}

TEST(RunRecordWorldTest, ADirectoryThatIsTakenEndsTheStartOnAllRanks) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& options) -> absl::Status {
    const std::string directory = absl::StrCat(options.rendezvous.file, ".run");
    std::unique_ptr<FileLock> held;
    if (options.rendezvous.rank == 0) {
      SSL_RETURN_IF_ERROR(PosixFileSystem().CreateDirectories(directory));
      SSL_ASSIGN_OR_RETURN(held, PosixFileSystem().Lock(directory + "/.lock"));
    }
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
    const absl::Status refused = LeaveAllFiles(directory, *communicator);
    EXPECT_EQ(refused.code(), communicator->rank() == 0 ? absl::StatusCode::kUnavailable : absl::StatusCode::kAborted);
    EXPECT_FALSE(PosixFileSystem().Exists(directory + "/logs"));
    EXPECT_TRUE(absl::StrContains(refused.message(), "is held by process")) << refused;
    EXPECT_EQ(absl::StrContains(refused.message(), "failed on rank 0 (on "), communicator->rank() == 1) << refused;
    return communicator->Barrier();
  }));
}

}  // namespace
}  // namespace ssl
