// SPDX-License-Identifier: Apache-2.0
//
// What evaluations tell of images that could not be read, and that they do without them: the same, whichever engine and
// however many ranks read them.
#include "ssl/engines/broken_images_results.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/image.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEngines[] = {"knn", "linear_eval", "extract_features", "neighbors"};

// As many images of four classes as DATA_LIMIT says. Every tenth cannot be read: empty, then damaged, then empty.
class BrokenInTurn : public Dataset {
 public:
  explicit BrokenInTurn(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  bool has_labels() const override { return true; }
  std::string description() const override { return "broken in turn"; }
  int64_t Label(int64_t index) const override { return index % 4; }
  absl::Status Get(int64_t index, Sample* sample) const override {
    std::fill_n(sample->view(0).image.Allocate(8, 8, 1), 64, static_cast<uint8_t>(4 * index));
    sample->label = Label(index);
    if (index % 10 == 0) sample->fault = index % 20 == 0 ? ReadFault::kEmpty : ReadFault::kDamaged;
    return absl::OkStatus();
  }

 private:
  const int64_t size_;
};

class BrokenImagesResultsTest : public MatrixRun {
 protected:
  void SetUp() override {
    MatrixRun::SetUp();
    ASSERT_OK(registries_.datasets.Register("broken", [](const ConfigNode& split, const BuildContext&) {
      const int64_t size = split.Find("DATA_LIMIT")->AsInt().value();
      return absl::StatusOr<std::unique_ptr<Dataset>>(std::make_unique<BrokenInTurn>(size));
    }));
    Set("NEIGHBORS", "{NUM_QUERIES: 4, TOPK: 3, IMAGE_SIDE: 24, LAYERS: [all], BASELINES: [untrained]}");
    Set("EXTRACT_FEATURES.LAYERS", "[all]");
    SaveRandomCheckpoint();
  }

  void BreakSomeImages() {
    for (const char* split : {"TRAIN", "TEST"}) Set(absl::StrCat("DATA.", split, ".DATA_SOURCES"), "[broken]");
  }

  // The results of rank 0, whose table is summary_.
  ConfigNode RunOnRanks(const std::string& name, int64_t ranks) {
    std::vector<ConfigNode> results(ranks, ConfigNode::Map());
    EXPECT_OK(ThreadWorld(ranks, absl::Seconds(60)).Run([&](Communicator& communicator) {
      EngineContext context = {
          config_, registries_, communicator, *stop_, *file_system_, directory_, results[communicator.rank()]};
      absl::StatusOr<std::unique_ptr<Engine>> engine =
          registries_.engines.Make(name, config_, MakeBuildContext(context, /*seed=*/3));
      absl::StatusOr<EngineReport> report = engine.ok() ? (*engine)->Run(context) : engine.status();
      if (report.ok() && communicator.rank() == 0) summary_ = report->summary;
      return report.status();
    }));
    return results[0];
  }

  FeatureSet Extracted(const std::string& split) const {
    return LoadFeatures(directory_ + "/features", split, "all", PosixFileSystem()).value();
  }

  ConfigNode NeighborsFile() const { return ReadResults(directory_ + "/neighbors.json", PosixFileSystem()).value(); }

  std::string summary_;
};

TEST_F(BrokenImagesResultsTest, AreCountedByKind_OnAnyNumberOfRanks) {
  BreakSomeImages();
  const std::string others = R"("missing": 0, "not an image": 0, "too large": 0, "truncated": 0, )";
  const ConfigNode expected =
      ParseYaml(absl::StrCat(R"({"train": {"total": 6, "by_kind": {"damaged": 3, "empty": 3, )", others,
                             R"("unreadable": 0, "unsupported": 0}}, "test": {"total": 2, "by_kind": {"damaged": 1, )",
                             R"("empty": 1, )", others, R"("unreadable": 0, "unsupported": 0}}})"),
                "expected", nullptr)
          .value();
  for (const char* engine : kEngines) {
    for (const int64_t ranks : {1, 2}) {
      const ConfigNode results = RunOnRanks(engine, ranks);
      const ConfigNode* broken = results.FindPath(absl::StrCat(engine, ".broken_images"));
      ASSERT_NE(broken, nullptr) << engine << " on " << ranks;
      EXPECT_EQ(ToJson(*broken), ToJson(expected)) << engine << " on " << ranks;
    }
  }
  EXPECT_EQ(ToJson(*NeighborsFile().Find("broken_images")), ToJson(expected));
}

TEST_F(BrokenImagesResultsTest, AreNoneWhereAllCouldBeRead) {
  for (const char* engine : kEngines) {
    const ConfigNode results = RunOnRanks(engine, 1);
    const ConfigNode* broken = results.FindPath(absl::StrCat(engine, ".broken_images"));
    ASSERT_NE(broken, nullptr) << engine;
    EXPECT_EQ(ToJson(*broken), ToJson(ConfigNode::Map())) << engine;
  }
  EXPECT_EQ(ToJson(*NeighborsFile().Find("broken_images")), ToJson(ConfigNode::Map()));
}

TEST_F(BrokenImagesResultsTest, SheetsShowNone) {
  BreakSomeImages();
  Set("NEIGHBORS.TOPK", "60");
  for (const int64_t ranks : {1, 2}) {
    RunOnRanks("neighbors", ranks);
    const ConfigNode written = NeighborsFile();
    for (const char* network : {"untrained", "trained"}) {
      ASSERT_EQ(written.Find(network)->items().size(), 4u);
      for (const ConfigNode& query : written.Find(network)->items()) {
        // Broken are "image 0", "image 10", ...
        EXPECT_NE(query.Find("query")->text().back(), '0') << ranks;
        EXPECT_EQ(query.Find("neighbors")->items().size(), 54u);
        for (const ConfigNode& neighbor : query.Find("neighbors")->items()) {
          EXPECT_NE(neighbor.Find("image")->text().back(), '0') << ranks;
        }
      }
    }
    EXPECT_THAT(summary_, HasSubstr("left out, as they cannot be read: 6 images of train, 2 images of test\n"));
  }
}

TEST_F(BrokenImagesResultsTest, KnnPredictsNone) {
  BreakSomeImages();
  Set("NEAREST_NEIGHBOR.SAVE_PREDICTIONS", "True");
  for (const int64_t ranks : {1, 2}) {
    RunOnRanks("knn", ranks);
    EXPECT_THAT(summary_, AllOf(HasSubstr(", 18 test images)\n"),
                                HasSubstr("left out, as they cannot be read: 6 images of train, 2 images of test\n")));
    ASSERT_OK_AND_ASSIGN(const NpyArray file,
                         ReadNpy(PosixFileSystem(), directory_ + "/kNN_all_output_image_indices.npy"));
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> indices, NpyInts(file));
    EXPECT_EQ(indices.size(), 18u);
    for (const int64_t index : indices) EXPECT_NE(index % 10, 0) << ranks;
  }
}

