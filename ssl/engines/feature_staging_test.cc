// SPDX-License-Identifier: Apache-2.0
//
// An extraction in the place of an earlier one, and what is left where that fails half-way.
#include "ssl/engines/feature_staging.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/feature_files.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kSplits = {"train", "test"};
constexpr int64_t kSamples = 4;  // of each split, in two chunks

class FeatureStagingTest : public ::testing::Test {
 protected:
  // All features are `value`.
  static absl::Status Write(const std::string& directory, float value, FileSystem& file_system) {
    for (const std::string& split : kSplits) {
      FeatureFileWriter writer({directory, split, 0, {"a"}, /*chunk_threshold=*/0}, file_system);
      for (int64_t begin = 0; begin < kSamples; begin += 2) {
        const at::Tensor positions = at::arange(begin, begin + 2, at::kLong);
        SSL_RETURN_IF_ERROR(writer.Add({{at::full({2, 3}, value, at::kFloat)}, positions, positions}));
      }
      SSL_RETURN_IF_ERROR(writer.Finish());
    }
    return absl::OkStatus();
  }

  // Fails at the `call`-th call of Publish, from 1; never for 0. True when it came to that.
  bool Extract(float value, int call, bool crashes) {
    FaultFileSystem files(PosixFileSystem(), directory_);
    absl::StatusOr<std::unique_ptr<FeatureStaging>> staging = FeatureStaging::Open(directory_, files, *communicator_);
    EXPECT_OK(staging.status());
    EXPECT_OK(Write((*staging)->path(), value, files));
    if (crashes && call > 0) files.CrashAtCall(files.calls() + call);
    if (!crashes && call > 0) files.FailCall(files.calls() + call, EIO, FaultFileSystem::Repeat::kOnce);
    const absl::Status status = (*staging)->Publish(kSplits);
    const bool failed = files.failed_calls() > 0;
    EXPECT_EQ(status.ok(), !failed);
    return failed;
  }

  // What all features of a split are; 0 for an error.
  float Load(const std::string& split) {
    const absl::StatusOr<FeatureSet> set = LoadFeatures(directory_, split, "a", PosixFileSystem());
    if (!set.ok()) return 0;
    EXPECT_EQ(set->indices.size(0), kSamples) << "a part of " << split << " passes for all of it";
    const at::Tensor& features = set->features[0];
    EXPECT_EQ(features.min().item<float>(), features.max().item<float>()) << "two extractions are mixed in " << split;
    return features.max().item<float>();
  }

  const std::string directory_ = MakeTempDir("staging");
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(FeatureStagingTest, FailureAtAnyCallOfPublish_LeavesTheOldSetTheNewOneOrAnError) {
  int refused = 0;
  bool failed = true;
  for (int call = 1; failed; ++call) {
    SCOPED_TRACE(call);
    ASSERT_FALSE(Extract(1, 0, false));
    ASSERT_EQ(Load("train"), 1);
    failed = Extract(2, call, false);
    const float train = Load("train");
    const float test = Load("test");
    EXPECT_TRUE(failed || (train == 2 && test == 2));
    EXPECT_TRUE(train == test || train == 0 || test == 0) << "splits of two extractions";
    refused += train == 0 || test == 0;
  }
  EXPECT_GT(refused, 20);
}

TEST_F(FeatureStagingTest, InterruptedReplacement_SaysSoUntilTheNextExtraction) {
  ASSERT_FALSE(Extract(1, 0, false));
  ASSERT_TRUE(Extract(2, 25, true));
  EXPECT_THAT(LoadFeatures(directory_, "train", "a", PosixFileSystem()).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("extract them again")));
  EXPECT_THAT(FeatureFileLayers(directory_, "test", PosixFileSystem()).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("features of test")));
  ASSERT_FALSE(Extract(3, 0, false));
  EXPECT_EQ(Load("train"), 3);
  EXPECT_EQ(Load("test"), 3);
}

TEST_F(FeatureStagingTest, PlaceThatCannotBeWritten_IsNoMatterOfAnotherExtraction) {
  for (int call = 1; call <= 4; ++call) {
    FaultFileSystem files(PosixFileSystem(), directory_);
    files.FailCall(call, EROFS, FaultFileSystem::Repeat::kOnce);
    EXPECT_THAT(
        FeatureStaging::Open(directory_, files, *communicator_).status(),
        StatusIs(absl::StatusCode::kPermissionDenied,
                 AllOf(HasSubstr("features cannot be written to " + directory_), HasSubstr("Read-only file system"),
                       HasSubstr("config.EXTRACT_FEATURES.OUTPUT_DIR"), Not(HasSubstr("another extraction")))))
        << call;
  }
}

}  // namespace
}  // namespace ssl
