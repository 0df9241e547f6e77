// SPDX-License-Identifier: Apache-2.0
//
// What hooks may do with the names of checkpoints, by way of their context (CheckpointSaver).
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class SavedNamesTest : public ::testing::Test {
 protected:
  using Action = std::function<absl::Status(StepContext&)>;

  // Trains with a hook that does `action` at each OnStep.
  absl::Status Train(Action action, Communicator* communicator = nullptr) {
    SessionOptions options;
    options.communicator = communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(run_), std::move(options)));
    std::vector<std::string> events;
    auto hook = std::make_unique<RecordingHook>("names", HookStage::kPersist, &events);
    hook->At("OnStep", std::move(action));
    SSL_RETURN_IF_ERROR(session->AddHook(std::move(hook)));
    return session->Train().status();
  }

  std::vector<std::string> Names() { return *PosixFileSystem().List(run_ + "/checkpoints"); }

  const std::string run_ = MakeTempDir("saved_names");
};

TEST_F(SavedNamesTest, Named_IsTheIterationThatHasTheName) {
  std::vector<int64_t> named;
  ASSERT_OK(Train([&named](StepContext& context) -> absl::Status {
    const int64_t iteration = context.state.iteration;
    if (iteration == 3) SSL_RETURN_IF_ERROR(context.checkpoints->SaveAs("best", /*replaceable=*/false));
    if (iteration == 2 || iteration == 4) {
      SSL_ASSIGN_OR_RETURN(named.emplace_back(), context.checkpoints->Named("best"));
    }
    return absl::OkStatus();
  }));
  EXPECT_THAT(named, ElementsAre(-1, 3));
  EXPECT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "best.step", "step_20", "step_3"));
}

TEST_F(SavedNamesTest, NameMovesToWhatIsThere_AndIsDroppedForWhatIsNot) {
  std::vector<bool> moved;
  ASSERT_OK(Train([&moved](StepContext& context) -> absl::Status {
    const int64_t iteration = context.state.iteration;
    if (iteration == 3 || iteration == 6) SSL_RETURN_IF_ERROR(context.checkpoints->Save());
    if (iteration == 7) {
      SSL_ASSIGN_OR_RETURN(const bool there, context.checkpoints->NameSaved("chosen", 3));
      EXPECT_THAT(context.checkpoints->Named("chosen").value(), 3);
      SSL_ASSIGN_OR_RETURN(const bool gone, context.checkpoints->NameSaved("chosen", 5));
      EXPECT_THAT(context.checkpoints->Named("chosen").value(), -1) << "nothing has the name";
      moved = {there, gone};
    }
    return absl::OkStatus();
  }));
  EXPECT_EQ(moved, (std::vector<bool>{true, false}));
  EXPECT_THAT(Names(), Not(Contains("chosen.step")));
}

TEST_F(SavedNamesTest, ADamagedCheckpoint_IsNoneThatANameCouldMoveTo) {
  ASSERT_OK(Train([this](StepContext& context) -> absl::Status {
    if (context.state.iteration == 3) return context.checkpoints->SaveAs("best", /*replaceable=*/false);
    if (context.state.iteration != 5) return absl::OkStatus();
    SSL_RETURN_IF_ERROR(context.checkpoints->Wait());
    const std::string weights = run_ + "/checkpoints/step_3/model.safetensors";
    SSL_ASSIGN_OR_RETURN(const std::string bytes, PosixFileSystem().Read(weights));
    SSL_RETURN_IF_ERROR(WriteFileAtomically(PosixFileSystem(), weights, bytes.substr(1)));
    SSL_ASSIGN_OR_RETURN(const bool is_there, context.checkpoints->NameSaved("best", 3));
    EXPECT_FALSE(is_there);
    EXPECT_EQ(context.checkpoints->Named("best").value(), -1);
    return absl::OkStatus();
  }));
}

// The save may still be written when the name is given: it has the checkpoint only once that is on disk.
TEST_F(SavedNamesTest, NameOfASaveInProgress_WaitsForIt) {
  ASSERT_OK(Train([](StepContext& context) -> absl::Status {
    if (context.state.iteration == 4) SSL_RETURN_IF_ERROR(context.checkpoints->Save());
    if (context.state.iteration == 5) {
      SSL_ASSIGN_OR_RETURN(const bool is_there, context.checkpoints->NameSaved("last", 4));
      EXPECT_TRUE(is_there);
    }
    return absl::OkStatus();
  }));
  EXPECT_EQ(PosixFileSystem().Read(run_ + "/checkpoints/last.step").value(), "step_4\n");
}

TEST_F(SavedNamesTest, NamesThatAreNone_AreTheHooksError) {
  EXPECT_THAT(Train([](StepContext& context) { return context.checkpoints->SaveAs("a/b", /*replaceable=*/false); }),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("hook 'names' (OnStep, iteration 1)")));
}

TEST_F(SavedNamesTest, EveryRank_GetsTheAnswer) {
  std::vector<std::vector<int64_t>> answers(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) {
    std::vector<int64_t>& mine = answers[communicator.rank()];
    return Train(
        [&mine](StepContext& context) -> absl::Status {
          if (context.state.iteration == 2) return context.checkpoints->SaveAs("best", /*replaceable=*/true);
          if (context.state.iteration != 3) return absl::OkStatus();
          SSL_ASSIGN_OR_RETURN(mine.emplace_back(), context.checkpoints->Named("best"));
          SSL_ASSIGN_OR_RETURN(const bool is_there, context.checkpoints->NameSaved("best", 1));
          mine.push_back(is_there ? 1 : 0);
          return absl::OkStatus();
        },
        &communicator);
  }));
  EXPECT_THAT(answers[0], ElementsAre(2, 0));
  EXPECT_EQ(answers[1], answers[0]);
}

}  // namespace
}  // namespace ssl
