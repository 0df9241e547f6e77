// SPDX-License-Identifier: Apache-2.0
//
// What several hooks that save leave on disk together, also across a kill: sessions of the fakes, 10 iterations an
// epoch.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

constexpr char kEachSecondEpoch[] =
    "OPTIMIZER: {num_epochs: 4}\n"
    "CHECKPOINT: {CHECKPOINT_FREQUENCY: 2, CHECKPOINT_ANCHOR: 0, KEEP_LAST: 0, ROLLING_START: 1}\n";

class SavedCheckpointsTest : public ::testing::Test {
 protected:
  SavedCheckpointsTest() {
    EXPECT_OK(RegisterHooks(&registries_));
    EXPECT_OK(RegisterFakes(&registries_));
  }

  std::unique_ptr<Session> Make(const std::string& directory, const std::string& yaml) {
    std::vector<std::string> warnings;
    ConfigNode config = FakeConfig(directory);
    MergeInto(&config, *ParseYaml(yaml, "test.yaml", &warnings));
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(config, registries_, {});
    EXPECT_OK(session);
    return *std::move(session);
  }

  // Steps until `iteration`; the process ends there, as if killed, unless the session goes on.
  static void StepTo(Session& session, int64_t iteration) {
    while (session.state().iteration < iteration) ASSERT_OK(session.Step());
  }

  // The checkpoints, and "<name>=step_<iteration>" for those with a name.
  static std::vector<std::string> Kept(const std::string& directory) {
    std::vector<std::string> kept;
    const std::string checkpoints = directory + "/checkpoints";
    const std::vector<std::string> files = *PosixFileSystem().List(checkpoints);
    for (const std::string& file : files) {
      if (absl::StartsWith(file, "step_")) kept.push_back(file);
      if (!absl::EndsWith(file, ".step")) continue;
      const std::string text = *PosixFileSystem().Read(absl::StrCat(checkpoints, "/", file));
      kept.push_back(absl::StrCat(file.substr(0, file.size() - 5), "=", text.substr(0, text.find('\n'))));
    }
    return kept;
  }

  Registries registries_;
};

TEST_F(SavedCheckpointsTest, RollingInstances_LeaveEachOthersCheckpoints) {
  const std::string run = MakeTempDir("instances");
  const std::unique_ptr<Session> session =
      Make(run, absl::StrCat(kEachSecondEpoch, "hooks:\n- {type: checkpoint, kwargs: {ROLLING_START: -1}}\n",
                             "- {type: checkpoint, name: roll, kwargs: {CHECKPOINT_FREQUENCY: -1, ROLLING_START: 1}}\n",
                             "- {type: checkpoint, name: slow, kwargs: {CHECKPOINT_FREQUENCY: -1, ROLLING_START: 1, ",
                             "ROLLING_FREQUENCY: 3}}"));
  StepTo(*session, 21);
  EXPECT_THAT(Kept(run), ElementsAre("rolling.roll=step_20", "rolling.slow=step_10", "step_10", "step_20"));
  StepTo(*session, 31);
  EXPECT_THAT(Kept(run), ElementsAre("rolling.roll=step_30", "rolling.slow=step_10", "step_10", "step_20", "step_30"));
}

TEST_F(SavedCheckpointsTest, Snapshot_StaysWhenTheRollingCheckpointMovesOn) {
  const std::string run = MakeTempDir("snapshot");
  const std::unique_ptr<Session> session =
      Make(run, "OPTIMIZER: {num_epochs: 4}\nCHECKPOINT: {CHECKPOINT_FREQUENCY: -1, KEEP_LAST: 0, ROLLING_START: 1}");
  StepTo(*session, 20);
  session->RequestSnapshot();
  StepTo(*session, 31);
  EXPECT_THAT(Kept(run), ElementsAre("rolling=step_30", "step_20", "step_30"));
}

// The loss falls, so that the first epoch has the best value of both.
TEST_F(SavedCheckpointsTest, BestCheckpoints_OutliveAKill) {
  const std::string run = MakeTempDir("best");
  const std::string yaml =
      "OPTIMIZER: {num_epochs: 4}\nCHECKPOINT: {KEEP_LAST: 1}\nhooks:\n"
      "- {type: best_checkpoint, name: a, kwargs: {METRICS: [Training/loss_mean], MODE: max}}\n"
      "- {type: best_checkpoint, name: b, kwargs: {METRICS: [Training/loss_mean], MODE: max}}";
  StepTo(*Make(run, yaml), 13);
  EXPECT_THAT(Kept(run), ElementsAre("best.a=step_10", "best.b=step_10", "step_10"));
  ASSERT_OK(Make(run, yaml)->Train());
  EXPECT_THAT(Kept(run), ElementsAre("best.a=step_10", "best.b=step_10", "step_10", "step_40"));
}

TEST_F(SavedCheckpointsTest, Kill_ChangesNothingAboutWhatIsKept) {
  const std::string yaml =
      absl::StrCat(kEachSecondEpoch, "HOOKS: {BEST_CHECKPOINT: {METRICS: [Training/loss_mean]}}\n");
  const std::string whole = MakeTempDir("whole");
  const std::unique_ptr<Session> session = Make(whole, yaml);
  StepTo(*session, 31);
  const std::string killed = MakeTempDir("killed");
  StepTo(*Make(killed, yaml), 25);
  const std::unique_ptr<Session> resumed = Make(killed, yaml);
  ASSERT_OK(resumed->Start());
  ASSERT_EQ(resumed->state().iteration, 20);
  StepTo(*resumed, 31);
  EXPECT_EQ(Kept(killed), Kept(whole));
}

}  // namespace
}  // namespace ssl
