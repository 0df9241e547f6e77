// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/swav_head.h"

#include <ATen/TensorOperators.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/heads/layer_stack.h"

namespace ssl {
namespace {

constexpr double kNormEps = 1e-12;  // as torch.nn.functional.normalize

class SwavHead : public Head {
 public:
  SwavHead(const SwavHeadOptions& options, const HeadSection& section, int64_t seed) : options_(options) {
    at::Generator generator = MakeGenerator(seed);
    const std::vector<int64_t>& dims = options.dims;
    for (size_t i = 1; i < dims.size(); ++i) {
      const bool last = i + 1 == dims.size();
      projection_.AddLinear(MakeLinear(dims[i - 1], dims[i], options.use_bias, generator));
      if (last && options.skip_last_bn) break;
      if (options.use_bn) {
        projection_.AddBatchNorm(MakeBatchNorm(dims[i], section.batchnorm_eps, section.batchnorm_momentum));
      }
      if (options.activation_name == "GELU") {
        projection_.AddGelu();
      } else {
        projection_.AddRelu();
      }
    }
    for (const int64_t clusters : options.num_clusters) {
      prototypes_.push_back(MakeLinear(dims.back(), clusters, /*use_bias=*/false, generator));
    }
  }

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    at::Tensor embeddings = projection_.Forward(HeadRows(features, input_dim(), "swav_head.dims[0]"), training_);
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    if (embeddings.scalar_type() == at::kBFloat16 || embeddings.scalar_type() == at::kHalf) {
      embeddings = embeddings.to(at::kFloat);
    }
    if (options_.normalize_feats) embeddings = embeddings / embeddings.norm(2, 1, true).clamp_min(kNormEps);
    std::vector<at::Tensor> outputs;
    if (options_.return_embeddings) outputs.push_back(embeddings);
    for (const LinearLayer& layer : prototypes_) outputs.push_back(layer.Forward(embeddings));
    return outputs;
  }

  int64_t input_dim() const override { return options_.dims.front(); }
  int64_t OutputDim(int64_t) const override {
    return options_.return_embeddings ? options_.dims.back() : options_.num_clusters.front();
  }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    projection_.List("projection_head.", &tensors);
    for (size_t i = 0; i < prototypes_.size(); ++i) prototypes_[i].List(absl::StrCat("prototypes", i, "."), &tensors);
    return tensors;
  }

  void SetTraining(bool training) override { training_ = training; }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override {
    projection_.SynchronizeBatchNorm(group);
  }

 private:
  const SwavHeadOptions options_;
  LayerStack projection_;
  std::vector<LinearLayer> prototypes_;
  bool training_ = true;
};

absl::StatusOr<std::unique_ptr<Head>> SwavHeadFactory(const ConfigNode& params, const BuildContext& context) {
  SwavHeadOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "swav_head", UnknownKeys::kError, &options));
  SSL_ASSIGN_OR_RETURN(const HeadSection section, ReadHeadSection(context.config));
  return MakeSwavHead(options, section, context.seed);
}

}  // namespace

void SwavHeadOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("dims", &dims, Doc("Widths: input, hidden layers, embedding.").AtLeast(1));
  visitor.Field("use_bn", &use_bn, Doc("Batch norm after each hidden linear layer."));
  visitor.Field("num_clusters", &num_clusters, Doc("Prototypes of each prototype head.").AtLeast(1));
  visitor.Field("use_bias", &use_bias, Doc("Bias in the linear layers of the projection."));
  visitor.Field("return_embeddings", &return_embeddings, Doc("Returns the embeddings before the scores."));
  visitor.Field("skip_last_bn", &skip_last_bn, Doc("Neither batch norm nor activation after the last linear layer."));
  visitor.Field("normalize_feats", &normalize_feats, Doc("Scales embeddings to unit length."));
  visitor.Field("activation_name", &activation_name, Doc("Between the linear layers.").OneOf({"ReLU", "GELU"}));
  visitor.Field("use_weight_norm_prototypes", &use_weight_norm_prototypes, Doc("True is not supported."));
  visitor.Field("normalize_last_layer", &normalize_last_layer, Doc("True is not supported."));
}

absl::StatusOr<std::unique_ptr<Head>> MakeSwavHead(const SwavHeadOptions& options, const HeadSection& section,
                                                   int64_t seed) {
  if (options.dims.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("swav_head.dims has ", options.dims.size(), " widths, expected at least input and embedding"));
  }
  if (options.use_weight_norm_prototypes || options.normalize_last_layer) {
    return absl::InvalidArgumentError(absl::StrCat(
        "swav_head.", options.use_weight_norm_prototypes ? "use_weight_norm_prototypes" : "normalize_last_layer",
        " is true, expected false: prototypes with weight norm are not supported"));
  }
  if (options.num_clusters.empty() && !options.return_embeddings) {
    return absl::InvalidArgumentError("swav_head.num_clusters is empty and return_embeddings false: nothing to return");
  }
  return std::make_unique<SwavHead>(options, section, seed);
}

absl::Status RegisterSwavHead(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->heads.Register("swav_head_fsdp", &SwavHeadFactory));
  return registries->heads.Register("swav_head", &SwavHeadFactory);
}

}  // namespace ssl
