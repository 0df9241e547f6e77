// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/dino_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_weight_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/heads/layer_stack.h"

namespace ssl {
namespace {

constexpr double kNormEps = 1e-12;  // as torch.nn.functional.normalize

class DinoHead : public Head {
 public:
  DinoHead(const DinoHeadOptions& options, const HeadSection& section, int64_t seed) : options_(options) {
    at::Generator generator = MakeGenerator(seed);
    int64_t width = options.in_dim;
    for (int64_t i = 1; i < options.num_layers; ++i) {
      mlp_.AddLinear(MakeNormalLinear(width, options.hidden_dim, /*use_bias=*/true, generator));
      width = options.hidden_dim;
      if (options.use_bn) {
        mlp_.AddBatchNorm(MakeBatchNorm(width, section.batchnorm_eps, section.batchnorm_momentum));
      }
      mlp_.AddGelu();
    }
    mlp_.AddLinear(MakeNormalLinear(width, options.bottleneck_dim, /*use_bias=*/true, generator));
    const int64_t clusters = options.num_clusters.front();
    direction_ = MakeLinear(options.bottleneck_dim, clusters, /*use_bias=*/false, generator).weight;
    length_ = at::ones({clusters, 1}, at::kFloat).requires_grad_(!options.normalize_last_layer);
  }

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    at::Tensor bottleneck = mlp_.Forward(HeadRows(features, input_dim(), "dino_head.in_dim"), training_);
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    if (bottleneck.scalar_type() == at::kBFloat16 || bottleneck.scalar_type() == at::kHalf) {
      bottleneck = bottleneck.to(at::kFloat);
    }
    bottleneck = bottleneck / bottleneck.norm(2, 1, true).clamp_min(kNormEps);
    return {at::linear(bottleneck, at::_weight_norm(direction_, length_))};
  }

  int64_t input_dim() const override { return options_.in_dim; }
  int64_t OutputDim(int64_t) const override { return options_.num_clusters.front(); }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    mlp_.List("mlp.", &tensors);
    if (options_.num_layers == 1) {  // VISSL's module itself then, and no list of them
      for (ModelTensor& entry : tensors) entry.name = absl::StrCat("mlp.", absl::StripPrefix(entry.name, "mlp.0."));
    }
    const TensorRole of_length = options_.normalize_last_layer ? TensorRole::kBuffer : TensorRole::kWeight;
    tensors.push_back({"prototypes0.weight_g", length_, of_length});
    tensors.push_back({"prototypes0.weight_v", direction_, TensorRole::kWeight});
    return tensors;
  }

  void SetTraining(bool training) override { training_ = training; }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override { mlp_.SynchronizeBatchNorm(group); }

 private:
  const DinoHeadOptions options_;
  LayerStack mlp_;
  at::Tensor direction_;  // v, [clusters, bottleneck_dim]
  at::Tensor length_;     // g, [clusters, 1]
  bool training_ = true;
};

absl::StatusOr<std::unique_ptr<Head>> DinoHeadFactory(const ConfigNode& params, const BuildContext& context) {
  DinoHeadOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "dino_head", UnknownKeys::kError, &options));
  SSL_ASSIGN_OR_RETURN(const HeadSection section, ReadHeadSection(context.config));
  return MakeDinoHead(options, section, context.seed);
}

}  // namespace

void DinoHeadOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("in_dim", &in_dim, Doc("Width of the features.").AtLeast(0));
  visitor.Field("num_clusters", &num_clusters, Doc("Prototypes, in a list of one.").AtLeast(1));
  visitor.Field("use_bn", &use_bn, Doc("Batch norm after each hidden linear layer."));
  visitor.Field("normalize_last_layer", &normalize_last_layer, Doc("Prototypes keep unit length."));
  visitor.Field("num_layers", &num_layers, Doc("Linear layers before the prototypes.").AtLeast(1));
  visitor.Field("hidden_dim", &hidden_dim, Doc("Width of the hidden layers.").AtLeast(1));
  visitor.Field("bottleneck_dim", &bottleneck_dim, Doc("Width of the layer that is scaled to unit length.").AtLeast(1));
}

absl::StatusOr<std::unique_ptr<Head>> MakeDinoHead(const DinoHeadOptions& options, const HeadSection& section,
                                                   int64_t seed) {
  if (options.in_dim < 1) {
    return absl::InvalidArgumentError("dino_head.in_dim is not set, expected the width of the features");
  }
  if (options.num_clusters.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("dino_head.num_clusters has ", options.num_clusters.size(),
                                                   " numbers, expected one: [65536], for example"));
  }
  return std::make_unique<DinoHead>(options, section, seed);
}

absl::Status RegisterDinoHead(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->heads.Register("dino_head_fsdp", &DinoHeadFactory));
  return registries->heads.Register("dino_head", &DinoHeadFactory);
}

}  // namespace ssl
