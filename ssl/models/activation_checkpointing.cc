// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/activation_checkpointing.h"

#include <algorithm>
#include <cmath>

#include "ssl/base/log.h"

namespace ssl {
namespace {

// Of a chain of like blocks: the kept inputs and the activations of one part, n / splits of them, are fewest at the
// root of n (arXiv 1604.06174, section 4).
int64_t BestSplits(size_t num_blocks) { return std::llround(std::sqrt(static_cast<double>(num_blocks))); }

}  // namespace

void ActivationCheckpointingSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("USE_ACTIVATION_CHECKPOINTING", &enabled,
                Doc("Keeps the inputs of parts of the trunk alone, and runs the parts again in backward: less memory, "
                    "more time, and in float32 bitwise the same training.")
                    .MayChange());
  visitor.Field(
      "NUM_ACTIVATION_CHECKPOINTING_SPLITS", &splits,
      Doc("Parts that the trunk's blocks are cut into; all but the last are run again.").AtLeast(1).MayChange());
}

std::vector<BlockRange> SplitBlocks(size_t num_blocks, int64_t splits) {
  const size_t parts = std::min(num_blocks, static_cast<size_t>(splits));
  std::vector<BlockRange> recomputed;
  if (parts == 0) return recomputed;
  const size_t length = num_blocks / parts;
  for (size_t part = 0; part + 1 < parts; ++part) recomputed.push_back({part * length, (part + 1) * length});
  return recomputed;
}

absl::StatusOr<RecomputePlan> PlanActivationCheckpointing(const ActivationCheckpointingSection& section,
                                                          const Trunk& trunk) {
  RecomputePlan plan;
  if (!section.enabled) return plan;
  const size_t num_blocks = trunk.num_blocks();
  if (num_blocks == 0) {
    return absl::UnimplementedError(
        "config.MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING is true, expected false: this trunk is no "
        "chain of blocks (Trunk::num_blocks)");
  }
  SSL_LOG(INFO)
      << "activation checkpointing: the trunk's " << num_blocks << " blocks in " << section.splits << " parts; about "
      << BestSplits(num_blocks)
      << " (the root of the blocks) need the least memory when the blocks are alike, more when the first ones "
         "are the largest";
  plan.recomputed = SplitBlocks(num_blocks, section.splits);
  return plan;
}

}  // namespace ssl
