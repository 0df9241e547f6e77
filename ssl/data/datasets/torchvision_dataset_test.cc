// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/torchvision_dataset.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/testing/idx_files.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Builds the data set of DATA.TRAIN, with `folders` as Registries::dataset_folders.
absl::StatusOr<std::unique_ptr<Dataset>> Make(const std::string& split,
                                              std::map<std::string, std::string> folders = {}) {
  const ConfigNode config = ParseYaml(absl::StrCat("DATA:\n  TRAIN:\n", split), "run.yaml", nullptr).value();
  Registries registries;
  registries.dataset_folders = std::move(folders);
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  return MakeTorchvisionDataset(*config.FindPath("DATA.TRAIN"), {config, registries, *communicator});
}

TEST(TorchvisionDataset, Folder_ComesFromDataPathsOrTheRegistries) {
  const std::string folder = MakeIdxFolder();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> by_path,
                       Make(absl::StrCat("    DATASET_NAMES: [MNIST]\n    DATA_PATHS: [", folder, "]\n")));
  EXPECT_EQ(by_path->size(), 3);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> by_name,
                       Make("    DATASET_NAMES: [fashion_mnist]\n    SPLIT: test\n", {{"fashion_mnist", folder}}));
  EXPECT_EQ(by_name->size(), 2);
}

TEST(TorchvisionDataset, NoFolder_SaysWhatToSet) {
  EXPECT_THAT(
      Make("    DATASET_NAMES: [mnist]\n    DATA_PATHS: []\n"),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("run.yaml:4: config.DATA.TRAIN.DATA_PATHS is empty"),
                                                         HasSubstr("DATASET_NAMES [mnist]; set DATA_PATHS"))));
}

TEST(TorchvisionDataset, UnknownName_IsRefusedWithTheNearest) {
  EXPECT_THAT(Make("    DATASET_NAMES: [fasion_mnist]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("run.yaml:3: config.DATA.TRAIN.DATASET_NAMES is [fasion_mnist]"),
                             HasSubstr("did you mean 'fashion_mnist'?"))));
}

}  // namespace
}  // namespace ssl
