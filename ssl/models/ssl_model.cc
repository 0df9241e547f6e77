// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/ssl_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/flip.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/models/feature_pool.h"
#include "ssl/models/join_gradients.h"

namespace ssl {
namespace {

ModelTensors AllTensors(const Trunk& trunk, const std::vector<std::unique_ptr<Head>>& heads) {
  ModelTensors tensors;
  for (ModelTensor& entry : trunk.Tensors()) {
    tensors.push_back({absl::StrCat("trunk.", entry.name), std::move(entry.value), entry.role});
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    for (ModelTensor& entry : heads[i]->Tensors()) {
      tensors.push_back({absl::StrCat("heads.", i, ".", entry.name), std::move(entry.value), entry.role});
    }
  }
  return tensors;
}

void StopTraining(const ModelTensors& tensors) {
  for (const ModelTensor& entry : tensors) {
    at::Tensor value = entry.value;
    if (entry.role != TensorRole::kBuffer) value.requires_grad_(false);
  }
}

bool SameResolution(const at::Tensor& left, const at::Tensor& right) {
  return left.size(-1) == right.size(-1) && left.size(-2) == right.size(-2);
}

std::vector<std::string> NamesOf(const std::map<std::string, at::Tensor>& inputs) {
  std::vector<std::string> names;
  for (const auto& entry : inputs) names.push_back(entry.first);
  return names;
}

// Whether a chain of these blocks goes through `stage`; true without a chain.
bool IsOnTheWay(const std::string& stage, const std::vector<std::string>& blocks) {
  return blocks.empty() || std::any_of(blocks.begin(), blocks.end(), [&stage](absl::string_view block) {
           return absl::ConsumePrefix(&block, stage) && (block.empty() || block[0] == '.');
         });
}

}  // namespace

SslModel::SslModel(std::unique_ptr<Trunk> trunk, std::vector<std::unique_ptr<Head>> heads, SslModelOptions options)
    : trunk_(std::move(trunk)),
      heads_(std::move(heads)),
      options_(std::move(options)),
      tensors_(AllTensors(*trunk_, heads_)) {
  SetTraining(true);
  SetRecomputePolicy(nullptr);
  if (options_.freeze_trunk) StopTraining(trunk_->Tensors());
  if (!options_.freeze_heads) return;
  for (const std::unique_ptr<Head>& head : heads_) StopTraining(head->Tensors());
}

SslModel::~SslModel() = default;

std::vector<at::Tensor> SslModel::Forward(const std::vector<at::Tensor>& views) {
  TORCH_CHECK_VALUE(options_.inputs.empty(),
                    "config.MODEL.MULTI_INPUT_HEAD_MAPPING maps named inputs, the batch has views");
  return Joined(RunHeads(TrunkOutputs(views)));
}

std::vector<at::Tensor> SslModel::ForwardNamed(const std::map<std::string, at::Tensor>& inputs) {
  std::vector<at::Tensor> outputs;
  std::vector<std::string> mapped;
  for (const MappedInput& input : options_.inputs) {
    mapped.push_back(input.name);
    const auto found = inputs.find(input.name);
    if (found == inputs.end()) continue;
    std::vector<FeatureRequest> requests;
    if (!input.stage.empty()) requests.push_back({input.stage, {}, /*flatten=*/false});
    std::vector<at::Tensor> results = RunTrunk(TrunkInput(found->second), requests);
    if (!heads_.empty()) results = RunHead(input.head, results.front());
    outputs.insert(outputs.end(), results.begin(), results.end());
  }
  TORCH_CHECK_VALUE(!outputs.empty(), "config.MODEL.MULTI_INPUT_HEAD_MAPPING maps the inputs [",
                    absl::StrJoin(mapped, ", "), "], the batch has [", absl::StrJoin(NamesOf(inputs), ", "), "]");
  return Joined(std::move(outputs));
}

std::vector<at::Tensor> SslModel::Joined(std::vector<at::Tensor> outputs) const {
  const bool ranks_run_backward_together = shares_statistics_ || shards_ != nullptr;
  return ranks_run_backward_together && training_ ? JoinGradients(std::move(outputs)) : outputs;
}

// Channels-last, the layout in which the convolutions and BatchNormRelu are fast; all maps behind inherit it.
at::Tensor SslModel::TrunkInput(const at::Tensor& images) const {
  at::Tensor input = images;
  if (options_.channels == InputChannelOrder::kBgr) input = at::flip(images, {1});
  if (options_.channels == InputChannelOrder::kLab) input = images.narrow(1, 0, 1);
  return input.contiguous(at::MemoryFormat::ChannelsLast);
}

std::vector<at::Tensor> SslModel::RunTrunk(const at::Tensor& input, const std::vector<FeatureRequest>& requests) {
  const c10::AutoGradMode grad_mode(c10::GradMode::is_enabled() && !options_.freeze_trunk);
  if (requests.empty()) return {trunk_->Forward(input)};
  std::vector<std::string> names;
  for (const FeatureRequest& request : requests) names.push_back(request.name);
  std::vector<at::Tensor> features = trunk_->Features(input, names);
  for (size_t i = 0; i < requests.size(); ++i) features[i] = PoolFeature(features[i], requests[i]);
  return features;
}

std::vector<ViewRange> SslModel::Passes(const std::vector<at::Tensor>& views) const {
  std::vector<ViewRange> passes;
  for (size_t begin = 0; begin < views.size();) {
    size_t end = begin + 1;
    while (!options_.single_pass_every_crop && end < views.size() && SameResolution(views[begin], views[end])) ++end;
    passes.push_back({begin, end});
    begin = end;
  }
  return passes;
}

std::vector<RecomputePlan> SslModel::PlanPasses(const std::vector<at::Tensor>& views,
                                                const std::vector<ViewRange>& passes) {
  if (policy_ == nullptr || !training_ || !c10::GradMode::is_enabled()) return {};
  std::vector<PassShape> shapes;
  for (const ViewRange& pass : passes) {
    PassShape shape = {0, views[pass.begin].size(-2), views[pass.begin].size(-1)};
    for (size_t view = pass.begin; view < pass.end; ++view) shape.images += views[view].size(0);
    shapes.push_back(shape);
  }
  return policy_->Plan(shapes);
}

// Neighbouring views of one resolution go through the trunk as one batch, as in VISSL's multi-crop models: two large
// crops and six small ones are two passes, not eight. That is not only faster: batch norm takes its statistics over all
// crops of a resolution together, so the grouping is part of what is trained, and SINGLE_PASS_EVERY_CROP (a pass for
// each view) trains another network. Only neighbours are joined, since the rows of the result must be in the order of
// the views.
std::vector<at::Tensor> SslModel::TrunkOutputs(const std::vector<at::Tensor>& views) {
  const std::vector<FeatureRequest> requests =
      options_.freeze_trunk ? options_.features : std::vector<FeatureRequest>();
  std::vector<std::vector<at::Tensor>> parts(std::max<size_t>(1, requests.size()));  // of each feature
  const std::vector<ViewRange> passes = Passes(views);
  const std::vector<RecomputePlan> plans = PlanPasses(views, passes);
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    const auto [begin, end] = passes[pass];
    at::Tensor images = views[begin];
    if (end - begin > 1) images = at::cat(at::TensorList(views).slice(begin, end - begin), 0);
    if (!plans.empty()) trunk_->SetRecomputed(plans[pass]);
    const std::vector<at::Tensor> features = RunTrunk(TrunkInput(images), requests);
    for (size_t i = 0; i < features.size(); ++i) parts[i].push_back(features[i]);
  }
  std::vector<at::Tensor> outputs;
  for (const std::vector<at::Tensor>& part : parts) outputs.push_back(part.size() == 1 ? part[0] : at::cat(part, 0));
  return outputs;
}

