// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/activation_checkpointing.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::vector<std::pair<size_t, size_t>> Parts(size_t blocks, int64_t splits) {
  std::vector<std::pair<size_t, size_t>> parts;
  for (const BlockRange& part : SplitBlocks(blocks, splits)) parts.emplace_back(part.begin, part.end);
  return parts;
}

TEST(SplitBlocksTest, AllButTheLastPartAreRecomputed) {
  using Expected = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(Parts(18, 1), Expected());
  EXPECT_EQ(Parts(18, 2), (Expected{{0, 9}}));
  EXPECT_EQ(Parts(18, 4), (Expected{{0, 4}, {4, 8}, {8, 12}})) << "the rest goes to the last";
  EXPECT_EQ(Parts(3, 3), (Expected{{0, 1}, {1, 2}}));
  EXPECT_EQ(Parts(3, 50), (Expected{{0, 1}, {1, 2}}));
  EXPECT_EQ(Parts(0, 2), Expected());
}

// A host's own trunk without blocks.
class PlainTrunk : public Trunk {
 public:
  at::Tensor Forward(const at::Tensor& images) override { return images.flatten(1); }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>&) override {
    return {images.flatten(1)};
  }
  std::vector<std::string> feature_names() const override { return {"flat"}; }
  int64_t output_dim() const override { return 12; }
  ModelTensors Tensors() const override { return {}; }
  void SetTraining(bool) override {}
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>&) override {}
};

TEST(PlanActivationCheckpointingTest, TrunkWithoutBlocksIsRefused) {
  const PlainTrunk trunk;
  ActivationCheckpointingSection section;
  EXPECT_OK(PlanActivationCheckpointing(section, trunk).status());
  section.enabled = true;
  EXPECT_THAT(PlanActivationCheckpointing(section, trunk).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("no chain of blocks")));
}

}  // namespace
}  // namespace ssl
