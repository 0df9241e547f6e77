// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/evaluation_source.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/loader/data_source_builder.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] = R"(DATA:
  TRAIN:
    DATA_SOURCES: [synthetic]
    LABEL_TYPE: sample_index
    DATA_LIMIT: 60
    RANDOM_SYNTHETIC_LABELS: 4
    DEFAULT_GRAY_IMG_SIZE: 12
    IMAGE_CHANNELS: 1
    BATCHSIZE_PER_REPLICA: 50
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [2], size_crops: [8], crop_scales: [[0.3, 1.0]]}
      - name: ToTensor
  TEST:
    DATA_SOURCES: [synthetic]
    DATA_LIMIT: 20
    RANDOM_SYNTHETIC_LABELS: 4
    DEFAULT_GRAY_IMG_SIZE: 12
    IMAGE_CHANNELS: 1
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS: [{name: ToTensor}]
  NUM_DATALOADER_WORKERS: 1
)";

class EvaluationSourceTest : public ::testing::Test {
 protected:
  EvaluationSourceTest() {
    EXPECT_OK(RegisterData(&registries_));
    config_ = registries_.options.Defaults();
    MergeInto(&config_, ParseYaml(kRun, "run.yaml", nullptr).value());
  }

  std::unique_ptr<BatchSource> Make(const std::string& split, int64_t most_samples) {
    absl::StatusOr<std::unique_ptr<BatchSource>> source =
        MakeSplitEvaluationSource(split, most_samples, {config_, registries_, *communicator_});
    EXPECT_OK(source);
    EXPECT_OK((*source)->StartEpoch(0, 0));
    return *std::move(source);
  }

  Registries registries_;
  ConfigNode config_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(EvaluationSourceTest, OfATrainingWhoseViewsADeviceMakes_MakesThemOnTheCpu) {
  config_.SetPath("DATA.TRAIN.AUGMENT_ON", ConfigNode::FromString("device"));
  const std::unique_ptr<BatchSource> source = Make("TRAIN", /*most_samples=*/-1);
  ASSERT_OK_AND_ASSIGN(const Batch* const batch, source->Next());
  EXPECT_EQ(batch->views[0].scalar_type(), at::kFloat);
}

// A training has told of its own data.
TEST_F(EvaluationSourceTest, FilesOfOtherKinds_AreToldOfATestSetOfItsOwn) {
  const std::string folder = MakeTempDir("photos");
  Image image;
  std::fill_n(image.Allocate(12, 12, 1), 144, uint8_t{7});
  for (const char* name : {"/a/0.png", "/a/1.png", "/b/2.png", "/b/3.heic"}) {
    ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(folder + name)));
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), folder + name, EncodePng(image).value()));
  }
  for (const char* split : {"TRAIN", "TEST"}) {
    const std::string section = absl::StrCat("DATA.", split, ".");
    config_.SetPath(section + "DATA_SOURCES", ConfigNode::FromStrings({"disk_folder"}));
    config_.SetPath(section + "DATA_PATHS", ConfigNode::FromStrings({folder}));
    config_.SetPath(section + "DATA_LIMIT", ConfigNode::FromInt(-1));
    config_.SetPath(section + "BATCHSIZE_PER_REPLICA", ConfigNode::FromInt(1));
    config_.SetPath(section + "IMAGE_CHANNELS", ConfigNode::FromInt(3));
  }
  const auto warnings = [&](const std::string& split) {
    const CapturedLog log;
    Make(split, -1);
    return log.warnings;
  };
  EXPECT_THAT(warnings("TRAIN"), IsEmpty());
  EXPECT_THAT(warnings("TEST"), ElementsAre(folder + ": passed over: 1 file of kinds that are not read: .heic 1"));
  for (const char* split : {"TRAIN", "TEST"}) {
    config_.SetPath(absl::StrCat("DATA.", split, ".HOLD_OUT_FRACTION"), ConfigNode::FromDouble(0.5));
  }
  EXPECT_THAT(warnings("TEST"), IsEmpty());
}

