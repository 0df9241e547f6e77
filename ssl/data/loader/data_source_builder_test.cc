// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/data_source_builder.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// Line 3 is the first below TRAIN.
constexpr char kRun[] = R"(DATA:
  TRAIN:
    DATA_SOURCES: [synthetic]
    LABEL_SOURCES: [synthetic]
    DATA_LIMIT: 50
    DEFAULT_GRAY_IMG_SIZE: 12
    RANDOM_SYNTHETIC_LABELS: 5
    IMAGE_CHANNELS: 1
    BATCHSIZE_PER_REPLICA: 16
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - name: ImgPilToMultiCrop
        total_num_crops: 3
        num_crops: [1, 2]
        size_crops: [8, 4]
        crop_scales: [[0.3, 1.0], [0.05, 0.3]]
      - name: ToTensor
  TEST:
    DATA_SOURCES: [synthetic]
    DATA_LIMIT: 20
    DEFAULT_GRAY_IMG_SIZE: 12
    IMAGE_CHANNELS: 1
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS: [{name: ToTensor}]
  NUM_DATALOADER_WORKERS: 2
)";

// A run's configuration: the defaults, kRun, and `overrides` in the form of a file "run.yaml".
class DataSourceBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterData(&registries_)); }

  void Configure(const std::string& text = kRun) {
    config_ = registries_.options.Defaults();
    MergeInto(&config_, ParseYaml(text, "run.yaml", nullptr).value());
  }

  // kRun with the line that starts with `key` in TRAIN replaced.
  static std::string With(const std::string& key, const std::string& value) {
    std::string text = kRun;
    const size_t start = text.find(key + ":");
    return text.replace(start, text.find('\n', start) - start, absl::StrCat(key, ": ", value));
  }

  BuildContext Context(Communicator& communicator) { return {config_, registries_, communicator, /*seed=*/4}; }

  absl::StatusOr<std::unique_ptr<BatchSource>> MakeTraining() {
    return registries_.batch_sources.Make("generic_ssl", *config_.FindPath("DATA.TRAIN"), Context(*local_));
  }

  absl::StatusOr<std::unique_ptr<BatchSource>> MakeTest() {
    return registries_.batch_sources.Make("generic_ssl", *config_.FindPath("DATA.TEST"), Context(*local_));
  }

  // Builds from kRun with one line replaced, and returns the error.
  absl::Status ErrorWith(const std::string& key, const std::string& value) {
    Configure(With(key, value));
    return MakeTraining().status();
  }

  Registries registries_;
  ConfigNode config_;
  const std::unique_ptr<Communicator> local_ = MakeLocalCommunicator();
};

// Indices of all samples of an epoch, in order.
std::vector<int64_t> ReadIndices(BatchSource& source, int64_t epoch) {
  EXPECT_OK(source.StartEpoch(epoch, 0));
  std::vector<int64_t> indices;
  while (true) {
    const absl::StatusOr<const Batch*> batch = source.Next();
    EXPECT_OK(batch);
    if (!batch.ok() || *batch == nullptr) return indices;
    for (int64_t i = 0; i < (*batch)->size(); ++i) indices.push_back((*batch)->indices[i].item<int64_t>());
  }
}

std::vector<int64_t> FirstIndices(int64_t count) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) indices.push_back(i);
  return indices;
}

TEST_F(DataSourceBuilderTest, Register_TwiceIsHarmlessAndNamesAreKnown) {
  EXPECT_OK(RegisterData(&registries_));
  EXPECT_THAT(registries_.batch_sources.Names(), ElementsAre("generic_ssl"));
  EXPECT_THAT(registries_.datasets.Names(), ElementsAre("disk_filelist", "disk_folder", "npy_images", "synthetic",
                                                        "tar_shards", "torchvision_dataset"));
  EXPECT_THAT(registries_.transforms.Names(), IsSupersetOf({"ImgPilToMultiCrop", "Normalize", "ToTensor"}));
  EXPECT_EQ(registries_.resolvers.size(), 0u);
  EXPECT_THAT(registries_.options.Paths(), ElementsAre("DATA", "DATA.TEST", "DATA.TRAIN"));
}

