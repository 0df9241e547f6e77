// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_plan.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/register_data.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMultiCrop[] = R"(
      - {name: ImgPilToMultiCrop, total_num_crops: 8, num_crops: [2, 6], size_crops: [224, 96]}
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
)";

class EvaluationPlanTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterData(&registries_)); }

  // The lines below DATA over the defaults.
  ConfigNode Config(const std::string& data) {
    ConfigNode config = registries_.options.Defaults();
    const ConfigNode own = ParseYaml(data, "run.yaml", nullptr).value();
    for (const auto& [split, section] : own.entries()) {
      for (const auto& [key, value] : section.entries()) config.SetPath(absl::StrCat("DATA.", split, ".", key), value);
    }
    return config;
  }

  EvaluationPlan Plan(const std::string& data) {
    return PlanEvaluation(Config(data), registries_.options.Defaults(), PosixFileSystem());
  }

  // A folder with an empty folder for each class.
  std::string MakeFolder(const std::string& path, const std::vector<std::string>& classes) {
    const std::string folder = absl::StrCat(base_, "/", path);
    for (const std::string& name : classes) {
      EXPECT_OK(PosixFileSystem().CreateDirectories(absl::StrCat(folder, "/", name)));
    }
    return folder;
  }

  const std::string base_ = MakeTempDir("plan");
  Registries registries_;
};

std::string Text(const EvaluationPlan& plan, const std::string& path) {
  const ConfigNode* node = plan.config.FindPath(path);
  if (node == nullptr) return "(none)";
  return node->is_list() ? node->items().at(0).text() : node->text();
}

std::vector<std::string> Texts(const EvaluationPlan& plan, const std::string& path) {
  std::vector<std::string> texts;
  for (const ConfigNode& item : plan.config.FindPath(path)->items()) texts.push_back(item.text());
  return texts;
}

std::vector<std::string> TransformNames(const EvaluationPlan& plan) {
  std::vector<std::string> names;
  for (const ConfigNode& transform : plan.config.FindPath("DATA.TEST.TRANSFORMS")->items()) {
    names.push_back(transform.Find("name")->text());
  }
  return names;
}

std::string FolderRun(const std::string& folder, const std::string& more = "") {
  return absl::StrCat("TRAIN:\n  DATA_SOURCES: [disk_folder]\n  DATA_PATHS: [", folder, "]\n",
                      "  TRANSFORMS:", kMultiCrop,
                      "  COLLATE_FUNCTION: multicrop_collator\n  BATCHSIZE_PER_REPLICA: 32\n  DROP_LAST: True\n", more);
}

TEST_F(EvaluationPlanTest, DescribedEvaluation_IsTakenAsItIs) {
  const std::string data =
      "TRAIN: {DATA_SOURCES: [synthetic]}\nTEST: {DATA_SOURCES: [synthetic], TRANSFORMS: [{name: ToTensor}]}\n";
  const EvaluationPlan plan = Plan(data);
  EXPECT_TRUE(plan.config == Config(data));
  EXPECT_THAT(plan.choices, IsEmpty());
  EXPECT_TRUE(DescribesEvaluation(plan.config));
}

TEST_F(EvaluationPlanTest, Photographs_AreResizedAndCroppedAsTheLargestCrop) {
  const EvaluationPlan plan = Plan(FolderRun(MakeFolder("photos", {"a"})));
  EXPECT_THAT(TransformNames(plan), ElementsAre("Resize", "CenterCrop", "ToTensor", "Normalize"));
  EXPECT_EQ(Text(plan, "DATA.TEST.TRANSFORMS.0.size"), "256");
  EXPECT_EQ(Text(plan, "DATA.TEST.TRANSFORMS.1.size"), "224");
  EXPECT_EQ(Text(plan, "DATA.TEST.TRANSFORMS.3.mean"), "0.485");
  EXPECT_EQ(Text(plan, "DATA.TEST.COLLATE_FUNCTION"), "default_collate");
  EXPECT_EQ(Text(plan, "DATA.TEST.BATCHSIZE_PER_REPLICA"), "32");
  EXPECT_EQ(Text(plan, "DATA.TEST.DROP_LAST"), "false");
  ASSERT_EQ(plan.choices.size(), 2u);
  EXPECT_THAT(plan.choices[1], AllOf(HasSubstr("Resize 256, CenterCrop 224, ToTensor, Normalize"),
                                     HasSubstr("config.DATA.TEST.TRANSFORMS says otherwise")));
}

