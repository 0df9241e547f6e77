// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/folder_recipe.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/register_core.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/session.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/register_engines.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kConfig[] = R"(
FOLDER_RECIPE: {ENABLED: True}
DATA:
  TRAIN:
    DATA_SOURCES: [synthetic]
    DATA_LIMIT: 300
    TRANSFORMS:
      - {name: ImgReplicatePil, num_times: 2}
      - {name: RandomResizedCrop, size: auto}
)";

class FolderRecipeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(RegisterCore(&registries_));
    ASSERT_OK(RegisterData(&registries_));
    ASSERT_OK(RegisterEngines(&registries_));
  }

  ConfigNode Resolve(const std::string& more = "", int64_t images = 300) {
    ConfigNode tree = ParseYaml(absl::StrCat(kConfig, more), "mine.yaml", nullptr).value();
    tree.SetPath("DATA.TRAIN.DATA_LIMIT", ConfigNode::FromInt(images));
    return ResolveConfig(std::move(tree), registries_).value();
  }

  static std::string At(const ConfigNode& config, const std::string& path) { return config.FindPath(path)->text(); }

  Registries registries_;
};

constexpr char kEpochs[] = "OPTIMIZER.num_epochs";
constexpr char kBatchSize[] = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";
constexpr char kSize[] = "DATA.TRAIN.TRANSFORMS.1.size";

TEST_F(FolderRecipeTest, WhatIsOpen_FollowsFromTheNumberOfImages) {
  const CapturedLog log;
  const ConfigNode config = Resolve();
  const FolderChoices choices = ChooseForFolder(300);
  EXPECT_EQ(At(config, kEpochs), absl::StrCat(choices.num_epochs));
  EXPECT_EQ(At(config, kBatchSize), absl::StrCat(choices.batch_size));
  EXPECT_EQ(At(config, kSize), absl::StrCat(choices.crop_size));
  EXPECT_THAT(log.Text(), AllOf(HasSubstr(absl::StrCat("config.OPTIMIZER.num_epochs=", choices.num_epochs)),
                                HasSubstr("config.DATA.TRAIN.TRANSFORMS.1.size="), HasSubstr("300 images in ")));
}

TEST_F(FolderRecipeTest, FewImages_HaveABatchThatFits) {
  const CapturedLog log;
  const ConfigNode config = Resolve("", 5);
  EXPECT_EQ(At(config, kBatchSize), "5");
  EXPECT_THAT(log.Text(), AllOf(HasSubstr(", for 5 images in "), Not(HasSubstr("at least 4 updates"))));
}

TEST_F(FolderRecipeTest, OneImage_IsNoPlural) {
  const CapturedLog log;
  Resolve("", 1);
  EXPECT_THAT(log.Text(), HasSubstr(", for 1 image in "));
}

// 30 images are 3 batches of 8.
TEST_F(FolderRecipeTest, UpdatesInAnEpoch_ArePromisedOnlyWhereTheyAre) {
  {
    const CapturedLog log;
    EXPECT_EQ(At(Resolve("", 30), kBatchSize), "8");
    EXPECT_THAT(log.Text(), Not(HasSubstr("at least 4 updates")));
  }
  const CapturedLog log;
  EXPECT_EQ(At(Resolve("", 32), kBatchSize), "8");
  EXPECT_THAT(log.Text(), HasSubstr("at least 4 updates"));
}

TEST_F(FolderRecipeTest, ManyImages_AreNoMatterOfTenMinutes) {
  {
    const CapturedLog log;
    Resolve("", 1000);
    EXPECT_THAT(log.Text(), HasSubstr("18 times, as often as about ten minutes on two cores allow, and at most 100"));
  }
  const CapturedLog log;
  Resolve("", 300000);
  EXPECT_THAT(log.Text(), AllOf(HasSubstr("each is seen 8 times, the fewest, in about 22 hours on two cores; "
                                          "config.DATA.TRAIN.DATA_LIMIT takes a part"),
                                Not(HasSubstr("ten minutes"))));
}

TEST_F(FolderRecipeTest, WhatIsSaid_Stays) {
  const CapturedLog log;
  const ConfigNode config = Resolve("OPTIMIZER: {num_epochs: 3}\n");
  EXPECT_EQ(At(config, kEpochs), "3");
  EXPECT_THAT(log.Text(), Not(HasSubstr("num_epochs=")));
}

