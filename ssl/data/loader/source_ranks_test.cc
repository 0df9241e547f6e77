// SPDX-License-Identifier: Apache-2.0
//
// What the number of ranks changes about a source: which share of broken images ends it, and what memory it may take.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/available_memory.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/loader/data_source_builder.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

using MakeSource = absl::StatusOr<std::unique_ptr<BatchSource>> (*)(const BuildContext& context);

constexpr std::pair<const char*, MakeSource> kSources[] = {
    {"training",
     [](const BuildContext& context) { return MakeTrainingSource(context.config.Section("DATA.TRAIN"), context); }},
    {"test", [](const BuildContext& context) { return MakeTestSource(context.config.Section("DATA.TEST"), context); }},
    {"evaluation", [](const BuildContext& context) {
       const ConfigNode& test = context.config.Section("DATA.TEST");
       return MakeEvaluationSource(test, test, context);
     }}};

class SourceRanksTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterData(&registries_)); }

  // A folder of 40 small images is TRAIN and TEST. Those whose number is in `broken` cannot be read.
  void UseImages(const std::set<int64_t>& broken) {
    const std::string folder = MakeTempDir("images");
    ASSERT_OK(PosixFileSystem().CreateDirectories(folder + "/a"));
    Image image;
    std::fill_n(image.Allocate(12, 12, 1), 144, uint8_t{7});
    ASSERT_OK_AND_ASSIGN(const std::string intact, EncodePng(image));
    for (int64_t i = 0; i < 40; ++i) {
      ASSERT_OK(WriteFileAtomically(PosixFileSystem(), absl::StrFormat("%s/a/%02d.png", folder, i),
                                    broken.count(i) > 0 ? "no image" : intact));
    }
    const std::string split =
        absl::StrCat("{DATA_SOURCES: [disk_folder], DATA_PATHS: [", folder,
                     "], DEFAULT_GRAY_IMG_SIZE: 12, BATCHSIZE_PER_REPLICA: 5, TRANSFORMS: [{name: ToTensor}]}\n");
    const std::string run = absl::StrCat("DATA:\n  NUM_DATALOADER_WORKERS: 1\n  TRAIN: ", split, "  TEST: ", split);
    config_ = registries_.options.Defaults();
    MergeInto(&config_, ParseYaml(run, "run.yaml", nullptr).value());
  }

  // An epoch on each of `ranks`; the error of the lowest rank that has one.
  absl::Status ReadEpoch(int64_t ranks, MakeSource make) {
    return ThreadWorld(ranks, absl::Seconds(20)).Run([&](Communicator& communicator) -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                           make(BuildContext{config_, registries_, communicator, /*seed=*/4}));
      SSL_RETURN_IF_ERROR(source->StartEpoch(0, 0));
      while (true) {
        SSL_ASSIGN_OR_RETURN(const Batch* batch, source->Next());
        if (batch == nullptr) return absl::OkStatus();
      }
    });
  }

  Registries registries_;
  ConfigNode config_;
};

// 16 of 40, where 4 may be: of 4 ranks at least one meets 4 of them, where chance may give it 3.
TEST_F(SourceRanksTest, TooManyBrokenImages_AreTooManyOnAnyNumberOfRanks) {
  UseImages({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  for (const auto& [name, make] : kSources) {
    for (const int64_t ranks : {1, 2, 4}) {
      EXPECT_THAT(ReadEpoch(ranks, make),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("MAX_BROKEN_FRACTION allows a share of 0.1")))
          << name << " on " << ranks;
    }
  }
}

// In order, the first of 2 or 4 ranks meets both: of 10 images alone, two would be too many.
TEST_F(SourceRanksTest, TwoBrokenImages_AreNotTooManyForOneOfSeveralRanks) {
  UseImages({0, 4});
  for (const auto& [name, make] : kSources) {
    for (const int64_t ranks : {1, 2, 4}) EXPECT_OK(ReadEpoch(ranks, make)) << name << " on " << ranks;
  }
}

// Two of them fit into the memory that is free no more.
TEST_F(SourceRanksTest, CachesOfAllRanksOfAHost_ShareItsMemory) {
  const struct {
    const char* said;  // "": they fit
    int64_t nodes, processes, virtual_ranks;
  } kWorlds[] = {{"", 1, 1, 0},
                 {" bytes for each of 2 ranks, fit into the ", 1, 2, 0},
                 {"", 2, 1, 0},
                 {" bytes for each of 2 ranks, fit into the ", 1, 1, 2},
                 {" bytes for each of 4 ranks, fit into the ", 1, 2, 4},
                 {" bytes for each of 2 ranks, fit into the ", 2, 1, 4},
                 {"", 2, 1, 2}};
  UseImages({});
  config_.SetPath("DATA.TEST.CACHE", ConfigNode::FromString("raw"));
  config_.SetPath("DATA.TEST.CACHE_BYTES", ConfigNode::FromInt(AvailableMemoryBytes() / 10 * 7));
  const std::unique_ptr<Communicator> local = MakeLocalCommunicator();
  for (const auto& world : kWorlds) {
    config_.SetPath("DISTRIBUTED.NUM_NODES", ConfigNode::FromInt(world.nodes));
    config_.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", ConfigNode::FromInt(world.processes));
    config_.SetPath("DISTRIBUTED.VIRTUAL_RANKS", ConfigNode::FromInt(world.virtual_ranks));
    const absl::Status status = MakeTestSource(config_.Section("DATA.TEST"), {config_, registries_, *local}).status();
    EXPECT_EQ(status.code(), *world.said == 0 ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument)
        << world.nodes << " hosts, " << world.processes << " processes, " << world.virtual_ranks << " virtual ranks";
    EXPECT_THAT(status.message(), HasSubstr(world.said));
  }
}

}  // namespace
}  // namespace ssl
