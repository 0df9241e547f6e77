// SPDX-License-Identifier: Apache-2.0
//
// REPRODUCIBILITY.CUDDN_DETERMINISTIC holds for each operation of a training, of its recorded updates and of the
// evaluations after it. The device is the stand-in of the tests (docs/devices.md).
#include <ATen/Context.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/standin_graph.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/tools/command.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// What LibTorch's operators on tensors of the device, on any thread, saw of its flags. LibTorch calls a function
// without an argument of ours.
std::atomic<int64_t> deterministic_calls{0};
std::atomic<int64_t> other_calls{0};
std::atomic<int64_t> recordings{0};

bool IsOnDevice(const c10::IValue& input) {
  return input.isTensor() && input.toTensor().defined() && !input.toTensor().is_cpu();
}

std::unique_ptr<at::ObserverContext> CountCall(const at::RecordFunction& call) {
  const auto inputs = call.inputs();
  if (std::none_of(inputs.begin(), inputs.end(), IsOnDevice)) return nullptr;
  ++(at::globalContext().deterministicAlgorithms() ? deterministic_calls : other_calls);
  recordings = std::max(recordings.load(), StandinRecordings());
  return nullptr;
}

class DeterministicRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(FillRegistries(line_, &registries_));
    ASSERT_OK(RegisterStandinGraph(&registries_));
  }

  // A training whose updates are recorded, and an evaluation.
  absl::Status Run(const char* deterministic) {
    directory_ = MakeTempDir("deterministic_run");
    line_.search_dirs = {"."};
    line_.tokens = {"config=test/swav_tiny", "config.TRAINER.TRAIN_STEP_NAME=graph_train_step",
                    absl::StrCat("config.CHECKPOINT.DIR=", directory_), "config.MACHINE.DEVICE=gpu",
                    absl::StrCat("config.REPRODUCIBILITY.CUDDN_DETERMINISTIC=", deterministic)};
    SSL_ASSIGN_OR_RETURN(const ConfigNode root, ComposeRoot(line_, registries_));
    deterministic_calls = other_calls = recordings = 0;
    const at::CallbackHandle handle = at::addGlobalCallback(at::RecordFunctionCallback(&CountCall).needsInputs(true));
    const absl::Status status = RunEngines(root, {}, registries_, *communicator_, stop_, out_).status();
    at::removeCallback(handle);
    return status;
  }

  CommandLine line_;
  Registries registries_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  StopToken stop_;
  std::ostringstream out_;
  std::string directory_;
};

TEST_F(DeterministicRunTest, EachOperationOfTrainingRecordingAndEvaluation_SeesIt) {
  ASSERT_OK(Run("True"));
  EXPECT_GT(deterministic_calls, 0);
  EXPECT_EQ(other_calls, 0);
  EXPECT_GT(recordings, 0);
  EXPECT_THAT(out_.str(), HasSubstr("kNN")) << "the evaluation came after it";
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());

  ASSERT_OK(Run("False"));
  EXPECT_EQ(deterministic_calls, 0);
  EXPECT_GT(other_calls, 0);
}

}  // namespace
}  // namespace ssl