std::vector<at::Tensor> SslModel::RunHead(size_t index, const at::Tensor& features) {
  if (shards_ == nullptr) return heads_[index]->Forward(features);
  return shards_->Run(trunk_->num_blocks() + index, ParameterShards::Pass::kForward,
                      [&] { return heads_[index]->Forward(features); });
}

std::vector<at::Tensor> SslModel::RunHeads(const std::vector<at::Tensor>& features) {
  if (heads_.empty()) return features;
  std::vector<at::Tensor> outputs;
  if (features.size() == heads_.size()) {
    for (size_t i = 0; i < heads_.size(); ++i) {
      const std::vector<at::Tensor> results = RunHead(i, features[i]);
      outputs.insert(outputs.end(), results.begin(), results.end());
    }
    return outputs;
  }
  TORCH_CHECK_VALUE(features.size() == 1, heads_.size(), " heads for ", features.size(), " features");
  outputs = features;
  for (size_t i = 0; i < heads_.size(); ++i) outputs = RunHead(i, outputs.front());
  return outputs;
}

std::vector<at::Tensor> SslModel::Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) {
  const at::NoGradGuard no_grad;
  if (requests.empty()) return {};
  return RunTrunk(TrunkInput(images), requests);
}

// The last stage is what the trunk gives to the heads.
MapAndOutputs SslModel::ForwardWithMap(const at::Tensor& images, const std::string& stage) {
  // A leaf that asks for gradients: without one a frozen trunk would have no graph.
  const at::Tensor input = TrunkInput(images.detach()).detach().requires_grad_();
  const std::vector<at::Tensor> features = trunk_->Features(input, {stage, trunk_->feature_names().back()});
  TORCH_CHECK_VALUE(features[0].dim() == 4, "stage '", stage, "' is pooled, expected one that is a map");
  TORCH_CHECK_VALUE(IsOnTheWay(stage, trunk_->block_names()), "the outputs are not made of the map '", stage,
                    "', expected a stage that the trunk's next block reads");
  return {features[0], RunHeads({features[1]})};
}

