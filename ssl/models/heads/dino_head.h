// SPDX-License-Identifier: Apache-2.0
//
// The head of DINO (arXiv 2104.14294, appendix C): an MLP with a narrow last layer, normalised to unit length, and its
// scores against prototypes with weight norm (arXiv 1602.07868).
//
//   features [N, in_dim] -> mlp -> bottleneck b [N, bottleneck_dim], |b| = 1
//   scores = b * w^T, [N, num_clusters[0]], w_k = g_k v_k / |v_k|
//
// Forward returns [scores]. As VISSL builds it: with normalize_last_layer g is 1 and does not train. Normalisation and
// scores are computed in float32 under autocast, too, as in swav_head.h.
#ifndef SSL_MODELS_HEADS_DINO_HEAD_H_
#define SSL_MODELS_HEADS_DINO_HEAD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/models/head.h"
#include "ssl/models/head_section.h"

namespace ssl {

struct Registries;

// Arguments of the head, VISSL's names and defaults.
struct DinoHeadOptions : public Options {
  int64_t in_dim = 0;
  std::vector<int64_t> num_clusters;
  bool use_bn = false;
  bool normalize_last_layer = true;
  int64_t num_layers = 3;
  int64_t hidden_dim = 2048;
  int64_t bottleneck_dim = 256;

  void VisitFields(FieldVisitor& visitor) override;
};

// InvalidArgument without a width of the input, or with another number of sets of prototypes than one.
absl::StatusOr<std::unique_ptr<Head>> MakeDinoHead(const DinoHeadOptions& options, const HeadSection& section,
                                                   int64_t seed);

// Adds the head "dino_head", as "dino_head_fsdp", too.
absl::Status RegisterDinoHead(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_HEADS_DINO_HEAD_H_