TEST_F(DataSourceBuilderTest, Defaults_HoldBothSplits) {
  Configure("{}");
  EXPECT_EQ(config_.FindPath("DATA.TRAIN.SPLIT")->text(), "train");
  EXPECT_EQ(config_.FindPath("DATA.TEST.SPLIT")->text(), "test");
  EXPECT_EQ(config_.FindPath("DATA.NUM_DATALOADER_WORKERS")->text(), "4");
  EXPECT_EQ(config_.FindPath("DATA.TEST.BATCHSIZE_PER_REPLICA")->text(), "256");
}

TEST_F(DataSourceBuilderTest, Training_ShufflesAnewEachEpochAndVisitsAll) {
  Configure();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTraining());

  const std::vector<int64_t> first = ReadIndices(*source, 0);
  const std::vector<int64_t> second = ReadIndices(*source, 1);

  EXPECT_EQ(source->batches_per_epoch(), 4);
  EXPECT_EQ(source->dataset_size(), 50);
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 50u);
}

TEST_F(DataSourceBuilderTest, Training_MakesTheViewsOfTheTransforms) {
  Configure();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTraining());
  ASSERT_OK(source->StartEpoch(0, 0));

  ASSERT_OK_AND_ASSIGN(const Batch* batch, source->Next());

  ASSERT_EQ(batch->views.size(), 3u);
  EXPECT_EQ(batch->views[0].sizes(), (std::vector<int64_t>{16, 1, 8, 8}));
  EXPECT_EQ(batch->views[2].sizes(), (std::vector<int64_t>{16, 1, 4, 4}));
  EXPECT_EQ(batch->targets[0].item<int64_t>(), batch->indices[0].item<int64_t>() % 5);
}

TEST_F(DataSourceBuilderTest, Ranks_ShareTheEpoch) {
  Configure();
  std::vector<std::vector<int64_t>> indices(2);
  ThreadWorld world(2, absl::Seconds(20));
  ASSERT_OK(world.Run([&](Communicator& communicator) {
    auto source = MakeTrainingSource(*config_.FindPath("DATA.TRAIN"), Context(communicator));
    if (!source.ok()) return source.status();
    indices[communicator.rank()] = ReadIndices(**source, 0);
    return absl::OkStatus();
  }));
  std::set<int64_t> all(indices[0].begin(), indices[0].end());
  all.insert(indices[1].begin(), indices[1].end());
  EXPECT_EQ(indices[0].size(), 25u);
  EXPECT_EQ(indices[1].size(), 25u);
  EXPECT_EQ(all.size(), 50u);
}

TEST_F(DataSourceBuilderTest, Evaluation_GoesThroughTheDataInOrder) {
  Configure();
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<BatchSource> source,
      MakeEvaluationSource(*config_.FindPath("DATA.TRAIN"), *config_.FindPath("DATA.TEST"), Context(*local_)));

  EXPECT_EQ(ReadIndices(*source, 0), FirstIndices(50));
  EXPECT_EQ(ReadIndices(*source, 1), FirstIndices(50));
  EXPECT_EQ(source->batches_per_epoch(), 4);
  ASSERT_OK(source->StartEpoch(0, 3));
  ASSERT_OK_AND_ASSIGN(const Batch* last, source->Next());
  EXPECT_EQ(last->views[0].sizes(), (std::vector<int64_t>{2, 1, 12, 12}));
}

TEST_F(DataSourceBuilderTest, Evaluation_TakesFewerSamplesThanABatch) {
  Configure(With("DATA_LIMIT", "3"));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<BatchSource> source,
      MakeEvaluationSource(*config_.FindPath("DATA.TRAIN"), *config_.FindPath("DATA.TEST"), Context(*local_)));
  EXPECT_EQ(ReadIndices(*source, 0), FirstIndices(3));
}

