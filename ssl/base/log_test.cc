// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/log.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

// Keeps the lines that it gets while it lives.
class RecordingSink : public LogSink {
 public:
  RecordingSink() { AddLogSink(this); }
  ~RecordingSink() override { RemoveLogSink(this); }

  void Write(LogSeverity severity, absl::string_view file, int line, absl::string_view message) override {
    lines.push_back(absl::StrCat(static_cast<int>(severity), " ", file, ":", line, " ", message));
  }

  std::vector<std::string> lines;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The cases share one process, in which glog can be initialised once: this one comes first.
TEST(LogTest, WithoutInit_WarningsReachStderrAndInfoDoesNot) {
  CaptureStderr();
  SSL_LOG(INFO) << "quiet";
  SSL_LOG(WARNING) << "image is broken";
  const std::string output = GetCapturedStderr();
  EXPECT_THAT(output, HasSubstr("image is broken"));
  EXPECT_THAT(output, HasSubstr("log_test.cc"));
  EXPECT_THAT(output, Not(HasSubstr("quiet")));
}

TEST(LogTest, ConsoleLine_HasTimeSeverityAndTheCallersPlace) {
  InitLogging(LogOptions());
  CaptureStderr();
  SSL_LOG(INFO) << "step " << 12;
  const int line = __LINE__ - 1;
  EXPECT_THAT(GetCapturedStderr(),
              MatchesRegex(absl::StrCat("[0-9][0-9]:[0-9][0-9]:[0-9][0-9] I log_test.cc:", line, " step 12\n")));
}

TEST(LogTest, NotToStderr_KeepsErrorsOnly) {
  LogOptions options;
  options.to_stderr = false;
  InitLogging(options);
  CaptureStderr();
  SSL_LOG(WARNING) << "hidden";
  SSL_LOG(ERROR) << "shown";
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex(".* E log_test.cc:[0-9]+ shown\n"));
}

TEST(LogTest, File_IsAppendedTo) {
  LogOptions options;
  options.to_stderr = false;
  options.file = MakeTempDir("log") + "/log.txt";
  InitLogging(options);
  SSL_LOG(INFO) << "first";
  InitLogging(options);
  SSL_LOG(WARNING) << "second";
  InitLogging(LogOptions());
  SSL_LOG(INFO) << "elsewhere";

  const std::string text = ReadFile(options.file);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_THAT(lines, ElementsAre(EndsWith(" first"), EndsWith(" second"), IsEmpty()));
  EXPECT_THAT(lines[0], MatchesRegex("20[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+ I log_test.cc:.*"));
}

TEST(LogTest, FileThatCannotBeOpened_IsReportedWithItsPath) {
  LogOptions options;
  options.to_stderr = false;
  options.file = MakeTempDir("log") + "/missing/log.txt";
  CaptureStderr();
  InitLogging(options);
  const std::string output = GetCapturedStderr();
  EXPECT_THAT(output, HasSubstr(options.file));
  EXPECT_THAT(output, HasSubstr("No such file"));
}

TEST(LogTest, FileThatIsALink_IsNotWrittenThrough) {
  const std::string folder = MakeTempDir("log");
  std::ofstream(folder + "/victim") << "precious";
  ASSERT_EQ(symlink((folder + "/victim").c_str(), (folder + "/log.txt").c_str()), 0);
  LogOptions options;
  options.file = folder + "/log.txt";
  CaptureStderr();
  InitLogging(options);
  SSL_LOG(INFO) << "a line";
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("log file " + folder + "/log.txt cannot be opened"));
  std::ifstream victim(folder + "/victim");
  std::stringstream content;
  content << victim.rdbuf();
  EXPECT_EQ(content.str(), "precious");
}

TEST(LogTest, Sink_GetsSeverityPlaceAndMessageUntilRemoved) {
  InitLogging(LogOptions());
  CaptureStderr();
  std::vector<std::string> lines;
  {
    RecordingSink sink;
    SSL_LOG(ERROR) << "full disk";
    lines = sink.lines;
  }
  SSL_LOG(ERROR) << "after";
  GetCapturedStderr();
  EXPECT_THAT(lines, ElementsAre(MatchesRegex("2 .*ssl/base/log_test.cc:[0-9]+ full disk")));
}

TEST(LogTest, Vlog_WritesUpToTheVerbosityAndEvaluatesNothingAboveIt) {
  LogOptions options;
  options.verbosity = 1;
  InitLogging(options);
  CaptureStderr();
  int evaluated = 0;
  SSL_VLOG(1) << "one " << ++evaluated;
  SSL_VLOG(2) << "two " << ++evaluated;
  EXPECT_THAT(GetCapturedStderr(), EndsWith("one 1\n"));
  EXPECT_EQ(evaluated, 1);
  EXPECT_FALSE(VlogIsOn(2));
}

TEST(LogTest, ManyThreads_LinesStayWhole) {
  LogOptions options;
  options.to_stderr = false;
  options.file = MakeTempDir("log") + "/log.txt";
  InitLogging(options);
  const std::string text(200, 'x');
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) SSL_LOG(INFO) << text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  InitLogging(LogOptions());

  const std::vector<std::string> lines = absl::StrSplit(ReadFile(options.file), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines, SizeIs(200));
  for (const std::string& line : lines) EXPECT_THAT(line, EndsWith(" " + text));
}

}  // namespace
}  // namespace ssl