TEST_F(EvaluationPlanTest, SmallImages_AreUsedWhole) {
  const EvaluationPlan plan = Plan(
      "TRAIN:\n  DATA_SOURCES: [synthetic]\n  TRANSFORMS: [{name: ImgReplicatePil, num_times: 2}, "
      "{name: RandomResizedCrop, size: 28}, {name: ToTensor}]\n");
  EXPECT_THAT(TransformNames(plan), ElementsAre("Resize", "CenterCrop", "ToTensor"));
  EXPECT_EQ(Text(plan, "DATA.TEST.TRANSFORMS.0.size"), "28");
}

TEST_F(EvaluationPlanTest, CropsThatAreNoSquares_BecomeAResize) {
  const EvaluationPlan plan = Plan(
      "TRAIN:\n  DATA_SOURCES: [synthetic]\n  TRANSFORMS: [{name: RandomCrop, size: [64, 96]}, {name: ToTensor}]\n");
  EXPECT_THAT(TransformNames(plan), ElementsAre("Resize", "ToTensor"));
  EXPECT_EQ(Text(plan, "DATA.TEST.TRANSFORMS.0.size.1"), "96");
}

TEST_F(EvaluationPlanTest, TrainingWithoutCrops_KeepsTheSize) {
  EXPECT_THAT(TransformNames(Plan("TRAIN:\n  DATA_SOURCES: [synthetic]\n  TRANSFORMS: [{name: RandomHorizontalFlip}, "
                                  "{name: ToTensor}]\n")),
              ElementsAre("ToTensor"));
}

TEST_F(EvaluationPlanTest, DataSetWithParts_IsTestedOnItsTestPart) {
  const EvaluationPlan plan = Plan(
      "TRAIN: {DATA_SOURCES: [torchvision_dataset], DATASET_NAMES: [cifar10], DATA_PATHS: [/data], DATA_LIMIT: 100}\n");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_SOURCES"), "torchvision_dataset");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATASET_NAMES"), "cifar10");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_PATHS"), "/data");
  EXPECT_EQ(Text(plan, "DATA.TEST.SPLIT"), "test");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_LIMIT"), "-1");
  EXPECT_EQ(Text(plan, "DATA.TRAIN.DATA_LIMIT"), "100");
  EXPECT_EQ(Text(plan, "DATA.TRAIN.HOLD_OUT_FRACTION"), "0.0");
  EXPECT_THAT(plan.choices, ElementsAre(HasSubstr("the part SPLIT: test")));
}

TEST_F(EvaluationPlanTest, FolderBesideTheTrainingFolder_IsTheTestSet) {
  const std::string train = MakeFolder("beside/train", {"a", "b"});
  MakeFolder("beside/test", {"b"});
  EXPECT_EQ(Text(Plan(FolderRun(train)), "DATA.TEST.DATA_PATHS"), base_ + "/beside/test");
  EXPECT_EQ(Text(Plan(FolderRun(train + "/")), "DATA.TEST.DATA_PATHS"), base_ + "/beside/test");
  MakeFolder("beside/val", {"a"});
  const EvaluationPlan plan = Plan(FolderRun(train));
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_PATHS"), base_ + "/beside/val");
  EXPECT_EQ(Text(plan, "DATA.TRAIN.HOLD_OUT_FRACTION"), "0.0");
  EXPECT_THAT(plan.choices[0], AllOf(HasSubstr(base_ + "/beside/val"), HasSubstr("config.DATA.TEST.DATA_PATHS")));
}

TEST_F(EvaluationPlanTest, FoldersBesideAllSources_AreTheTestSet) {
  const std::string train = MakeFolder("one/train", {"a"});
  const std::string other = MakeFolder("two/train", {"a"});
  const std::string more = "  DATA_SOURCES: [disk_folder, disk_folder]\n  DATA_PATHS: [" + train + ", " + other + "]\n";
  MakeFolder("one/val", {"a"});
  const EvaluationPlan one = Plan("TRAIN:\n" + more);
  EXPECT_EQ(Text(one, "DATA.TEST.HOLD_OUT_FRACTION"), "0.1") << "only one of them has one";
  EXPECT_EQ(Texts(one, "DATA.TEST.DATA_PATHS"), Texts(one, "DATA.TRAIN.DATA_PATHS"));
  MakeFolder("two/test", {"a"});
  const EvaluationPlan both = Plan("TRAIN:\n" + more);
  EXPECT_THAT(Texts(both, "DATA.TEST.DATA_PATHS"), ElementsAre(base_ + "/one/val", base_ + "/two/test"));
  EXPECT_EQ(Text(both, "DATA.TEST.HOLD_OUT_FRACTION"), "0.0");
}

