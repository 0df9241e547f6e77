// SPDX-License-Identifier: Apache-2.0
//
// A trunk with heads on it (VISSL's multi_input_output_model).
//
// Consecutive views of one resolution go through the trunk as one batch; the features of all views, view-major,
// then go through the heads once. One head, or several in a chain: each takes the first output of the one before,
// and the last one's outputs are the model's. State: "trunk.<name>", "heads.<i>.<name>".
//
//   SslModel model(std::move(trunk), std::move(heads), {});
//   std::vector<at::Tensor> outputs = model.Forward(batch.views);
#ifndef SSL_MODELS_SSL_MODEL_H_
#define SSL_MODELS_SSL_MODEL_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/model.h"
#include "ssl/models/head.h"
#include "ssl/models/model_tensor.h"
#include "ssl/models/trunk.h"

namespace ssl {

struct Registries;

struct SslModelOptions {
  // Runs the trunk once per view: batch statistics per view, less memory.
  bool single_pass_every_crop = false;
  // Swaps the first and the last channel of every view.
  bool bgr = false;
};

class SslModel : public Model {
 public:
  SslModel(std::unique_ptr<Trunk> trunk, std::vector<std::unique_ptr<Head>> heads, SslModelOptions options);

  // Without heads the outputs are the trunk's features, [V*B, D].
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override;
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override;
  std::vector<NamedParameter> Parameters() override;
  void SetTraining(bool training) override;
  void VisitState(StateVisitor& visitor) override;

  // Excludes parameters from training by their full names. NotFound names the unknown one and the nearest.
  absl::Status Freeze(const std::vector<std::string>& names);

 private:
  at::Tensor TrunkFeatures(const std::vector<at::Tensor>& views);

  std::unique_ptr<Trunk> trunk_;
  std::vector<std::unique_ptr<Head>> heads_;
  const SslModelOptions options_;
  const ModelTensors tensors_;  // with full names
};

// Adds the model "multi_input_output_model" and the sections MODEL, MODEL.AMP_PARAMS, MODEL.HEAD and MODEL.TRUNK.
absl::Status RegisterSslModel(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_SSL_MODEL_H_
