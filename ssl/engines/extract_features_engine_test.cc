// SPDX-License-Identifier: Apache-2.0
//
// Which row of the extracted features is which image of a folder.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/surrogate_escape.h"
#include "ssl/core/session.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr int kClasses = 3;
constexpr int kImagesOfEach = 7;

// The network adds up the grey levels of a plain image, so that its features tell its level.
class ExtractFeaturesEngineTest : public MatrixRun {
 protected:
  void SetUp() override {
    MatrixRun::SetUp();
    for (int i = 0; i < kClasses * kImagesOfEach; ++i) {
      Image image;
      std::fill_n(image.Allocate(8, 8, 1), 64, Level(i));
      // A name that is no UTF-8 among them.
      Write(absl::StrCat("photos/class", i / kImagesOfEach, "/", i, i == 5 ? "\xFF" : "", ".png"),
            EncodePng(image).value());
    }
    Set("DATA.TRAIN.DATA_SOURCES", "[disk_folder]");
    Set("DATA.TRAIN.DATA_PATHS", absl::StrCat("[", directory_, "/photos]"));
    Set("DATA.TRAIN.DATA_LIMIT", "-1");
    Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "4");
    Set("DATA.TRAIN.TRANSFORMS", "[{name: Grayscale}, {name: ToTensor}, {name: Normalize, mean: [0.5], std: [0.25]}]");
    Set("DATA.TEST", "{SPLIT: test, TRANSFORMS: []}");
    ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
    SaveCheckpoint(1.0);
  }

  static uint8_t Level(int image) { return static_cast<uint8_t>(10 * image); }

  void Write(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(directory_, "/", name);
    ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
  }

  absl::Status RunOnRanks(int64_t ranks) {
    return ThreadWorld(ranks, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
      ConfigNode results = ConfigNode::Map();
      EngineContext context{config_, registries_, communicator, *stop_, *file_system_, directory_, results};
      SSL_ASSIGN_OR_RETURN(const auto engine, registries_.engines.Make("extract_features", config_,
                                                                       MakeBuildContext(context, /*seed=*/3)));
      return engine->Run(context).status();
    });
  }

  std::vector<std::string> FileNames(const std::string& split) {
    const std::string text =
        PosixFileSystem().Read(absl::StrCat(directory_, "/features/", split, "_files.json")).value();
    auto names = nlohmann::json::parse(MarkEscapes(text)).get<std::vector<std::string>>();
    for (std::string& name : names) name = UnmarkBytes(name);
    return names;
  }
};

TEST_F(ExtractFeaturesEngineTest, EveryRow_IsOfTheFileThatItsIndexNames) {
  for (const int64_t ranks : {1, 2, 3}) {
    ASSERT_OK(RunOnRanks(ranks));
    std::set<std::string> seen;
    for (const char* split : {"train", "test"}) {
      const std::vector<std::string> names = FileNames(split);
      ASSERT_OK_AND_ASSIGN(const FeatureSet set,
                           LoadFeatures(directory_ + "/features", split, "all", PosixFileSystem()));
      ASSERT_EQ(set.indices.size(0), static_cast<int64_t>(names.size()));
      for (int64_t row = 0; row < set.indices.size(0); ++row) {
        const std::string& name = names[set.indices[row].item<int64_t>()];
        const double level = (set.features[0][row][0].item<double>() / 64 * 0.25 + 0.5) * 255;
        const auto image = std::llround(level / 10);
        const std::string file = image == 5 ? "5\xFF.png" : absl::StrCat(image, ".png");
        EXPECT_THAT(name, HasSubstr(absl::StrCat("/photos/class", image / kImagesOfEach, "/", file))) << split << row;
        seen.insert(name);
      }
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(kClasses * kImagesOfEach)) << ranks;
  }
}

TEST_F(ExtractFeaturesEngineTest, ImagesWithoutFiles_HaveNoList) {
  Set("DATA.TRAIN.DATA_SOURCES", "[synthetic]");
  Set("DATA.TRAIN.DATA_PATHS", "[]");
  Set("DATA.TRAIN.DATA_LIMIT", "20");
  ASSERT_OK(RunOnRanks(1));
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/features/train_files.json"));
}

}  // namespace
}  // namespace ssl
