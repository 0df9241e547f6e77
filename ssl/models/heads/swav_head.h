// SPDX-License-Identifier: Apache-2.0
//
// The head of SwAV (arXiv 2006.09882): an MLP, normalised to unit length, and its scores against prototypes.
//
//   features [N, dims[0]] -> projection_head -> embeddings e [N, dims.back()], |e| = 1
//   scores_j = e * prototypes_j^T, [N, num_clusters[j]]
//
// Forward returns [embeddings, scores_0, scores_1, ...]. Normalisation and scores are computed in float32 under
// autocast, too: scores are divided by epsilon = 0.05 before the exponential, which magnifies what bfloat16 rounds.
#ifndef SSL_MODELS_HEADS_SWAV_HEAD_H_
#define SSL_MODELS_HEADS_SWAV_HEAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/models/head.h"
#include "ssl/models/head_section.h"

namespace ssl {

struct Registries;

// Arguments of the head, VISSL's names.
struct SwavHeadOptions : public Options {
  std::vector<int64_t> dims;
  bool use_bn = false;
  std::vector<int64_t> num_clusters;
  bool use_bias = true;
  bool return_embeddings = true;
  bool skip_last_bn = true;
  bool normalize_feats = true;
  std::string activation_name = "ReLU";
  bool use_weight_norm_prototypes = false;
  bool normalize_last_layer = false;

  void VisitFields(FieldVisitor& visitor) override;
};

// InvalidArgument when the options contradict each other.
absl::StatusOr<std::unique_ptr<Head>> MakeSwavHead(const SwavHeadOptions& options, const HeadSection& section,
                                                   int64_t seed);

// Adds the head "swav_head", as "swav_head_fsdp", too.
absl::Status RegisterSwavHead(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_HEADS_SWAV_HEAD_H_