TEST_F(DataSourceBuilderTest, TestPhase_GoesThroughTheDataInOrderWithItsTail) {
  Configure();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTest());
  EXPECT_EQ(source->batches_per_epoch(), 2);
  EXPECT_EQ(ReadIndices(*source, 0), FirstIndices(20));
  EXPECT_EQ(ReadIndices(*source, 1), FirstIndices(20));
}

TEST_F(DataSourceBuilderTest, TestPhase_TakesFewerSamplesThanABatch) {
  Configure();
  config_.SetPath("DATA.TEST.BATCHSIZE_PER_REPLICA", ConfigNode::FromInt(64));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTest());
  EXPECT_EQ(ReadIndices(*source, 0), FirstIndices(20));
}

TEST_F(DataSourceBuilderTest, TestPhase_DropsItsTailWhenAskedTo) {
  Configure();
  config_.SetPath("DATA.TEST.DROP_LAST", ConfigNode::FromBool(true));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTest());
  EXPECT_EQ(ReadIndices(*source, 0), FirstIndices(16));
}

TEST_F(DataSourceBuilderTest, DebuggingSampler_KeepsTheOrderOfTheData) {
  Configure(With("DATA_LIMIT", "50\n    USE_DEBUGGING_SAMPLER: True"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTraining());
  EXPECT_EQ(ReadIndices(*source, 0), FirstIndices(50));
  EXPECT_EQ(ReadIndices(*source, 3), FirstIndices(50));
}

TEST_F(DataSourceBuilderTest, MiniEpochs_TogetherVisitTheDataOnceWhateverIsTestedBetween) {
  Configure(With("DATA_LIMIT", "64\n    MINI_EPOCHS: 2\n    MINI_EPOCH_GROUPS: 2"));
  config_.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(4));
  for (const bool tests : {false, true}) {
    config_.SetPath("TEST_MODEL", ConfigNode::FromBool(tests));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTraining());
    std::vector<int64_t> first = ReadIndices(*source, 0);
    std::vector<int64_t> second = ReadIndices(*source, tests ? 2 : 1);  // a phase's number
    EXPECT_EQ(first.size(), 32);
    first.insert(first.end(), second.begin(), second.end());
    std::sort(first.begin(), first.end());
    EXPECT_EQ(first, FirstIndices(64)) << tests;
  }
  config_.SetPath("DATA.TRAIN.USE_DEBUGGING_SAMPLER", ConfigNode::FromBool(true));
  EXPECT_THAT(MakeTraining().status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("MINI_EPOCHS is 2")));
  config_.SetPath("DATA.TEST.MINI_EPOCHS", ConfigNode::FromInt(2));
  EXPECT_THAT(MakeTest().status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test phase visits all")));
}

TEST_F(DataSourceBuilderTest, MiniEpochsThatAreTooSmall_AreNamed) {
  Configure(With("DATA_LIMIT", "64\n    MINI_EPOCHS: 64"));
  EXPECT_THAT(MakeTraining().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("expected at most 1, the samples of each of 1 ranks in one of 64 parts ("),
                             HasSubstr("config.DATA.TRAIN.MINI_EPOCHS) of "))));
}

