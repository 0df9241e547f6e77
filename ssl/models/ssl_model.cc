// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/ssl_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/flip.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/head_section.h"
#include "ssl/models/model_section.h"

namespace ssl {
namespace {

// Runs heads one after the other as one head; names its tensors "<i>.<name>".
class HeadChain : public Head {
 public:
  explicit HeadChain(std::vector<std::unique_ptr<Head>> heads) : heads_(std::move(heads)) {}

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    std::vector<at::Tensor> outputs = {features};
    for (const std::unique_ptr<Head>& head : heads_) outputs = head->Forward(outputs.front());
    return outputs;
  }

  int64_t input_dim() const override { return heads_.front()->input_dim(); }
  int64_t output_dim() const override { return heads_.back()->output_dim(); }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    for (size_t i = 0; i < heads_.size(); ++i) {
      for (ModelTensor& entry : heads_[i]->Tensors()) {
        tensors.push_back({absl::StrCat(i, ".", entry.name), std::move(entry.value), entry.role});
      }
    }
    return tensors;
  }

  void SetTraining(bool training) override {
    for (const std::unique_ptr<Head>& head : heads_) head->SetTraining(training);
  }

 private:
  std::vector<std::unique_ptr<Head>> heads_;
};

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

bool SameResolution(const at::Tensor& left, const at::Tensor& right) {
  return left.size(-1) == right.size(-1) && left.size(-2) == right.size(-2);
}

// entry: [name, {arguments}], or a list of such pairs. path: of the entry, for messages.
absl::StatusOr<std::unique_ptr<Head>> BuildHead(const ConfigNode& entry, const std::string& path,
                                                const BuildContext& context) {
  const std::vector<ConfigNode>& items = entry.items();
  if (!items.empty() && items[0].is_list()) {
    std::vector<std::unique_ptr<Head>> heads;
    for (size_t i = 0; i < items.size(); ++i) {
      SSL_ASSIGN_OR_RETURN(std::unique_ptr<Head> head, BuildHead(items[i], absl::StrCat(path, "[", i, "]"), context));
      if (i > 0 && heads.back()->output_dim() != head->input_dim()) {
        return absl::InvalidArgumentError(absl::StrCat(items[i].location().ToString(), ": ", path, "[", i, "] takes ",
                                                       head->input_dim(), " features, the head before it gives ",
                                                       heads.back()->output_dim()));
      }
      heads.push_back(std::move(head));
    }
    return std::make_unique<HeadChain>(std::move(heads));
  }
  if (items.empty() || items.size() > 2 || !items[0].is_scalar() || (items.size() == 2 && !items[1].is_map())) {
    return absl::InvalidArgumentError(absl::StrCat(entry.location().ToString(), ": ", path, " is ", entry.Describe(),
                                                   ", expected [name, {arguments}]"));
  }
  ConfigNode arguments = items.size() == 2 ? items[1] : ConfigNode::Map(entry.location());
  return context.registries.heads.Make(items[0].text(), arguments, context);
}

absl::StatusOr<std::vector<std::unique_ptr<Head>>> BuildHeads(const ConfigNode& params, int64_t features,
                                                              const BuildContext& context) {
  std::vector<std::unique_ptr<Head>> heads;
  for (size_t i = 0; i < params.items().size(); ++i) {
    const std::string path = absl::StrCat("config.MODEL.HEAD.PARAMS[", i, "]");
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Head> head, BuildHead(params.items()[i], path, context));
    const int64_t given = heads.empty() ? features : heads.back()->output_dim();
    if (head->input_dim() != given) {
      return absl::InvalidArgumentError(absl::StrCat(params.items()[i].location().ToString(), ": ", path, " takes ",
                                                     head->input_dim(), " features (dims[0]), the ",
                                                     heads.empty() ? "trunk" : "head before it", " gives ", given));
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

absl::StatusOr<std::unique_ptr<Model>> SslModelFactory(const ConfigNode& params, const BuildContext& context) {
  ModelSection section;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.MODEL", UnknownKeys::kIgnore, &section));
  const ConfigNode* trunk_node = params.Find("TRUNK");
  const ConfigNode no_trunk_keys = ConfigNode::Map(params.location());
  if (trunk_node == nullptr) trunk_node = &no_trunk_keys;
  TrunkSection trunk_section;
  SSL_RETURN_IF_ERROR(ReadOptions(*trunk_node, "config.MODEL.TRUNK", UnknownKeys::kIgnore, &trunk_section));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Trunk> trunk,
                       context.registries.trunks.Make(trunk_section.name, *trunk_node, context));
  SSL_ASSIGN_OR_RETURN(const HeadSection head_section, ReadHeadSection(context.config));
  SSL_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Head>> heads,
                       BuildHeads(head_section.params, trunk->output_dim(), context));
  SslModelOptions options;
  options.single_pass_every_crop = section.single_pass_every_crop;
  options.bgr = section.input_type == "bgr";
  auto model = std::make_unique<SslModel>(std::move(trunk), std::move(heads), options);
  SSL_RETURN_IF_ERROR(model->Freeze(section.non_trainable_params));
  return model;
}

}  // namespace

