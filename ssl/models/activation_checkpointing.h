// SPDX-License-Identifier: Apache-2.0
//
// MODEL.ACTIVATION_CHECKPOINTING: which blocks of the trunk keep their activations, and which are run again in backward
// (ssl/models/recompute.h).
#ifndef SSL_MODELS_ACTIVATION_CHECKPOINTING_H_
#define SSL_MODELS_ACTIVATION_CHECKPOINTING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/models/trunk.h"

namespace ssl {

struct ActivationCheckpointingSection : public Options {
  bool enabled = false;
  int64_t splits = 2;

  void VisitFields(FieldVisitor& visitor) override;
};

// The parts that are recomputed when a chain of `num_blocks` blocks is cut into `splits` parts of num_blocks / splits
// blocks each, as torch.utils.checkpoint.checkpoint_sequential cuts it: all but the last, which takes what is left and
// keeps its activations, since its second pass would follow the first one at once. More splits than blocks are as many
// as blocks.
std::vector<BlockRange> SplitBlocks(size_t num_blocks, int64_t splits);

// An empty plan when the section is off. Unimplemented when it is on and the trunk is no chain of blocks.
absl::StatusOr<RecomputePlan> PlanActivationCheckpointing(const ActivationCheckpointingSection& section,
                                                          const Trunk& trunk);

}  // namespace ssl

#endif  // SSL_MODELS_ACTIVATION_CHECKPOINTING_H_