// A value without a place, be it the default: a host's, or an engine's for a run of its own.
TEST_F(FolderRecipeTest, WhatAProgramSets_Stays) {
  const int64_t by_default = registries_.options.Defaults().FindPath(kBatchSize)->AsInt().value();
  for (const char* path : {kEpochs, kBatchSize}) {
    for (const int64_t value : {by_default, int64_t{5}}) {
      ConfigNode tree = ParseYaml(kConfig, "mine.yaml", nullptr).value();
      tree.SetPath(path, ConfigNode::FromInt(value));
      const ConfigNode config = ResolveConfig(std::move(tree), registries_).value();
      EXPECT_EQ(At(config, path), absl::StrCat(value));
      EXPECT_EQ(ResolveConfig(config, registries_).value(), config) << "once more";
      ConfigNode chosen = Resolve();
      chosen.SetPath(path, ConfigNode::FromInt(value));
      EXPECT_EQ(At(ResolveConfig(chosen, registries_).value(), path), absl::StrCat(value));
    }
  }
}

// By a program that turns the recipe on in a configuration that is complete.
TEST_F(FolderRecipeTest, Defaults_AreOpen) {
  ConfigNode tree = ParseYaml(kConfig, "mine.yaml", nullptr).value();
  tree.SetPath("FOLDER_RECIPE.ENABLED", ConfigNode::FromBool(false));
  tree.SetPath("DATA.TRAIN.DATA_LIMIT", ConfigNode::FromInt(300));
  ConfigNode config = ResolveConfig(tree, registries_).value();
  config.SetPath("FOLDER_RECIPE.ENABLED", ConfigNode::FromBool(true));
  ASSERT_OK_AND_ASSIGN(config, ResolveConfig(config, registries_));
  EXPECT_EQ(At(config, kBatchSize), absl::StrCat(ChooseForFolder(300).batch_size));
}

TEST_F(FolderRecipeTest, ASecondResolution_ChangesAndSaysNothing) {
  ConfigNode config = Resolve();
  const CapturedLog log;
  EXPECT_EQ(ResolveConfig(config, registries_).value(), config);
  EXPECT_THAT(log.Text(), IsEmpty());
}

TEST_F(FolderRecipeTest, Disabled_NothingIsChosen) {
  ConfigNode tree = ParseYaml(kConfig, "mine.yaml", nullptr).value();
  tree.SetPath("FOLDER_RECIPE.ENABLED", ConfigNode::FromBool(false));
  const ConfigNode config = ResolveConfig(tree, registries_).value();
  EXPECT_EQ(At(config, kSize), "auto");
}

TEST_F(FolderRecipeTest, DataThatCannotBeOpened_IsForTheTrainingToTell) {
  const CapturedLog log;
  ConfigNode tree = ParseYaml(kConfig, "mine.yaml", nullptr).value();
  tree.SetPath("DATA.TRAIN.DATA_SOURCES", ConfigNode::FromStrings({"disk_folder"}));
  tree.SetPath("DATA.TRAIN.DATA_PATHS", ConfigNode::FromStrings({"not_there"}));
  ASSERT_OK_AND_ASSIGN(const ConfigNode config, ResolveConfig(tree, registries_));
  EXPECT_EQ(At(config, kSize), absl::StrCat(ChooseForFolder(1000).crop_size));
  EXPECT_THAT(log.Text(), Not(HasSubstr("folder recipe")));
}

TEST_F(FolderRecipeTest, SeveralRanks_ShareTheBatch) {
  const ConfigNode config = Resolve("DISTRIBUTED: {NUM_NODES: 1, NUM_PROC_PER_NODE: 2}\n");
  EXPECT_EQ(At(config, kBatchSize), absl::StrCat(ChooseForFolder(300).batch_size / 2));
}

// A run of 300 images, and what another command in its directory resolves to.
class FolderRecipeOfRunTest : public FolderRecipeTest {
 protected:
  void SetUp() override {
    FolderRecipeTest::SetUp();
    Save(3, Resolve(Directory()));
  }

  std::string Directory() const { return absl::StrCat("CHECKPOINT: {DIR: '", run_, "'}\n"); }

