// SPDX-License-Identifier: Apache-2.0
//
// For tests of what a session does with the checkpoints that it finds.
#ifndef SSL_CORE_TESTING_RESUME_FIXTURE_H_
#define SSL_CORE_TESTING_RESUME_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/register_core.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {

MATCHER_P(IsOkAndHolds, value, "") {
  if (!arg.ok()) *result_listener << arg.status();
  return arg.ok() && *arg == value;
}

class ResumeRulesTest : public ::testing::Test {
 protected:
  ResumeRulesTest() : config_(FakeConfig(run_)) { EXPECT_OK(RegisterFakes(&registries_)); }

  absl::StatusOr<std::unique_ptr<Session>> Make() { return Session::Create(config_, registries_, {}); }

  // Trains from what is there, saving every 5 steps, to `stop_at` or the end; returns the first iteration.
  absl::StatusOr<int64_t> Train(int64_t stop_at = -1) {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Make());
    std::vector<std::string> events;
    auto hook = std::make_unique<RecordingHook>("save", HookStage::kPersist, &events);
    hook->At("OnStep", [stop_at](StepContext& context) {
      if (context.state.iteration == stop_at) context.stop.Request(kStopTerminate);
      return context.state.iteration % 5 == 0 ? context.checkpoints->Save() : absl::OkStatus();
    });
    SSL_RETURN_IF_ERROR(session->AddHook(std::move(hook)));
    SSL_RETURN_IF_ERROR(session->Start());
    const int64_t first = session->state().iteration;
    SSL_RETURN_IF_ERROR(session->Train().status());
    hash_ = *HashState(session->model());
    return first;
  }

  // What a program learns before it makes a session.
  absl::Status Check() {
    Registries registries = registries_;
    SSL_RETURN_IF_ERROR(RegisterCore(&registries));
    SSL_ASSIGN_OR_RETURN(const ConfigNode resolved, ResolveConfig(config_, registries));
    return CheckResume(resolved, registries.options, files_, *MakeLocalCommunicator()).status();
  }

  void Set(const std::string& key, const std::string& value) { config_.SetPath(key, ConfigNode::Scalar(value)); }
  std::string Step(int64_t iteration) { return absl::StrCat(run_, "/checkpoints/step_", iteration); }
  std::vector<std::string> Names() { return *files_.List(run_ + "/checkpoints"); }
  void Damage(int64_t iteration) {
    const std::string path = Step(iteration) + "/model.safetensors";
    std::string bytes = *files_.Read(path);
    bytes.back() ^= 1;
    ASSERT_OK(WriteFileAtomically(files_, path, bytes));
  }

  FileSystem& files_ = PosixFileSystem();
  const std::string run_ = MakeTempDir("resume_rules");
  Registries registries_;
  ConfigNode config_;
  uint32_t hash_ = 0;  // of the model that Train made last
};

}  // namespace ssl

#endif  // SSL_CORE_TESTING_RESUME_FIXTURE_H_
