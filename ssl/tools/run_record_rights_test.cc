// SPDX-License-Identifier: Apache-2.0
//
// A run directory that may not be written, and an evaluation whose product is files in it: it is said before the hours
// that these take.
#include <cerrno>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/tools/run_record.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RunRecordRightsTest, RightThatAnEvaluationLacks_EndsOneThatIsForFiles) {
  const std::string directory = MakeTempDir("record_rights");
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const auto open = [&](const std::string& engine) {
    FaultFileSystem files(PosixFileSystem(), directory);
    files.FailCall(1, EROFS, FaultFileSystem::Repeat::kFromThenOn);
    const auto admit = [] { return absl::OkStatus(); };
    return RunRecord::Open(directory, {"check_data", engine}, false, ConfigNode::Map(), admit, files, *communicator)
        .status();
  };
  for (const char* engine : {"evaluate", "export", "extract_label_predictions", "full_tune", "neighbors", "preview"}) {
    EXPECT_THAT(open(engine), StatusIs(absl::StatusCode::kPermissionDenied,
                                       AllOf(HasSubstr(absl::StrCat("run directory ", directory, " cannot be used: ")),
                                             HasSubstr("; config.CHECKPOINT.DIR chooses another"))))
        << engine;
  }
  for (const char* engine : {"knn", "linear_eval", "estimate", "extract_features"}) EXPECT_OK(open(engine)) << engine;
}

}  // namespace
}  // namespace ssl
