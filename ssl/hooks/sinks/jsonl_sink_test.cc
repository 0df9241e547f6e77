// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/jsonl_sink.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

MetricReport Report(int64_t iteration, double loss = 0.5) {
  return {iteration, iteration / 10, {{"Training/Loss", loss}}};
}

std::string Line(int64_t iteration, const std::string& loss = "0.5") {
  return absl::StrCat("{\"iteration\":", iteration, ",\"epoch\":", iteration / 10, ",\"Training/Loss\":", loss, "}\n");
}

class JsonlSinkTest : public ::testing::Test {
 protected:
  // Writes reports as one process would.
  void RunProcess(std::initializer_list<int64_t> iterations) {
    const auto sink = MakeJsonlSink(PosixFileSystem(), path_, *iterations.begin() - 1);
    for (const int64_t iteration : iterations) ASSERT_OK(sink->Write(Report(iteration)));
    ASSERT_OK(sink->Flush());
  }

  std::string Content() { return PosixFileSystem().Read(path_).value_or("unreadable"); }
  void SetContent(const std::string& text) { ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path_, text)); }

  const std::string directory_ = MakeTempDir("jsonl");
  const std::string path_ = directory_ + "/metrics.jsonl";
};

TEST_F(JsonlSinkTest, Reports_AreOneObjectALine) {
  RunProcess({1, 2, 10});

  EXPECT_EQ(Content(), Line(1) + Line(2) + Line(10));
}

TEST_F(JsonlSinkTest, SomethingElseOfItsName_IsAFaultOfThePlace) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(path_));
  const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/0);
  const absl::Status refused = sink->Write(Report(1));
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path_)));
  EXPECT_EQ(DetailOf(refused, kDetailErrno), absl::StrCat(EISDIR));

  ASSERT_OK(PosixFileSystem().RemoveAll(path_));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(sink->Write(Report(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a pipe is in the way")));

  ASSERT_OK(PosixFileSystem().RemoveAll(path_));
  ASSERT_OK(sink->Write(Report(1)));
  EXPECT_EQ(Content(), Line(1));
}

TEST_F(JsonlSinkTest, OnlyScalars_AreWritten) {
  const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/0);
  MetricReport report = Report(1);
  report.histograms["weights"] = {};
  ASSERT_OK(sink->Write(report));
  report.values.clear();
  ASSERT_OK(sink->Write(report));  // nothing that a line could hold
  ASSERT_OK(sink->Write(Report(2)));

  EXPECT_EQ(Content(), Line(1) + Line(2));
}

TEST_F(JsonlSinkTest, MetricsCalledAsAPlace_DoNotHideIt) {
  const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/0);
  MetricReport report = Report(1);
  report.values["iteration"] = 12.5;
  report.values["epoch"] = 3.5;

  ASSERT_OK(sink->Write(report));

  EXPECT_EQ(Content(), Line(1));
}

TEST_F(JsonlSinkTest, EveryLine_IsInTheFileBeforeTheNext) {
  const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/0);

  ASSERT_OK(sink->Write(Report(1)));

  EXPECT_EQ(Content(), Line(1));
}

TEST_F(JsonlSinkTest, MissingDirectory_IsMade) {
  const auto sink = MakeJsonlSink(PosixFileSystem(), directory_ + "/a/b/metrics.jsonl", /*first_iteration=*/0);

  ASSERT_OK(sink->Write(Report(1)));

  EXPECT_TRUE(PosixFileSystem().Exists(directory_ + "/a/b/metrics.jsonl"));
}

TEST_F(JsonlSinkTest, WithoutReports_NoFileIsMadeOrChanged) {
  const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/0);

  EXPECT_OK(sink->Flush());

  EXPECT_FALSE(PosixFileSystem().Exists(path_));
}

TEST_F(JsonlSinkTest, Resume_DropsTheLinesThatAreTrainedAgain) {
  RunProcess({1, 2, 10, 20, 30});

  RunProcess({16, 17, 20, 30});

  EXPECT_EQ(Content(), Line(1) + Line(2) + Line(10) + Line(16) + Line(17) + Line(20) + Line(30));
}

TEST_F(JsonlSinkTest, ResumeBetweenTwoReportsOfAnIteration_KeepsTheFirst) {
  const MetricReport step{10, 1, {{"Training/Loss", 0.5}}};
  const MetricReport train{10, 1, {{"Training/accuracy", 50.0}}};
  const MetricReport test{10, 1, {{"Testing/accuracy", 40.0}}};
  const auto write = [this](std::initializer_list<MetricReport> reports) {
    const auto sink = MakeJsonlSink(PosixFileSystem(), path_, reports.begin()->iteration);
    for (const MetricReport& report : reports) ASSERT_OK(sink->Write(report));
  };
  write({Report(9), step, train, test, Report(11), Report(12)});
  const std::string all = Content();

  write({test, Report(11), Report(12)});
  EXPECT_EQ(Content(), all);
  write({train, test, Report(11), Report(12)});
  EXPECT_EQ(Content(), all);
  write({step, train, test, Report(11), Report(12)});
  EXPECT_EQ(Content(), all);
}

