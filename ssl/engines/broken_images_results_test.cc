// SPDX-License-Identifier: Apache-2.0
//
// What evaluations tell of images that could not be read: the same, whichever engine and however many ranks read them.
#include "ssl/engines/broken_images_results.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/image.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

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

  // The results of rank 0.
  ConfigNode RunOnRanks(const std::string& name, int64_t ranks) {
    std::vector<ConfigNode> results(ranks, ConfigNode::Map());
    EXPECT_OK(ThreadWorld(ranks, absl::Seconds(60)).Run([&](Communicator& communicator) {
      EngineContext context = {
          config_, registries_, communicator, *stop_, *file_system_, directory_, results[communicator.rank()]};
      absl::StatusOr<std::unique_ptr<Engine>> engine =
          registries_.engines.Make(name, config_, MakeBuildContext(context, /*seed=*/3));
      return engine.ok() ? (*engine)->Run(context).status() : engine.status();
    }));
    return results[0];
  }

  ConfigNode NeighborsFile() const { return ReadResults(directory_ + "/neighbors.json", PosixFileSystem()).value(); }
};

TEST_F(BrokenImagesResultsTest, AreCountedByKind_OnAnyNumberOfRanks) {
  for (const char* split : {"TRAIN", "TEST"}) Set(absl::StrCat("DATA.", split, ".DATA_SOURCES"), "[broken]");
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

}  // namespace
}  // namespace ssl
