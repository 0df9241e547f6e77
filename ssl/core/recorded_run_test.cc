// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/recorded_run.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/register_core.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTrain[] = "DATA.TRAIN.GRAY_16_BIT";
constexpr char kTest[] = "DATA.TEST.GRAY_16_BIT";
constexpr char kData[] = "DATA: {TRAIN: {DATA_PATHS: [/photos]}}\n";

struct SplitOptions : public Options {
  std::string gray_16_bit = "scale";
  void VisitFields(FieldVisitor& visitor) override { visitor.Field("GRAY_16_BIT", &gray_16_bit, Doc("16 bits")); }
};

class ResolveGrey16Test : public ::testing::Test {
 protected:
  ResolveGrey16Test() {
    EXPECT_OK(RegisterCore(&registries_));
    for (const char* split : {"DATA.TRAIN", "DATA.TEST"}) {
      EXPECT_OK(registries_.options.Add(split, [] { return std::make_unique<SplitOptions>(); }));
    }
  }

  // A checkpoint that has nothing but what `text` says.
  void Save(const std::string& text) {
    const ConfigNode config = Parsed(text);
    saved_ = RunIdentity(config, registries_.options, {}).ToJson();
    const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
    CheckpointStoreOptions options{CheckpointDirectory(run_), 0, "hash"};
    options.config_json = saved_;
    CheckpointStore store(options, PosixFileSystem(), *alone);
    ASSERT_OK(store.Open());
    ASSERT_OK(store.Save(3, {{"model.safetensors", {}}}));
  }

  // What the start of a run in that directory makes of `text`.
  ConfigNode Resolve(const std::string& text, const std::string& checkpoint = "") {
    ConfigNode config = Parsed(absl::StrCat("CHECKPOINT: {", checkpoint, "}\n", text));
    config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(run_));
    return ResolveConfig(config, registries_).value();
  }

  static std::vector<std::string> Grey(const ConfigNode& config) {
    return {config.FindPath(kTrain)->text(), config.FindPath(kTest)->text()};
  }

  absl::Status GoOn(const ConfigNode& config) {
    return RunIdentity(config, registries_.options, {}).CheckResume(saved_, "step_3/config.json", &changes_);
  }

  const std::string run_ = MakeTempDir("run");
  Registries registries_;
  std::string saved_;
  std::vector<std::string> changes_;
};

TEST_F(ResolveGrey16Test, RunFromBeforeTheKey_GoesOnWithTheImagesThatItHad) {
  EXPECT_THAT(Grey(Resolve(kData)), ElementsAre("scale", "scale")) << "no run lies there";
  Save(kData);
  const CapturedLog log;
  const ConfigNode config = Resolve(kData);
  EXPECT_THAT(Grey(config), ElementsAre("clip", "clip"));
  EXPECT_OK(GoOn(config));
  EXPECT_THAT(Grey(ResolveConfig(config, registries_).value()), ElementsAre("clip", "clip"));
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("config.DATA.TRAIN.GRAY_16_BIT=clip, as the run that lies there")));
}

TEST_F(ResolveGrey16Test, WhatIsSet_StaysAndIsRefusedWhereItDiffers) {
  Save(kData);
  const CapturedLog log;
  const ConfigNode config =
      Resolve("DATA: {TRAIN: {DATA_PATHS: [/photos], GRAY_16_BIT: scale}, TEST: {GRAY_16_BIT: scale}}");
  EXPECT_THAT(Grey(config), ElementsAre("scale", "scale"));
  EXPECT_THAT(GoOn(config), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("DATA.TRAIN.GRAY_16_BIT: clip in the checkpoint, scale now")));
  EXPECT_THAT(log.lines, IsEmpty());
}

TEST_F(ResolveGrey16Test, RunThatRecordedIt_KeepsIt) {
  Save("DATA: {TRAIN: {GRAY_16_BIT: clip}, TEST: {GRAY_16_BIT: scale}}");
  EXPECT_THAT(Grey(Resolve(kData)), ElementsAre("clip", "scale"));
}

TEST_F(ResolveGrey16Test, RunThatIsRemoved_DecidesNothing) {
  Save(kData);
  EXPECT_THAT(Grey(Resolve(kData, "OVERWRITE_EXISTING: True, AUTO_RESUME: False")), ElementsAre("scale", "scale"));
  EXPECT_THAT(Grey(Resolve(kData, "OVERWRITE_EXISTING: True")), ElementsAre("clip", "clip")) << "it goes on";
  EXPECT_THAT(Grey(Resolve("DATA: {TRAIN: {DATA_PATHS: [/other]}}", "OVERWRITE_EXISTING: True")),
              ElementsAre("scale", "scale"));
}

}  // namespace
}  // namespace ssl