SslModel::SslModel(std::unique_ptr<Trunk> trunk, std::vector<std::unique_ptr<Head>> heads, SslModelOptions options)
    : trunk_(std::move(trunk)), heads_(std::move(heads)), options_(options), tensors_(AllTensors(*trunk_, heads_)) {}

std::vector<at::Tensor> SslModel::Forward(const std::vector<at::Tensor>& views) {
  std::vector<at::Tensor> outputs = {TrunkFeatures(views)};
  for (const std::unique_ptr<Head>& head : heads_) outputs = head->Forward(outputs.front());
  return outputs;
}

at::Tensor SslModel::TrunkFeatures(const std::vector<at::Tensor>& views) {
  std::vector<at::Tensor> features;
  for (size_t begin = 0; begin < views.size();) {
    size_t end = begin + 1;
    while (!options_.single_pass_every_crop && end < views.size() && SameResolution(views[begin], views[end])) ++end;
    at::Tensor images = views[begin];
    if (end - begin > 1) images = at::cat(at::TensorList(views).slice(begin, end - begin), 0);
    if (options_.bgr) images = at::flip(images, {1});
    features.push_back(trunk_->Forward(images.contiguous(at::MemoryFormat::ChannelsLast)));
    begin = end;
  }
  return features.size() == 1 ? features.front() : at::cat(features, 0);
}

std::vector<at::Tensor> SslModel::Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) {
  const at::NoGradGuard no_grad;
  const at::Tensor input = options_.bgr ? at::flip(images, {1}) : images;
  return trunk_->Features(input.contiguous(at::MemoryFormat::ChannelsLast), requests);
}

std::vector<NamedParameter> SslModel::Parameters() {
  std::vector<NamedParameter> parameters;
  for (const ModelTensor& entry : tensors_) {
    if (!entry.value.requires_grad()) continue;
    parameters.push_back({entry.name, entry.value, entry.role == TensorRole::kNorm});
  }
  return parameters;
}

void SslModel::SetTraining(bool training) {
  trunk_->SetTraining(training);
  for (const std::unique_ptr<Head>& head : heads_) head->SetTraining(training);
}

void SslModel::VisitState(StateVisitor& visitor) {
  const at::NoGradGuard no_grad;  // loading writes into parameters
  for (const ModelTensor& entry : tensors_) {
    at::Tensor value = entry.value;
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
    at::Tensor value = found->value;
    value.requires_grad_(false);
  }
  return absl::OkStatus();
}

absl::Status RegisterSslModel(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->models.Register("multi_input_output_model", &SslModelFactory));
  OptionCatalog& options = registries->options;
  SSL_RETURN_IF_ERROR(options.Add("MODEL", [] { return std::make_unique<ModelSection>(); }));
  SSL_RETURN_IF_ERROR(options.Add("MODEL.AMP_PARAMS", [] { return std::make_unique<AmpSection>(); }));
  SSL_RETURN_IF_ERROR(options.Add("MODEL.HEAD", [] { return std::make_unique<HeadSection>(); }));
  return options.Add("MODEL.TRUNK", [] { return std::make_unique<TrunkSection>(); });
}

}  // namespace ssl