TEST_F(EvaluationPlanTest, FolderBesideThatMayNotBeRead_IsNone) {
  const std::string train = MakeFolder("below/train", {"a"});
  MakeFolder("below/val", {"a"});
  EXPECT_EQ(Text(Plan(FolderRun(train, "  PATHS_BELOW: " + train + "\n")), "DATA.TEST.HOLD_OUT_FRACTION"), "0.1");
  for (const char* root : {"/below", "/below/", ""}) {
    const EvaluationPlan plan = Plan(FolderRun(train, absl::StrCat("  PATHS_BELOW: ", base_, root, "\n")));
    EXPECT_EQ(Text(plan, "DATA.TEST.DATA_PATHS"), base_ + "/below/val") << root;
  }
}

// SPLIT says nothing to a folder: it is trained on.
TEST_F(EvaluationPlanTest, SourcesOfWhichSomeHaveATestPart_AreTestedOnTheseParts) {
  const EvaluationPlan plan = Plan(
      "TRAIN:\n  DATA_SOURCES: [disk_folder, torchvision_dataset]\n  DATA_PATHS: [photos, cifar]\n"
      "  DATASET_NAMES: [mine, cifar10]\n");
  EXPECT_THAT(Texts(plan, "DATA.TEST.DATA_SOURCES"), ElementsAre("torchvision_dataset"));
  EXPECT_THAT(Texts(plan, "DATA.TEST.DATA_PATHS"), ElementsAre("cifar"));
  EXPECT_THAT(Texts(plan, "DATA.TEST.DATASET_NAMES"), ElementsAre("cifar10"));
  EXPECT_EQ(Text(plan, "DATA.TEST.SPLIT"), "test");
  EXPECT_EQ(Text(plan, "DATA.TRAIN.HOLD_OUT_FRACTION"), "0.0");
  EXPECT_THAT(Texts(plan, "DATA.TRAIN.DATA_PATHS"), ElementsAre("photos", "cifar"));
}

TEST_F(EvaluationPlanTest, OneTestPathForSeveralSources_IsOneSource) {
  const std::string test = "TEST: {DATA_PATHS: [/mine]}\n";
  const EvaluationPlan folders = Plan(
      "TRAIN: {DATA_SOURCES: [tar_shards, tar_shards], DATA_PATHS: [a, b], LABEL_SOURCES: [tar_shards, tar_shards]}\n" +
      test);
  EXPECT_THAT(Texts(folders, "DATA.TEST.DATA_SOURCES"), ElementsAre("tar_shards"));
  EXPECT_THAT(Texts(folders, "DATA.TEST.LABEL_SOURCES"), ElementsAre("tar_shards"));
  const EvaluationPlan mixed =
      Plan("TRAIN: {DATA_SOURCES: [synthetic, disk_folder], DATA_PATHS: ['', b], DATASET_NAMES: [s, mine]}\n" + test);
  EXPECT_THAT(Texts(mixed, "DATA.TEST.DATA_SOURCES"), ElementsAre("disk_folder"));
  EXPECT_THAT(Texts(mixed, "DATA.TEST.DATASET_NAMES"), ElementsAre("imagenet1k_folder"));
}

// Those of the training images would be taken for the test images'.
TEST_F(EvaluationPlanTest, LabelsInFiles_AreThoseOfTheTrainingImages) {
  const std::string labelled = "  LABEL_SOURCES: [disk_filelist]\n  LABEL_PATHS: [labels.npy]\n";
  const std::string test = "TEST:\n  DATA_PATHS: [/mine]\n";
  const EvaluationPlan plan = Plan(FolderRun("/photos", labelled + test));
  EXPECT_THAT(Texts(plan, "DATA.TEST.LABEL_SOURCES"), ElementsAre("disk_filelist"));
  EXPECT_THAT(Texts(plan, "DATA.TEST.LABEL_PATHS"), IsEmpty());
  EXPECT_THAT(
      Texts(Plan(FolderRun("/photos", labelled + test + "  LABEL_PATHS: [of_test.npy]\n")), "DATA.TEST.LABEL_PATHS"),
      ElementsAre("of_test.npy"));
  const std::string train = MakeFolder("files/train", {"a"});
  MakeFolder("files/val", {"a"});
  const EvaluationPlan held_out = Plan(FolderRun(train, labelled));
  EXPECT_EQ(Text(held_out, "DATA.TEST.HOLD_OUT_FRACTION"), "0.1") << "the folder beside has no labels";
  EXPECT_THAT(Texts(held_out, "DATA.TEST.LABEL_PATHS"), ElementsAre("labels.npy"));
}

