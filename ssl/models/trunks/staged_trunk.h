// SPDX-License-Identifier: Apache-2.0
//
// A trunk whose blocks form stages, each stage a named feature, with an average over the last one's pixels at the end.
#ifndef SSL_MODELS_TRUNKS_STAGED_TRUNK_H_
#define SSL_MODELS_TRUNKS_STAGED_TRUNK_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "ssl/models/trunks/block_chain.h"

namespace ssl {

// A stage and how many blocks it has.
struct Stage {
  std::string name;
  size_t num_blocks = 1;
};

class StagedTrunk : public BlockChain {
 public:
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) override;
  std::vector<std::string> feature_names() const override { return names_; }
  std::vector<std::string> block_names() const override;
  size_t num_blocks() const override { return ends_.back(); }
  at::Tensor PoolOutput(const at::Tensor& last) const override;

 protected:
  // stages: at least one, in the order of the network. pooled: the name of the average; "flatten" is another.
  StagedTrunk(const std::vector<Stage>& stages, const std::string& pooled);

 private:
  std::vector<std::string> names_;  // the pooled ones come last
  std::vector<size_t> ends_;        // of each stage: the block behind its last
};

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_STAGED_TRUNK_H_