  void Save(int64_t iteration, const ConfigNode& config) {
    const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
    CheckpointStoreOptions options{CheckpointDirectory(run_), 0, "hash"};
    options.config_json = RunIdentity(config, registries_.options, {}).ToJson();
    CheckpointStore store(options, PosixFileSystem(), *alone);
    ASSERT_OK(store.Open());
    ASSERT_OK(store.Save(iteration, {{"model.safetensors", {}}}));
  }

  const std::string run_ = MakeTempDir("run");
};

TEST_F(FolderRecipeOfRunTest, ItsChoicesStay_WhateverTheNumberOfImages) {
  for (const int64_t images : {7, 5000}) {
    const CapturedLog log;
    const ConfigNode config = Resolve(Directory(), images);
    for (const char* path : {kEpochs, kBatchSize, kSize}) EXPECT_EQ(At(config, path), At(Resolve(), path)) << path;
    EXPECT_THAT(log.Text(), HasSubstr("has it ("));
  }
  EXPECT_EQ(At(Resolve(Directory() + "OPTIMIZER: {num_epochs: 5}\n"), kEpochs), "5") << "what is said stays";
}

TEST_F(FolderRecipeOfRunTest, OtherImages_AreABatchAtMost) {
  ConfigNode other = ParseYaml(absl::StrCat(kConfig, Directory()), "mine.yaml", nullptr).value();
  other.SetPath("DATA.TRAIN.DATA_PATHS", ConfigNode::FromStrings({"others"}));
  other.SetPath("DATA.TRAIN.DATA_LIMIT", ConfigNode::FromInt(7));
  ASSERT_OK_AND_ASSIGN(const ConfigNode config, ResolveConfig(other, registries_));
  EXPECT_EQ(At(config, kBatchSize), "7");
  EXPECT_EQ(At(config, kSize), At(Resolve(), kSize));
}

TEST_F(FolderRecipeOfRunTest, OtherRanks_ShareItsBatch) {
  const ConfigNode config = Resolve(Directory() + "DISTRIBUTED: {NUM_NODES: 1, NUM_PROC_PER_NODE: 2}\n", 7);
  EXPECT_EQ(At(config, kBatchSize), absl::StrCat(ChooseForFolder(300).batch_size / 2));
}

TEST_F(FolderRecipeOfRunTest, CheckpointThatTellsNothing_IsPassedOver) {
  Save(4, Resolve(Directory(), 5000));
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), CheckpointDirectory(run_) + "/step_4/config.json", "{"));
  EXPECT_EQ(At(Resolve(Directory(), 7), kEpochs), absl::StrCat(ChooseForFolder(300).num_epochs));
}

TEST_F(FolderRecipeOfRunTest, RunThatIsStartedAnew_ChoosesAnew) {
  const std::string anew = absl::StrCat("CHECKPOINT: {DIR: '", run_, "', OVERWRITE_EXISTING: True, AUTO_RESUME: ");
  EXPECT_EQ(At(Resolve(anew + "False}\n", 7), kSize), absl::StrCat(ChooseForFolder(7).crop_size));
  EXPECT_EQ(At(Resolve(anew + "True}\n", 7), kSize), absl::StrCat(ChooseForFolder(300).crop_size)) << "it goes on";
}

TEST(ChooseForFolder, SensibleFromAHandfulToThousands) {
  for (const int64_t images : {1, 2, 7, 8, 9, 10, 40, 200, 201, 600, 5000, 1000000}) {
    const FolderChoices choices = ChooseForFolder(images);
    EXPECT_GE(choices.num_epochs, 8) << images;
    EXPECT_LE(choices.num_epochs, 100) << images;
    EXPECT_GE(choices.batch_size, std::min<int64_t>(images, 8)) << images;
    EXPECT_LE(choices.batch_size, images) << "a training has no batch otherwise";
    EXPECT_LE(choices.batch_size, 64) << images;
  }
  EXPECT_EQ(ChooseForFolder(40).batch_size, 8);
  EXPECT_EQ(ChooseForFolder(200).batch_size, 32);
  EXPECT_GT(ChooseForFolder(200).crop_size, ChooseForFolder(5000).crop_size);
  EXPECT_GT(ChooseForFolder(700).num_epochs, ChooseForFolder(5000).num_epochs);
}

}  // namespace
}  // namespace ssl