// An evaluation at an epoch's last iteration has names of the epoch's report, which the resumed process makes again.
TEST_F(JsonlSinkTest, ResumeBeforeTheReportOfAnEpoch_KeepsThatOfItsLastIteration) {
  const MetricReport evaluation{10, 0, {{"Evaluation/knn_top_1", 40.0}}};
  const MetricReport step{10, 0, {{"Training/Loss", 0.5}}};
  const MetricReport epoch{10, 0, {{"Evaluation/knn_top_1", 40.0}, {"Training/loss_mean", 0.75}}};
  const auto write = [this](std::initializer_list<MetricReport> reports) {
    const auto sink = MakeJsonlSink(PosixFileSystem(), path_, reports.begin()->iteration);
    for (const MetricReport& report : reports) ASSERT_OK(sink->Write(report));
  };
  write({Report(9), evaluation, step, epoch, Report(11), Report(12)});
  const std::string all = Content();

  write({epoch, Report(11), Report(12)});

  EXPECT_EQ(Content(), all);
}

// What a hook of the program's own measures may stand in several reports of an iteration.
TEST_F(JsonlSinkTest, ResumeBehindAReportWithValuesOfTheHost_KeepsIt) {
  const MetricReport step{10, 0, {{"Host/words_seen", 4.0}}};
  const MetricReport train{10, 0, {{"Host/words_seen", 5.0}, {"Training/loss_mean", 0.75}}};
  const MetricReport test{10, 0, {{"Host/words_seen", 6.0}, {"Testing/loss_mean", 0.5}}};
  const auto write = [this](std::initializer_list<MetricReport> reports) {
    const auto sink = MakeJsonlSink(PosixFileSystem(), path_, reports.begin()->iteration);
    for (const MetricReport& report : reports) ASSERT_OK(sink->Write(report));
  };
  write({Report(9), step, train, test, Report(11)});
  const std::string all = Content();

  SetContent("");
  write({Report(9), step});
  write({train, test, Report(11)});
  EXPECT_EQ(Content(), all) << "killed before the epoch's report";
  SetContent("");
  write({Report(9), step, train});
  write({test, Report(11)});
  EXPECT_EQ(Content(), all) << "killed before that of the test phase";
  write({train, test, Report(11)});
  EXPECT_EQ(Content(), all) << "made once more";
}

// A process reports its first steps, whatever LOG_FREQUENCY says, and so other names first than the one before.
TEST_F(JsonlSinkTest, ReportsOfAnIterationThatIsTrainedAgain_GoWhateverComesFirst) {
  const MetricReport epoch{6, 0, {{"Training/loss_mean", 0.75}}};
  {
    const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/0);
    for (const MetricReport& report : {Report(5), epoch, Report(8)}) ASSERT_OK(sink->Write(report));
  }
  const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/5);
  ASSERT_OK(sink->Write(Report(6)));
  EXPECT_EQ(Content(), Line(5) + Line(6));
}

TEST_F(JsonlSinkTest, ResumeAfterTheLastLine_KeepsAllLines) {
  RunProcess({1, 2});

  RunProcess({3});

  EXPECT_EQ(Content(), Line(1) + Line(2) + Line(3));
}

TEST_F(JsonlSinkTest, TornLastLine_IsRepairedAtEveryPossibleCut) {
  const std::string last = Line(10);
  for (size_t cut = 1; cut < last.size(); ++cut) {
    SetContent(Line(1) + last.substr(0, cut));

    RunProcess({11});

    EXPECT_EQ(Content(), Line(1) + Line(11)) << "cut after " << cut << " bytes";
  }
}

TEST_F(JsonlSinkTest, LinesThatAreNoReports_AreDropped) {
  SetContent(Line(1) + "hello\n{\"iteration\":\"2\"}\n[3]\n\n" + Line(4));

  RunProcess({5});

  EXPECT_EQ(Content(), Line(1) + Line(4) + Line(5));
}

TEST_F(JsonlSinkTest, ValuesThatJsonLacks_AreNull) {
  const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/0);

  ASSERT_OK(sink->Write(Report(1, std::nan(""))));
  ASSERT_OK(sink->Write(Report(2, std::numeric_limits<double>::infinity())));

  EXPECT_EQ(Content(), Line(1, "null") + Line(2, "null"));
}

TEST_F(JsonlSinkTest, NameThatIsNoUtf8_StillGivesJson) {
  const auto sink = MakeJsonlSink(PosixFileSystem(), path_, /*first_iteration=*/0);
  MetricReport report;
  report.values["a\xFFz"] = 1.0;

  ASSERT_OK(sink->Write(report));

  EXPECT_EQ(Content(), "{\"iteration\":0,\"epoch\":0,\"a\xEF\xBF\xBDz\":1.0}\n");
}

TEST_F(JsonlSinkTest, EveryFailingCall_IsReportedAndLeavesAFileThatContinues) {
  int call = 1;
  for (;; ++call) {
    ASSERT_OK(PosixFileSystem().RemoveAll(path_));
    SetContent(Line(1) + Line(5));
    FaultFileSystem faults(PosixFileSystem(), directory_);
    faults.set_short_writes(true);
    faults.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
    const auto sink = MakeJsonlSink(faults, path_, /*first_iteration=*/2);
    bool failed = false;
    for (const int64_t iteration : {3, 4}) {
      const absl::Status status = sink->Write(Report(iteration));
      if (status.ok()) continue;
      failed = true;
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(directory_)));
    }
    const absl::Status flushed = sink->Flush();
    if (faults.failed_calls() == 0) break;
    EXPECT_TRUE(failed || !flushed.ok()) << "call " << call;

    RunProcess({6});

    EXPECT_THAT(Content(), AllOf(StartsWith(Line(1)), EndsWith("\n" + Line(6)))) << call;
  }
  EXPECT_GT(call, 8);  // open, repair (five calls) and two lines were all made to fail
}

}  // namespace
}  // namespace ssl
