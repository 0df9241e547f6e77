// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/mlp.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/heads/layer_stack.h"

namespace ssl {
namespace {

class Mlp : public Head {
 public:
  Mlp(const MlpOptions& options, const HeadSection& section, int64_t seed) : dims_(options.dims) {
    at::Generator generator = MakeGenerator(seed);
    for (size_t i = 1; i < dims_.size(); ++i) {
      LinearLayer linear = MakeLinear(dims_[i - 1], dims_[i], options.use_bias, generator);
      linear.weight.detach().mul_(section.params_multiplier);
      if (linear.bias.defined()) linear.bias.detach().mul_(section.params_multiplier);
      layers_.AddLinear(linear);
      if (i + 1 == dims_.size() && options.skip_last_layer_relu_bn) break;
      if (options.use_bn) {
        layers_.AddBatchNorm(MakeBatchNorm(dims_[i], section.batchnorm_eps, section.batchnorm_momentum));
      }
      if (options.use_relu) layers_.AddRelu();
      if (options.use_dropout) layers_.AddDropout();
    }
  }

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    return {layers_.Forward(features.flatten(1), training_)};
  }

  int64_t input_dim() const override { return dims_.front(); }
  int64_t output_dim() const override { return dims_.back(); }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    layers_.List("clf.", &tensors);
    return tensors;
  }

  void SetTraining(bool training) override { training_ = training; }

 private:
  const std::vector<int64_t> dims_;
  LayerStack layers_;
  bool training_ = true;
};

absl::StatusOr<std::unique_ptr<Head>> MlpFactory(const ConfigNode& params, const BuildContext& context) {
  MlpOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "mlp", UnknownKeys::kError, &options));
  SSL_ASSIGN_OR_RETURN(const HeadSection section, ReadHeadSection(context.config));
  return MakeMlp(options, section, context.seed);
}

}  // namespace

void MlpOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("dims", &dims, Doc("Widths: input, hidden layers, output.").AtLeast(1));
  visitor.Field("use_bn", &use_bn, Doc("Batch norm after each linear layer."));
  visitor.Field("use_relu", &use_relu, Doc("ReLU after each linear layer."));
  visitor.Field("use_dropout", &use_dropout, Doc("Dropout of one half after each linear layer."));
  visitor.Field("use_bias", &use_bias, Doc("Bias in the linear layers."));
  visitor.Field("skip_last_layer_relu_bn", &skip_last_layer_relu_bn, Doc("Nothing after the last linear layer."));
}

absl::StatusOr<std::unique_ptr<Head>> MakeMlp(const MlpOptions& options, const HeadSection& section, int64_t seed) {
  if (options.dims.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("mlp.dims has ", options.dims.size(), " widths, expected at least input and output"));
  }
  return std::make_unique<Mlp>(options, section, seed);
}

absl::Status RegisterMlp(Registries* registries) { return registries->heads.Register("mlp", &MlpFactory); }

}  // namespace ssl