TEST_F(EvaluationPlanTest, FolderBesideWithOtherClasses_OrOfAnotherNameOfTheTrainingFolder_IsNot) {
  const std::string train = MakeFolder("other/train", {"a", "b"});
  MakeFolder("other/test", {"x", "y"});
  EXPECT_EQ(Text(Plan(FolderRun(train)), "DATA.TEST.DATA_PATHS"), train);
  const std::string photos = MakeFolder("photos/strain", {"a"});
  MakeFolder("photos/stest", {"a"});
  MakeFolder("photos/test", {"a"});
  EXPECT_EQ(Text(Plan(FolderRun(photos)), "DATA.TEST.DATA_PATHS"), photos);
}

TEST_F(EvaluationPlanTest, SingleFolder_IsDivided) {
  const std::string folder = MakeFolder("single", {"a", "b"});
  const EvaluationPlan plan = Plan(FolderRun(folder));
  for (const char* split : {"TRAIN", "TEST"}) {
    const std::string section = absl::StrCat("DATA.", split, ".");
    EXPECT_EQ(Text(plan, section + "HOLD_OUT_FRACTION"), "0.1") << split;
    EXPECT_EQ(Text(plan, section + "DATA_PATHS"), folder) << split;
  }
  EXPECT_EQ(Text(plan, "DATA.TRAIN.SPLIT"), "train");
  EXPECT_EQ(Text(plan, "DATA.TEST.SPLIT"), "test");
  EXPECT_THAT(plan.choices[0],
              AllOf(HasSubstr("10% of the data set of DATA.TRAIN, of each class where it has classes,"),
                    HasSubstr("config.DATA.TRAIN.HOLD_OUT_FRACTION")));
}

// Both parts are of the whole data set, and of one draw.
TEST_F(EvaluationPlanTest, LimitOfTheTrainingPart_IsNotThatOfTheTestPart) {
  const std::string training = FolderRun(MakeFolder("limited", {"a", "b"}),
                                         "  DATA_LIMIT: 50\n  DATA_LIMIT_SAMPLING: {SEED: 3, IS_BALANCED: True}\n");
  const EvaluationPlan plan = Plan(training);
  EXPECT_EQ(Text(plan, "DATA.TRAIN.DATA_LIMIT"), "50");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_LIMIT"), "-1");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_LIMIT_SAMPLING.SEED"), "3");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_LIMIT_SAMPLING.IS_BALANCED"), "false");
  const EvaluationPlan own = Plan(
      training + "TEST: {DATA_LIMIT: 4, DATA_LIMIT_SAMPLING: {SEED: 5, IS_BALANCED: False, SKIP_NUM_SAMPLES: 2}}\n");
  EXPECT_EQ(Text(own, "DATA.TEST.DATA_LIMIT"), "4");
  EXPECT_EQ(Text(own, "DATA.TEST.DATA_LIMIT_SAMPLING.SEED"), "3");
  EXPECT_EQ(Text(own, "DATA.TEST.DATA_LIMIT_SAMPLING.SKIP_NUM_SAMPLES"), "2");
  EXPECT_EQ(Text(own, "DATA.TRAIN.DATA_LIMIT_SAMPLING.SEED"), "3");
}