TEST_F(BrokenImagesResultsTest, LinearEval_TrainsOnNone) {
  BreakSomeImages();
  RunOnRanks("linear_eval", 1);
  EXPECT_THAT(summary_, AllOf(HasSubstr(", 54 training and 18 test images)\n"), HasSubstr("6 images of train")));
}

TEST_F(BrokenImagesResultsTest, ExtractedFeatures_KeepTheirRows_AndAListNamesThem) {
  BreakSomeImages();
  for (const int64_t ranks : {1, 2}) {
    RunOnRanks("extract_features", ranks);
    EXPECT_EQ(PosixFileSystem().Read(directory_ + "/features/test_broken.json").value(),
              "[\n {\"index\": 0, \"kind\": \"empty\"},\n {\"index\": 10, \"kind\": \"damaged\"}\n]\n")
        << ranks;
    EXPECT_EQ(Extracted("train").indices.size(0), 54) << ranks;
    EXPECT_EQ(Extracted("test").indices.size(0), 18) << ranks;
  }
  EXPECT_THAT(
      summary_,
      HasSubstr("cannot be read: 6 images of train, 2 images of test; their rows are of what stands in for them: "
                "<split>_broken.json names them\n"));
  RunOnRanks("extract_features", 1);
  ASSERT_OK_AND_ASSIGN(const NpyArray rows,
                       ReadNpy(PosixFileSystem(), directory_ + "/features/rank0_chunk0_test_all_features.npy"));
  EXPECT_EQ(rows.shape[0], 20);
}

TEST_F(BrokenImagesResultsTest, EvaluationsOfFiles_AreThoseOfTheImages) {
  BreakSomeImages();
  for (const char* section : {"NEAREST_NEIGHBOR", "LINEAR_EVAL"}) Set(absl::StrCat(section, ".BASELINES"), "[]");
  RunOnRanks("extract_features", 1);
  const std::pair<const char*, const char*> kOfFiles[] = {{"knn", "NEAREST_NEIGHBOR"}, {"linear_eval", "LINEAR_EVAL"}};
  for (const auto& [engine, section] : kOfFiles) {
    const ConfigNode of_images = RunOnRanks(engine, 1);
    const std::string table = summary_;
    Set(absl::StrCat(section, ".FEATURES.PATH"), directory_ + "/features");
    const ConfigNode of_files = RunOnRanks(engine, 1);
    EXPECT_EQ(summary_, table);
    for (const char* key : {"trained", "broken_images"}) {
      EXPECT_EQ(ToJson(*of_files.FindPath(absl::StrCat(engine, ".", key))),
                ToJson(*of_images.FindPath(absl::StrCat(engine, ".", key))))
          << engine;
    }
  }
}

TEST_F(BrokenImagesResultsTest, NoneThatCanBeRead_IsAnError) {
  Set("DATA.TRAIN.DATA_LIMIT", "1");  // image 0 of each split
  Set("DATA.TEST.DATA_LIMIT", "1");
  Set("NEAREST_NEIGHBOR.TOPK", "1");
  BreakSomeImages();
  for (const char* engine : {"knn", "neighbors"}) {
    EXPECT_THAT(Run(engine).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("none of the 1 images can be read")))
        << engine;
  }
}

TEST_F(BrokenImagesResultsTest, WithoutAny_TheListIsEmpty_AndTablesSayNothing) {
  for (const char* engine : kEngines) {
    RunOnRanks(engine, 1);
    EXPECT_THAT(summary_, Not(HasSubstr("cannot be read"))) << engine;
  }
  EXPECT_EQ(PosixFileSystem().Read(directory_ + "/features/train_broken.json").value(), "[\n]\n");
}

}  // namespace
}  // namespace ssl
