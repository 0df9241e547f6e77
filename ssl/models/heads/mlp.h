// SPDX-License-Identifier: Apache-2.0
//
// A multi-layer perceptron: projection heads and linear classifiers. Parameters are named clf.{k}, as VISSL's.
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

// Arguments of the head, VISSL's names.
struct MlpOptions : public Options {
  std::vector<int64_t> dims;
  bool use_bn = false;
  bool use_relu = false;
  bool use_dropout = false;
  bool use_bias = true;
  bool skip_last_layer_relu_bn = true;

  void VisitFields(FieldVisitor& visitor) override;
};

// The head takes [N, dims[0]] or [N, dims[0], 1, 1]. InvalidArgument for fewer than two widths.
absl::StatusOr<std::unique_ptr<Head>> MakeMlp(const MlpOptions& options, const HeadSection& section, int64_t seed);

// Adds the head "mlp".
absl::Status RegisterMlp(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_HEADS_MLP_H_