// A test phase visits all samples, each as it is, and refuses what says otherwise.
TEST_F(EvaluationPlanTest, HowTrainingTakesItsSamples_SaysNothingOfATest) {
  const std::string ways =
      "  BROKEN_IMAGES: skip\n  CACHE: raw\n  CACHE_BYTES: 5\n  ENABLE_QUEUE_DATASET: True\n  MINI_EPOCHS: 2\n"
      "  MINI_EPOCH_GROUPS: 3\n  STRATIFIED_SAMPLER: {ENABLED: True}\n  POWER_LAW_SAMPLER: {ENABLED: True}\n"
      "  USE_DEBUGGING_SAMPLER: True\n  USE_STATEFUL_DISTRIBUTED_SAMPLER: True\n";
  const std::string training = FolderRun(MakeFolder("ways", {"a"}), ways);
  const ConfigNode by_default = registries_.options.Defaults();
  const EvaluationPlan plan = Plan(training);
  const ConfigNode keys = ParseYaml(ways, "ways.yaml", nullptr).value();
  for (const auto& entry : keys.entries()) {
    const std::string path = absl::StrCat("DATA.TEST.", entry.first);
    EXPECT_EQ(*plan.config.FindPath(path), *by_default.FindPath(path)) << path;
  }
  const EvaluationPlan own = Plan(training + "TEST: {MINI_EPOCHS: 4, BROKEN_IMAGES: error}\n");
  EXPECT_EQ(Text(own, "DATA.TEST.MINI_EPOCHS"), "4");
  EXPECT_EQ(Text(own, "DATA.TEST.BROKEN_IMAGES"), "error");
  EXPECT_EQ(Text(Plan(FolderRun(MakeFolder("strict", {"a"}), "  BROKEN_IMAGES: error\n")), "DATA.TEST.BROKEN_IMAGES"),
            "error");
}

// They belong to COLLATE_FUNCTION, which is the test's own.
TEST_F(EvaluationPlanTest, InputsOfTheTrainingCollator_AreNotThoseOfTheTest) {
  const EvaluationPlan plan = Plan(R"(
TRAIN:
  DATA_SOURCES: [disk_folder]
  DATA_PATHS: [photos]
  COLLATE_FUNCTION: patch_and_image_collator
  INPUT_KEY_NAMES: [patches, images]
  TARGET_KEY_NAMES: [label, label]
  TRANSFORMS: [{name: ImgPilToPatchesAndImage}, {name: ToTensor}]
)");
  EXPECT_EQ(Text(plan, "DATA.TEST.COLLATE_FUNCTION"), "default_collate");
  EXPECT_THAT(Texts(plan, "DATA.TEST.INPUT_KEY_NAMES"), ElementsAre("data"));
  EXPECT_THAT(Texts(plan, "DATA.TEST.TARGET_KEY_NAMES"), ElementsAre("label"));
}

TEST_F(EvaluationPlanTest, KeysOfTheTest_StayWhereTheyAreSetToTheirDefaults) {
  const ConfigNode defaults = registries_.options.Defaults();
  for (const auto& [key, value] : defaults.Section("DATA.TEST").entries()) {
    if (!value.is_scalar()) continue;
    ConfigNode config = Config("TRAIN: {DATA_SOURCES: [disk_folder], DATA_PATHS: [a]}\nTEST: {DATA_PATHS: [b]}\n");
    config.SetPath(absl::StrCat("DATA.TRAIN.", key), ConfigNode::FromString("another"));
    ConfigNode own = value;
    own.Relocate({"run.yaml", 7});
    config.SetPath(absl::StrCat("DATA.TEST.", key), own);
    EXPECT_EQ(Text(PlanEvaluation(config, defaults, PosixFileSystem()), absl::StrCat("DATA.TEST.", key)), value.text())
        << key;
  }
}

// As train_config.yaml has all keys: whose they are is told by their values alone, and by what is said beside it.
TEST_F(EvaluationPlanTest, ResolvedConfigurationThatIsReadAgain_IsPlannedLikewise) {
  const ConfigNode first = Config(R"(
TRAIN: {DATA_SOURCES: [synthetic], BROKEN_IMAGES: error, DECODE: fast, IMAGE_CHANNELS: 1}
TEST: {DECODE: exact_of_the_user}
)");
  const ConfigNode defaults = registries_.options.Defaults();
  ConfigNode again = ParseYaml(WriteYaml(first), "train_config.yaml", nullptr).value();
  EXPECT_TRUE(PlanEvaluation(again, defaults, PosixFileSystem()).config ==
              PlanEvaluation(first, defaults, PosixFileSystem()).config);
  again.SetPath("DATA.TEST.BROKEN_IMAGES", ConfigNode::Scalar("gray", /*quoted=*/false, {"command line", 3}));
  const EvaluationPlan plan = PlanEvaluation(again, defaults, PosixFileSystem());
  EXPECT_EQ(Text(plan, "DATA.TEST.BROKEN_IMAGES"), "gray");
  EXPECT_EQ(Text(plan, "DATA.TEST.IMAGE_CHANNELS"), "1");
}

