// SPDX-License-Identifier: Apache-2.0
//
// Fashion-MNIST itself, from the files to batches.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/data/loader/data_source_builder.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr char kRun[] = R"(
DATA:
  NUM_DATALOADER_WORKERS: 1
  TRAIN: {DATA_SOURCES: [torchvision_dataset], DATASET_NAMES: [fashion_mnist]}
  TEST:
    DATA_SOURCES: [torchvision_dataset]
    DATASET_NAMES: [fashion_mnist]
    IMAGE_CHANNELS: 1
    BATCHSIZE_PER_REPLICA: 1000
    TRANSFORMS: [{name: ToTensor}]
)";

struct Totals {
  std::vector<int64_t> samples_per_class = std::vector<int64_t>(10, 0);
  std::vector<int64_t> first_labels;
  double mean = 0.0;
  double deviation = 0.0;
};

absl::StatusOr<Totals> Measure(BatchSource& source) {
  Totals totals;
  double sum = 0.0;
  double square = 0.0;
  int64_t pixels = 0;
  absl::Status status = source.StartEpoch(0, 0);
  if (!status.ok()) return status;
  while (true) {
    absl::StatusOr<const Batch*> batch = source.Next();
    if (!batch.ok()) return batch.status();
    if (*batch == nullptr) break;
    const float* values = (*batch)->views[0].const_data_ptr<float>();
    for (int64_t i = 0; i < (*batch)->views[0].numel(); ++i, ++pixels) {
      sum += values[i];
      square += values[i] * values[i];
    }
    for (int64_t i = 0; i < (*batch)->size(); ++i) {
      const int64_t label = (*batch)->targets[i].item<int64_t>();
      ++totals.samples_per_class.at(label);
      if (totals.first_labels.size() < 5) totals.first_labels.push_back(label);
    }
  }
  totals.mean = sum / pixels;
  totals.deviation = std::sqrt(square / pixels - totals.mean * totals.mean);
  return totals;
}

absl::StatusOr<Totals> MeasureSplit(const std::string& split) {
  Registries registries;
  EXPECT_OK(RegisterData(&registries));
  registries.dataset_folders["fashion_mnist"] =
      absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                   "/external/fashion_mnist/usr/share/datasets/fashion-mnist");
  ConfigNode config = registries.options.Defaults();
  MergeInto(&config, ParseYaml(kRun, "run.yaml", nullptr).value());
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  absl::StatusOr<std::unique_ptr<BatchSource>> source =
      MakeEvaluationSource(*config.FindPath(absl::StrCat("DATA.", split)), *config.FindPath("DATA.TEST"),
                           {config, registries, *communicator});
  if (!source.ok()) return source.status();
  return Measure(**source);
}

TEST(FashionMnist, TrainSplit_HasThePublishedCountsAndMoments) {
  ASSERT_OK_AND_ASSIGN(const Totals totals, MeasureSplit("TRAIN"));

  EXPECT_EQ(totals.samples_per_class, std::vector<int64_t>(10, 6000));
  EXPECT_EQ(totals.first_labels, (std::vector<int64_t>{9, 0, 0, 3, 0}));
  EXPECT_NEAR(totals.mean, 0.2860, 5e-5);
  EXPECT_NEAR(totals.deviation, 0.3530, 5e-5);
}

TEST(FashionMnist, TestSplit_HasThePublishedCounts) {
  ASSERT_OK_AND_ASSIGN(const Totals totals, MeasureSplit("TEST"));

  EXPECT_EQ(totals.samples_per_class, std::vector<int64_t>(10, 1000));
  EXPECT_EQ(totals.first_labels, (std::vector<int64_t>{9, 2, 1, 1, 6}));
}

}  // namespace
}  // namespace ssl
