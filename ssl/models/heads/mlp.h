// SPDX-License-Identifier: Apache-2.0
//
// Multi-layer perceptrons: projection heads and linear classifiers. Arguments, names of the parameters and their order
// are VISSL's.
//
//   mlp       [N, dims[0]] -> linear, batch norm, ReLU, dropout ... -> [N, dims.back()]; "clf.<k>."
//   mlp_res   the same, each linear layer with what follows it being a block; where a block keeps the width, its input
//             is added to its output, twice (once by VISSL's block, once by its head); "clf.<i>.mlp_res_block.<k>."
//   eval_mlp  [N, in_channels, h, w] -> batch norm of the channels -> flattened, [N, dims[0]] -> mlp or mlp_res;
//             "channel_bn." and "clf.clf.<k>."
#ifndef SSL_MODELS_HEADS_MLP_H_
#define SSL_MODELS_HEADS_MLP_H_

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

// Arguments of mlp and mlp_res.
struct MlpOptions : public Options {
  std::vector<int64_t> dims;
  bool use_bn = false;
  bool use_relu = false;
  bool use_dropout = false;
  bool use_bias = true;
  bool skip_last_layer_relu_bn = true;

  void VisitFields(FieldVisitor& visitor) override;
};

// Arguments of eval_mlp.
struct EvalMlpOptions : public Options {
  int64_t in_channels = 0;
  std::vector<int64_t> dims;
  bool use_bn = false;
  bool use_relu = false;
  bool use_residual = false;

  void VisitFields(FieldVisitor& visitor) override;
};

// Features may be maps: they are flattened. InvalidArgument for fewer than two widths.
absl::StatusOr<std::unique_ptr<Head>> MakeMlp(const MlpOptions& options, const HeadSection& section, int64_t seed);
absl::StatusOr<std::unique_ptr<Head>> MakeResidualMlp(const MlpOptions& options, const HeadSection& section,
                                                      int64_t seed);

// Features may be [N, in_channels], too. InvalidArgument for fewer than two widths, or without in_channels.
absl::StatusOr<std::unique_ptr<Head>> MakeEvalMlp(const EvalMlpOptions& options, const HeadSection& section,
                                                  int64_t seed);

// Adds the heads "mlp", "mlp_res" and "eval_mlp"; the first and the last with "_fsdp" behind their names, too.
absl::Status RegisterMlp(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_HEADS_MLP_H_