// As configurations for other programs often have them.
TEST_F(EvaluationPlanTest, EmptyListsOfTheTest_SayNothing) {
  const EvaluationPlan plan = Plan(R"(
TRAIN: {DATA_SOURCES: [disk_filelist], DATA_PATHS: [a.npy], LABEL_SOURCES: [disk_filelist], LABEL_PATHS: [l.npy]}
TEST: {LABEL_SOURCES: [], LABEL_TYPE: standard}
)");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_PATHS"), "a.npy");
  EXPECT_EQ(Text(plan, "DATA.TEST.LABEL_SOURCES"), "disk_filelist");
}

TEST_F(EvaluationPlanTest, ShareThatTrainingHeldOut_IsTheTestSet) {
  const EvaluationPlan plan = Plan(FolderRun(MakeFolder("held", {"a"}), "  HOLD_OUT_FRACTION: 0.25\n"));
  EXPECT_EQ(Text(plan, "DATA.TEST.HOLD_OUT_FRACTION"), "0.25");
  EXPECT_EQ(Text(plan, "DATA.TRAIN.HOLD_OUT_FRACTION"), "0.25");
}

TEST_F(EvaluationPlanTest, TestPathAlone_IsReadAsTheTrainingData) {
  const EvaluationPlan plan =
      Plan(FolderRun(MakeFolder("given", {"a"}), "  DATA_LIMIT: 5\nTEST:\n  DATA_PATHS: [/mine]\n"));
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_SOURCES"), "disk_folder");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_PATHS"), "/mine");
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_LIMIT"), "-1");
  EXPECT_EQ(Text(plan, "DATA.TRAIN.HOLD_OUT_FRACTION"), "0.0");
}

TEST_F(EvaluationPlanTest, TestSourceWithoutTransforms_KeepsItsDataAndGetsTransforms) {
  const EvaluationPlan plan =
      Plan(FolderRun("/train", "TEST:\n  DATA_SOURCES: [disk_filelist]\n  DATA_PATHS: [list.txt]\n"));
  EXPECT_EQ(Text(plan, "DATA.TEST.DATA_SOURCES"), "disk_filelist");
  EXPECT_EQ(TransformNames(plan).size(), 4u);
  EXPECT_EQ(plan.choices.size(), 1u);
}

TEST_F(EvaluationPlanTest, WithoutTrainingData_NothingIsChosen) {
  EXPECT_THAT(Plan("TEST: {DATA_PATHS: [/mine]}\n").choices, IsEmpty());
}

TEST_F(EvaluationPlanTest, CompleteConfiguration_IsItsOwnPlan) {
  const EvaluationPlan plan = Plan(FolderRun(MakeFolder("again", {"a"})));
  const EvaluationPlan again = PlanEvaluation(plan.config, registries_.options.Defaults(), PosixFileSystem());
  EXPECT_TRUE(again.config == plan.config);
  EXPECT_THAT(again.choices, IsEmpty());
}

// Nobody can tell of a resolved configuration whether it is said.
TEST_F(EvaluationPlanTest, NothingHeldOut_IsWhatSomebodySays) {
  const std::string folder = MakeFolder("whole", {"a"});
  const EvaluationPlan plan = Plan(FolderRun(folder, "  HOLD_OUT_FRACTION: 0\n"));
  EXPECT_THAT(Texts(plan, "DATA.TEST.DATA_SOURCES"), IsEmpty());
  EXPECT_EQ(Text(plan, "DATA.TRAIN.HOLD_OUT_FRACTION"), "0");
  EXPECT_EQ(TransformNames(plan).size(), 4u);
  EXPECT_THAT(plan.choices[0], HasSubstr("config.DATA.TRAIN.HOLD_OUT_FRACTION is 0; config.DATA.TEST.DATA_PATHS"));
  const ConfigNode written = ParseYaml(WriteYaml(Config(FolderRun(folder))), "train_config.yaml", nullptr).value();
  const EvaluationPlan again = PlanEvaluation(written, registries_.options.Defaults(), PosixFileSystem());
  EXPECT_EQ(Text(again, "DATA.TEST.HOLD_OUT_FRACTION"), "0.1");
}

}  // namespace
}  // namespace ssl