TEST_F(DataSourceBuilderTest, StatefulSampler_GoesOnAtABatch) {
  Configure(With("DATA_LIMIT", "50\n    USE_STATEFUL_DISTRIBUTED_SAMPLER: True"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTraining());
  const std::vector<int64_t> order = ReadIndices(*source, 1);
  EXPECT_NE(order, ReadIndices(*source, 2));

  ASSERT_OK(source->StartEpoch(1, 2));
  ASSERT_OK_AND_ASSIGN(const Batch* batch, source->Next());
  EXPECT_EQ(batch->indices[0].item<int64_t>(), order[32]);
}

// Four images of 48 x 64 pixels, of which one cannot be read.
std::string MakeImageFolder() {
  const std::string images =
      absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"), "/ssl/data/testdata/decode/images/");
  const std::string folder = MakeTempDir("images");
  std::filesystem::create_directories(folder + "/a");
  std::filesystem::create_directories(folder + "/b");
  std::filesystem::copy(images + "rgb.png", folder + "/a/1.png");
  std::filesystem::copy(images + "rgb_q90.jpg", folder + "/a/2.jpg");
  std::ofstream(folder + "/b/1.jpg") << "no image";
  std::filesystem::copy(images + "cmyk.jpg", folder + "/b/2.jpg");
  return folder;
}

TEST_F(DataSourceBuilderTest, Files_BecomeTheSameBatchesWithAnyNumberOfThreads) {
  Configure(absl::StrCat("DATA:\n  TEST:\n    DATA_SOURCES: [disk_folder]\n    DATA_PATHS: [", MakeImageFolder(),
                         "]\n    ENABLE_QUEUE_DATASET: True\n    MAX_BROKEN_FRACTION: 0.5\n"
                         "    TRANSFORMS: [{name: ToTensor}]\n"));
  at::Tensor expected;
  for (const int64_t workers : {0, 1, 3}) {
    config_.SetPath("DATA.NUM_DATALOADER_WORKERS", ConfigNode::FromInt(workers));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> source, MakeTest());
    ASSERT_OK(source->StartEpoch(0, 0));
    ASSERT_OK_AND_ASSIGN(const Batch* batch, source->Next());
    ASSERT_EQ(batch->views[0].sizes(), (std::vector<int64_t>{4, 3, 48, 64}));
    EXPECT_EQ(batch->targets[1].item<int64_t>(), 0);
    EXPECT_EQ(batch->targets[2].item<int64_t>(), 1);
    if (!expected.defined()) expected = batch->views[0].clone();
    EXPECT_TRUE(batch->views[0].equal(expected)) << workers << " workers";
    EXPECT_TRUE(batch->views[0][2].equal(batch->views[0][3])) << "the broken image is its neighbour";
  }
}

// It is read to learn the shape of the batches.
TEST_F(DataSourceBuilderTest, FirstImageThatIsBroken_IsNoMatterOfTheTransforms) {
  const std::string folder = MakeImageFolder();
  std::ofstream(folder + "/a/0.jpg") << "no image";
  Configure(absl::StrCat("DATA:\n  TEST:\n    DATA_SOURCES: [disk_folder]\n    DATA_PATHS: [", folder,
                         "]\n    BROKEN_IMAGES: error\n    TRANSFORMS: [{name: ToTensor}]\n"));
  EXPECT_THAT(MakeTest().status(), StatusIs(absl::StatusCode::kDataLoss,
                                            AllOf(HasSubstr("run.yaml:5: config.DATA.TEST.BROKEN_IMAGES is error: "),
                                                  HasSubstr("/a/0.jpg"), Not(HasSubstr("TRANSFORMS")))));
}

TEST_F(DataSourceBuilderTest, Cache_HoldsTheImagesOfPhasesAndNotOfEvaluations) {
  Configure(absl::StrCat("DATA:\n  TEST:\n    DATA_SOURCES: [disk_folder]\n    DATA_PATHS: [", MakeImageFolder(),
                         "]\n    MAX_BROKEN_FRACTION: 0.5\n    CACHE: decoded\n    CACHE_BYTES: 3000000\n",
                         "    TRANSFORMS: [{name: Resize, size: [8, 8]}, {name: ToTensor}]\n"));
  CapturedLog log;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> phase, MakeTest());
    for (int64_t epoch = 0; epoch < 2; ++epoch) ReadIndices(*phase, epoch);
  }
  EXPECT_THAT(log.Text(), AllOf(HasSubstr("config.DATA.TEST.CACHE: decoded images take up to 3 MB of memory"),
                                HasSubstr("3 images (decoded, 0.0 MB of at most 3.0 MB) served 4 of 9 reads")));
  log.lines.clear();
  const ConfigNode& test = *config_.FindPath("DATA.TEST");
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> evaluation,
                         MakeEvaluationSource(test, test, Context(*local_)));
    ReadIndices(*evaluation, 0);
  }
  EXPECT_THAT(log.Text(), Not(HasSubstr("served")));
}

