// SPDX-License-Identifier: Apache-2.0
//
// What a session tells of a run before it begins, and a session that is made for no more than that.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Draws every 4 updates, and once more behind the end of FakeConfig's 20.
class DrawingHook : public RecordingHook {
 public:
  explicit DrawingHook(std::vector<std::string>* events) : RecordingHook("drawing", HookStage::kObserve, events) {}
  std::vector<PlannedAction> Plan() const override {
    return {{"draws", {Cadence::Unit::kUpdate, 4, 1, 0, false}, false, "drawn_<iteration>"},
            {"frames", {Cadence::Unit::kUpdate, 500, 1, 0, false}}};
  }
};

TEST(SessionPreviewTest, TellsOfTheHooksThatItHasNow) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  EXPECT_THAT(session->Preview().text,
              AllOf(HasSubstr("2 epochs of 10 updates, 20 in all"), Not(HasSubstr("drawing"))));
  std::vector<std::string> events;
  ASSERT_OK(session->AddHook(std::make_unique<DrawingHook>(&events)));
  const RunPreview preview = session->Preview();
  EXPECT_THAT(preview.text, AllOf(ContainsRegex("drawing +draws +at 4, 8 +at 12, 16, 20 +5 times"),
                                  HasSubstr("drawn_4, drawn_8, drawn_12, drawn_16, drawn_20 (5 of 5)")));
  EXPECT_THAT(preview.warnings, ElementsAre(HasSubstr("hook 'drawing' frames never: it is due every 500 updates")));
  EXPECT_TRUE(events.empty()) << "nothing has begun";
}

TEST(SessionPreviewTest, OfARunThatGoesOn_IsThatFromItsBeginning) {
  const ConfigNode config = FakeConfig(MakeTempDir("preview"));
  std::string before;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
    before = session->Preview().text;
    for (int i = 0; i < 3; ++i) ASSERT_OK(session->Step());
    ASSERT_OK(session->Finish());
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> resumed, MakeSession(config));
  EXPECT_EQ(resumed->Preview().text, before);
}

TEST(SessionPreviewTest, SessionForAPreviewOnly_OpensNothingReadsNoWeightsAndCannotRun) {
  const std::string directory = MakeTempDir("preview") + "/run";
  Registries registries = FakeRegistries();
  registries.initialize_weights = [](Model&, const BuildContext&) { return absl::NotFoundError("no such weights"); };
  SessionOptions options;
  options.only_preview = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       Session::Create(FakeConfig(directory), registries, std::move(options)));
  EXPECT_THAT(session->Preview().text, HasSubstr("2 epochs of 10 updates"));
  EXPECT_FALSE(PosixFileSystem().Exists(directory));
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("made for a preview only"));
  EXPECT_THAT(session->Start(), refused);
  EXPECT_THAT(session->Step(), refused);
  EXPECT_THAT(session->Train(), refused);
  EXPECT_OK(session->Finish()) << "nothing has begun";
  EXPECT_FALSE(PosixFileSystem().Exists(directory));
}

// Its run may be going on at the moment.
TEST(SessionPreviewTest, OfADirectoryInUse_TouchesNothing) {
  const ConfigNode config = FakeConfig(MakeTempDir("preview"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> running, MakeSession(config));
  ASSERT_OK(running->Step());
  SessionOptions options;
  options.only_preview = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> preview, MakeSession(config, std::move(options)));
  EXPECT_EQ(preview->Preview().text, running->Preview().text);
  ASSERT_OK(running->Train());
}

// What only the data tells, too.
TEST(SessionPreviewTest, OfARunThatWouldNotGoOn_IsRefusedAsItsStartIs) {
  const ConfigNode config = FakeConfig(MakeTempDir("preview"));
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> earlier, MakeSession(config));
    ASSERT_OK(earlier->Train());
  }
  const auto refusal = [&](bool only_preview) {
    SessionOptions options;
    options.only_preview = only_preview;
    options.train_source = std::make_unique<FakeSource>(/*samples=*/12, /*batch_size=*/4, /*rank=*/0, /*world_size=*/1);
    return MakeSession(config, std::move(options)).status();
  };
  EXPECT_THAT(refusal(/*only_preview=*/true),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("DATA.TRAIN.num_samples: ")));
  EXPECT_EQ(refusal(/*only_preview=*/true), refusal(/*only_preview=*/false));
}

}  // namespace
}  // namespace ssl
