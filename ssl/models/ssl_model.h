// SPDX-License-Identifier: Apache-2.0
//
// A trunk with heads on it (VISSL's multi_input_output_model).
//
// Consecutive views of one resolution go through the trunk as one batch; the features of all views, view-major, then go
// through the heads once. As many heads as features: head i gets feature i, and the outputs are theirs, in the order of
// the heads. One feature and several heads: a chain, each takes the first output of the one before, and the last one's
// outputs are the model's. No head: the features are the outputs. State: "trunk.<name>", "heads.<i>.<name>".
//
// A frozen part keeps its parameters, always runs in evaluation mode, and a frozen trunk without a graph: linear
// evaluation needs the memory of one forward pass.
//
//   SslModel model(std::move(trunk), std::move(heads), {});
//   std::vector<at::Tensor> outputs = model.Forward(batch.views);
#ifndef SSL_MODELS_SSL_MODEL_H_
#define SSL_MODELS_SSL_MODEL_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/model.h"
#include "ssl/models/head.h"
#include "ssl/models/input_mapping.h"
#include "ssl/models/model_tensor.h"
#include "ssl/models/trunk.h"

namespace ssl {

class Communicator;

// What the trunk gets of the images' channels: all, all in reverse, or the first.
enum class InputChannelOrder { kRgb, kBgr, kLab };

// Neighbouring views [begin, end).
struct ViewRange {
  size_t begin = 0;
  size_t end = 0;
};

struct SslModelOptions {
  // Runs the trunk once per view: batch statistics per view, less memory.
  bool single_pass_every_crop = false;
  InputChannelOrder channels = InputChannelOrder::kRgb;
  bool freeze_trunk = false;
  bool freeze_heads = false;
  // Several features with one head each, in this order, when the trunk is frozen. Empty: the trunk's output.
  std::vector<FeatureRequest> features = {};
  // Not empty: the model takes named inputs instead of views.
  std::vector<MappedInput> inputs = {};
  // Of every pass that trains, unless a policy plans it.
  RecomputePlan recompute = {};
};

class SslModel : public Model {
 public:
  SslModel(std::unique_ptr<Trunk> trunk, std::vector<std::unique_ptr<Head>> heads, SslModelOptions options);
  ~SslModel() override;

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override;
  // The outputs of all mapped inputs that are there, in the order of the mapping. None there: c10::ValueError.
  std::vector<at::Tensor> ForwardNamed(const std::map<std::string, at::Tensor>& inputs) override;
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override;
  // c10::ValueError for a map that the outputs are not made of, as the class token's block is.
  MapAndOutputs ForwardWithMap(const at::Tensor& images, const std::string& stage) override;
  std::vector<std::string> feature_names() const override { return trunk_->feature_names(); }
  std::vector<FeatureRequest> configured_features() const override { return options_.features; }
  std::vector<NamedParameter> Parameters() override;
  void SetTraining(bool training) override;
  std::vector<std::string> block_names() const override { return trunk_->block_names(); }
  void SetRecomputePolicy(RecomputePolicy* policy) override;
  absl::Status ShardParameters(Communicator& communicator) override;
  ParameterShards* parameter_shards() override { return shards_.get(); }
  void VisitState(StateVisitor& visitor) override;

  // Batch norm in training takes its statistics over the ranks of `group` from now on: every rank then calls Forward in
  // the same order, with views of the same resolutions, and runs backward whenever another rank does. Outputs that a
  // rank's loss does not read get zeros as gradients there, so that no rank waits for another.
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group);

  // Excludes parameters from training by their full names. NotFound names the unknown one and the nearest.
  absl::Status Freeze(const std::vector<std::string>& names);

 private:
  at::Tensor TrunkInput(const at::Tensor& images) const;
  // The requested features of images that went through TrunkInput; without requests the trunk's output.
  std::vector<at::Tensor> RunTrunk(const at::Tensor& input, const std::vector<FeatureRequest>& requests);
  std::vector<at::Tensor> TrunkOutputs(const std::vector<at::Tensor>& views);
  // Neighbouring views that go through the trunk together.
  std::vector<ViewRange> Passes(const std::vector<at::Tensor>& views) const;
  // What the policy says of them; empty when the configuration's plan holds.
  std::vector<RecomputePlan> PlanPasses(const std::vector<at::Tensor>& views, const std::vector<ViewRange>& passes);
  std::vector<at::Tensor> RunHead(size_t index, const at::Tensor& features);
  std::vector<at::Tensor> RunHeads(const std::vector<at::Tensor>& features);
  // The shard of a parameter that is sharded; else the tensor itself.
  at::Tensor Held(const at::Tensor& tensor) const;
  // As backward over several ranks needs them.
  std::vector<at::Tensor> Joined(std::vector<at::Tensor> outputs) const;

  // Null unless parameters are sharded: the trunk's blocks, then the heads.
  std::unique_ptr<ParameterShards> shards_;
  std::unique_ptr<Trunk> trunk_;
  std::vector<std::unique_ptr<Head>> heads_;
  const SslModelOptions options_;
  const ModelTensors tensors_;  // with full names
  RecomputePolicy* policy_ = nullptr;
  bool training_ = true;
  bool shares_statistics_ = false;
};

}  // namespace ssl

#endif  // SSL_MODELS_SSL_MODEL_H_
