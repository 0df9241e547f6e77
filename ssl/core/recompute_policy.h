// SPDX-License-Identifier: Apache-2.0
//
// Who decides, step by step, which blocks of a model keep their activations and which are run again in backward, and
// sees what both cost. A hook is one; Model::SetRecomputePolicy gives it the word.
#ifndef SSL_CORE_RECOMPUTE_POLICY_H_
#define SSL_CORE_RECOMPUTE_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ssl {

// Neighbouring blocks [begin, end) of a model's chain (Model::block_names).
struct BlockRange {
  size_t begin = 0;
  size_t end = 0;
};

// Sees the runs of one pass, in the thread that makes them. Ranges are the recomputed ones of the pass's plan and, as
// one each, the blocks between them.
class RecomputeObserver {
 public:
  virtual ~RecomputeObserver() = default;
  // again: for the second time, in backward.
  virtual void BeforeRun(BlockRange range, bool again) = 0;
  virtual void AfterRun(BlockRange range, bool again) = 0;
  // The gradients of a range that was run again are there, and its activations are gone.
  virtual void AfterGradients(BlockRange range) = 0;
};

// Of one pass.
struct RecomputePlan {
  std::vector<BlockRange> recomputed = {};  // ordered and disjoint
  std::shared_ptr<RecomputeObserver> observer = nullptr;
};

// Images that go through the blocks together: a batch of views of one resolution.
struct PassShape {
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;

  int64_t pixels() const { return images * height * width; }
};

class RecomputePolicy {
 public:
  virtual ~RecomputePolicy() = default;
  // Before a forward pass that trains, with all passes that it makes, in their order. A plan for each.
  virtual std::vector<RecomputePlan> Plan(const std::vector<PassShape>& passes) = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_RECOMPUTE_POLICY_H_