std::vector<NamedParameter> SslModel::Parameters() {
  std::vector<NamedParameter> parameters;
  for (const ModelTensor& entry : tensors_) {
    const at::Tensor held = Held(entry.value);
    if (held.requires_grad()) parameters.push_back({entry.name, held, entry.role == TensorRole::kNorm});
  }
  return parameters;
}

at::Tensor SslModel::Held(const at::Tensor& tensor) const {
  const at::Tensor shard = shards_ != nullptr ? shards_->ShardOf(tensor) : at::Tensor();
  return shard.defined() ? shard : tensor;
}

absl::Status SslModel::ShardParameters(Communicator& communicator) {
  if (trunk_->num_blocks() == 0) return Model::ShardParameters(communicator);
  std::vector<ParameterBlock> blocks;
  const auto add = [&blocks](std::string name, const ModelTensors& tensors) {
    ParameterBlock& block = blocks.emplace_back(ParameterBlock{std::move(name), {}});
    for (const ModelTensor& tensor : tensors) {
      if (!tensor.value.requires_grad()) continue;
      block.parameters.push_back({tensor.name, tensor.value, tensor.role == TensorRole::kNorm});
    }
  };
  const std::vector<std::string> names = trunk_->block_names();
  for (size_t i = 0; i < names.size(); ++i) add(absl::StrCat("trunk.", names[i]), trunk_->BlockTensors(i));
  for (size_t i = 0; i < heads_.size(); ++i) add(absl::StrCat("heads.", i), heads_[i]->Tensors());
  SSL_ASSIGN_OR_RETURN(shards_, ParameterShards::Make(std::move(blocks), communicator));
  trunk_->SetShards(shards_.get());
  return absl::OkStatus();
}

void SslModel::SetRecomputePolicy(RecomputePolicy* policy) {
  policy_ = policy;
  trunk_->SetRecomputed(options_.recompute);
}

void SslModel::SetTraining(bool training) {
  training_ = training;
  trunk_->SetTraining(training && !options_.freeze_trunk);
  for (const std::unique_ptr<Head>& head : heads_) head->SetTraining(training && !options_.freeze_heads);
}

void SslModel::SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) {
  shares_statistics_ = true;
  trunk_->SynchronizeBatchNorm(group);
  for (const std::unique_ptr<Head>& head : heads_) head->SynchronizeBatchNorm(group);
}

void SslModel::VisitState(StateVisitor& visitor) {
  const at::NoGradGuard no_grad;  // loading writes into parameters
  for (const ModelTensor& entry : tensors_) {
    at::Tensor value = shards_ != nullptr && shards_->holds_whole() ? entry.value : Held(entry.value);
    visitor.Tensor(entry.name, value);
  }
}

absl::Status SslModel::Freeze(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&name](const ModelTensor& entry) { return entry.name == name; });
    if (found == tensors_.end() || found->role == TensorRole::kBuffer) {
      std::vector<std::string> known;
      for (const NamedParameter& parameter : Parameters()) known.push_back(parameter.name);
      return absl::NotFoundError(absl::StrCat("config.MODEL.NON_TRAINABLE_PARAMS names '", name,
                                              "', which is no parameter of the model", DidYouMean(name, known)));
    }
    StopTraining({*found});
  }
  return absl::OkStatus();
}

}  // namespace ssl