TEST_F(DataSourceBuilderTest, CacheThatIsLargerThanMemory_IsRefused) {
  Configure(absl::StrCat("DATA:\n  TEST:\n    DATA_SOURCES: [disk_folder]\n    DATA_PATHS: [", MakeImageFolder(),
                         "]\n    CACHE: raw\n    CACHE_BYTES: 4000000000000000\n"));
  EXPECT_THAT(MakeTest().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("run.yaml:6: config.DATA.TEST.CACHE_BYTES is 4000000000000000, expected that"),
                             HasSubstr("0 and 4000000000000000 bytes, fit into"))));
}

TEST_F(DataSourceBuilderTest, ClassNames_AreThoseOfTheFolder_UnlessLabelsAreOthers) {
  const std::string split =
      absl::StrCat("DATA:\n  TEST:\n    DATA_SOURCES: [disk_folder]\n    DATA_PATHS: [", MakeImageFolder(),
                   "]\n    MAX_BROKEN_FRACTION: 0.9\n    DATA_LIMIT: 3\n", "    TRANSFORMS: [{name: ToTensor}]\n");
  Configure(split);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> named, MakeTest());
  EXPECT_THAT(named->ClassNames(), testing::ElementsAre("a", "b"));

  const std::string labels = MakeTempDir("labels") + "/labels.txt";
  std::ofstream(labels) << "z\ny\nz\nx\n";
  Configure(absl::StrCat(split, "    LABEL_SOURCES: [disk_filelist]\n    LABEL_PATHS: [", labels, "]\n"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> relabelled, MakeTest());
  EXPECT_THAT(relabelled->ClassNames(), testing::ElementsAre("x", "y", "z"));

  Configure(absl::StrCat(split, "    LABEL_TYPE: sample_index\n"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BatchSource> indexed, MakeTest());
  EXPECT_THAT(indexed->ClassNames(), testing::IsEmpty());
}

TEST_F(DataSourceBuilderTest, LargeBatch_NamesKeyPlaceAndBothNumbers) {
  EXPECT_THAT(ErrorWith("BATCHSIZE_PER_REPLICA", "64"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:9: config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is 64, expected at most 50")));
}

TEST_F(DataSourceBuilderTest, WrongSettings_NameKeyPlaceAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ErrorWith("COLLATE_FUNCTION", "default_collate"),
              StatusIs(invalid, HasSubstr("run.yaml:11: config.DATA.TRAIN.TRANSFORMS: COLLATE_FUNCTION is "
                                          "default_collate, but the transforms make 3 views")));
  EXPECT_THAT(ErrorWith("TRANSFORMS", "[{name: ToTenser}]\n    IGNORED:"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("run.yaml:11: no transform is named 'ToTenser'"), HasSubstr("'ToTensor'"))));
  EXPECT_THAT(ErrorWith("TRANSFORMS", "[ToTensor]\n    IGNORED:"),
              StatusIs(invalid, HasSubstr("TRANSFORMS.0 is 'ToTensor', expected a map with a name")));
}

TEST_F(DataSourceBuilderTest, UnknownDataSource_NamesTheNearest) {
  EXPECT_THAT(ErrorWith("DATA_SOURCES", "[sinthetic]"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no data source is named 'sinthetic'"), HasSubstr("'synthetic'"))));
}

TEST_F(DataSourceBuilderTest, WrongLimit_NamesTheNumbers) {
  EXPECT_THAT(ErrorWith("DATA_LIMIT", "0"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run.yaml:5: config.DATA.TRAIN.DATA_LIMIT is 0")));
  EXPECT_THAT(ErrorWith("DATA_LIMIT", "50\n    DATA_LIMIT_SAMPLING: {SKIP_NUM_SAMPLES: 10}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SKIP_NUM_SAMPLES is 10")));
}

}  // namespace
}  // namespace ssl