// They come in the order of their folders: a class of which nothing can be read is a row of broken images.
TEST_F(EvaluationSourceTest, BrokenClass_IsJudgedByTheWholeSplit) {
  const std::string folder = MakeTempDir("photos");
  Image image;
  std::fill_n(image.Allocate(12, 12, 1), 144, uint8_t{7});
  const std::string png = EncodePng(image).value();
  for (const char* name : {"/a", "/b", "/c"}) ASSERT_OK(PosixFileSystem().CreateDirectories(folder + name));
  for (int i = 0; i < 1150; ++i) {
    const std::string name = absl::StrCat(folder, i < 40 ? "/a/" : i < 150 ? "/b/" : "/c/", 1000 + i, ".png");
    std::ofstream(name) << (i < 40 || i >= 150 ? png : "no image");
  }
  config_.SetPath("DATA.TEST.DATA_SOURCES", ConfigNode::FromStrings({"disk_folder"}));
  config_.SetPath("DATA.TEST.DATA_PATHS", ConfigNode::FromStrings({folder}));
  config_.SetPath("DATA.TEST.DATA_LIMIT", ConfigNode::FromInt(-1));
  config_.SetPath("DATA.TEST.IMAGE_CHANNELS", ConfigNode::FromInt(3));
  const auto read = [&](bool as_phase) -> absl::Status {
    const BuildContext context{config_, registries_, *communicator_};
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                         as_phase ? MakePhaseSource(*config_.FindPath("DATA.TEST"), context)
                                  : MakeSplitEvaluationSource("TEST", -1, context));
    SSL_RETURN_IF_ERROR(source->StartEpoch(0, 0));
    for (;;) {
      SSL_ASSIGN_OR_RETURN(const Batch* batch, source->Next());
      if (batch == nullptr) return absl::OkStatus();
    }
  };
  for (const bool as_phase : {false, true}) {
    config_.SetPath("DATA.TEST.MAX_BROKEN_FRACTION", ConfigNode::FromDouble(0.1));
    EXPECT_OK(read(as_phase));
    config_.SetPath("DATA.TEST.MAX_BROKEN_FRACTION", ConfigNode::FromDouble(0.09));
    EXPECT_THAT(read(as_phase), StatusIs(absl::StatusCode::kDataLoss,
                                         HasSubstr("MAX_BROKEN_FRACTION allows a share of 0.09 of the first 1150; ")));
  }
}

TEST_F(EvaluationSourceTest, Message_NamesTheSplit) {
  config_.SetPath("DATA.TRAIN.HOLD_OUT_FRACTION", ConfigNode::FromDouble(0.5));
  config_.SetPath("DATA.TRAIN.SPLIT", ConfigNode::FromString("test"));
  config_.SetPath("DATA.TRAIN.DATA_LIMIT", ConfigNode::FromInt(1));
  EXPECT_THAT(MakeSplitEvaluationSource("TRAIN", -1, {config_, registries_, *communicator_}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.DATA.TRAIN.HOLD_OUT_FRACTION is 0.5")));
}

TEST_F(EvaluationSourceTest, TrainingData_HaveTheTestTransformsAndTheirOwnClasses) {
  const std::unique_ptr<BatchSource> source = Make("TRAIN", -1);
  EXPECT_EQ(source->dataset_size(), 60);
  ASSERT_OK_AND_ASSIGN(const Batch* batch, source->Next());
  ASSERT_EQ(batch->views.size(), 1u);
  EXPECT_EQ(batch->views[0].sizes(), at::IntArrayRef({16, 1, 12, 12}));
  EXPECT_LT(batch->targets.max().item<int64_t>(), 4) << "classes, not the indices that LABEL_TYPE asks for";
  EXPECT_EQ(batch->indices[15].item<int64_t>(), 15);
}

TEST_F(EvaluationSourceTest, MostSamples_AreDrawnFromTheWholeSplit) {
  const std::unique_ptr<BatchSource> source = Make("TRAIN", 16);
  EXPECT_EQ(source->dataset_size(), 16);
  EXPECT_EQ(source->batches_per_epoch(), 1);
  ASSERT_OK_AND_ASSIGN(const Batch* drawn, source->Next());
  std::set<int64_t> classes;
  for (int64_t i = 0; i < 16; ++i) classes.insert(drawn->targets[i].item<int64_t>());
  EXPECT_EQ(classes.size(), 4u);
  const at::Tensor images = drawn->views[0].clone();

  const std::unique_ptr<BatchSource> again = Make("TRAIN", 16);
  ASSERT_OK_AND_ASSIGN(const Batch* same, again->Next());
  EXPECT_TRUE(images.equal(same->views[0])) << "the same samples each time";
  const std::unique_ptr<BatchSource> all = Make("TRAIN", -1);
  ASSERT_OK_AND_ASSIGN(const Batch* first, all->Next());
  EXPECT_FALSE(images.equal(first->views[0])) << "not the first ones, which may be of one class";
}

TEST_F(EvaluationSourceTest, SmallSplit_IsTakenWhole) {
  EXPECT_EQ(Make("TEST", 20)->dataset_size(), 20);
  EXPECT_EQ(Make("TEST", 5000)->dataset_size(), 20);
}

}  // namespace
}  // namespace ssl
