// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/mlp.h"

#include <c10/util/Exception.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/heads/layer_stack.h"

namespace ssl {
namespace {

// Adds linear layer i, from width i - 1 to width i, and what follows it.
void AddLayer(const MlpOptions& options, const HeadSection& section, size_t i, at::Generator& generator,
              LayerStack* layers) {
  LinearLayer linear = MakeLinear(options.dims[i - 1], options.dims[i], options.use_bias, generator);
  linear.weight.detach().mul_(section.params_multiplier);
  if (linear.bias.defined()) linear.bias.detach().mul_(section.params_multiplier);
  layers->AddLinear(linear);
  if (i + 1 == options.dims.size() && options.skip_last_layer_relu_bn) return;
  if (options.use_bn) {
    layers->AddBatchNorm(MakeBatchNorm(options.dims[i], section.batchnorm_eps, section.batchnorm_momentum));
  }
  if (options.use_relu) layers->AddRelu();
  if (options.use_dropout) layers->AddDropout();
}

class Mlp : public Head {
 public:
  Mlp(const MlpOptions& options, const HeadSection& section, int64_t seed) : dims_(options.dims) {
    at::Generator generator = MakeGenerator(seed);
    for (size_t i = 1; i < dims_.size(); ++i) AddLayer(options, section, i, generator, &layers_);
  }

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    return {layers_.Forward(HeadRows(features, input_dim(), "dims[0]"), training_)};
  }

  int64_t input_dim() const override { return dims_.front(); }
  int64_t OutputDim(int64_t) const override { return dims_.back(); }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    layers_.List("clf.", &tensors);
    return tensors;
  }

  void SetTraining(bool training) override { training_ = training; }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override {
    layers_.SynchronizeBatchNorm(group);
  }

 private:
  const std::vector<int64_t> dims_;
  LayerStack layers_;
  bool training_ = true;
};

class ResidualMlp : public Head {
 public:
  ResidualMlp(const MlpOptions& options, const HeadSection& section, int64_t seed)
      : dims_(options.dims), blocks_(options.dims.size() - 1) {
    at::Generator generator = MakeGenerator(seed);
    for (size_t i = 1; i < dims_.size(); ++i) AddLayer(options, section, i, generator, &blocks_[i - 1]);
  }

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    at::Tensor output = HeadRows(features, input_dim(), "dims[0]");
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const at::Tensor change = blocks_[i].Forward(output, training_);
      output = dims_[i] == dims_[i + 1] ? change.add(output, 2) : change;
    }
    return {output};
  }

  int64_t input_dim() const override { return dims_.front(); }
  int64_t OutputDim(int64_t) const override { return dims_.back(); }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i].List(absl::StrCat("clf.", i, ".mlp_res_block."), &tensors);
    return tensors;
  }

  void SetTraining(bool training) override { training_ = training; }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override {
    for (LayerStack& block : blocks_) block.SynchronizeBatchNorm(group);
  }

 private:
  const std::vector<int64_t> dims_;
  std::vector<LayerStack> blocks_;
  bool training_ = true;
};

class EvalMlp : public Head {
 public:
  EvalMlp(const EvalMlpOptions& options, const HeadSection& section, std::unique_ptr<Head> classifier)
      : channels_(options.in_channels),
        channel_norm_(MakeBatchNorm(options.in_channels, section.batchnorm_eps, section.batchnorm_momentum)),
        classifier_(std::move(classifier)) {}

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    TORCH_CHECK_VALUE(features.size(1) == channels_, "eval_mlp takes ", channels_,
                      " channels (in_channels), its input ", features.sizes(), " has ", features.size(1),
                      features.dim() == 2 ? " (maps that were flattened need SHOULD_FLATTEN_FEATS: False)" : "");
    return classifier_->Forward(channel_norm_.Forward(features, NormModeFor(training_)));
  }

  int64_t input_dim() const override { return channels_; }
  int64_t OutputDim(int64_t given) const override { return classifier_->OutputDim(given); }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    channel_norm_.List("channel_bn.", &tensors);
    for (ModelTensor& entry : classifier_->Tensors()) {
      tensors.push_back({"clf." + entry.name, std::move(entry.value), entry.role});
    }
    return tensors;
  }

  void SetTraining(bool training) override {
    training_ = training;
    classifier_->SetTraining(training);
  }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override {
    channel_norm_.group = group;
    classifier_->SynchronizeBatchNorm(group);
  }

 private:
  const int64_t channels_;
  BatchNormLayer channel_norm_;
  const std::unique_ptr<Head> classifier_;
  bool training_ = true;
};

absl::Status CheckWidths(const char* head, const std::vector<int64_t>& dims) {
  if (dims.size() >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(head, ".dims has ", dims.size(), " widths, expected at least input and output"));
}

absl::StatusOr<std::unique_ptr<Head>> MlpFactory(const ConfigNode& params, const BuildContext& context) {
  MlpOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "mlp", UnknownKeys::kError, &options));
  SSL_ASSIGN_OR_RETURN(const HeadSection section, ReadHeadSection(context.config));
  return MakeMlp(options, section, context.seed);
}

absl::StatusOr<std::unique_ptr<Head>> ResidualMlpFactory(const ConfigNode& params, const BuildContext& context) {
  MlpOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "mlp_res", UnknownKeys::kError, &options));
  SSL_ASSIGN_OR_RETURN(const HeadSection section, ReadHeadSection(context.config));
  return MakeResidualMlp(options, section, context.seed);
}

absl::StatusOr<std::unique_ptr<Head>> EvalMlpFactory(const ConfigNode& params, const BuildContext& context) {
  EvalMlpOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "eval_mlp", UnknownKeys::kError, &options));
  SSL_ASSIGN_OR_RETURN(const HeadSection section, ReadHeadSection(context.config));
  return MakeEvalMlp(options, section, context.seed);
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

void EvalMlpOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("in_channels", &in_channels, Doc("Channels of the features.").AtLeast(1));
  visitor.Field("dims", &dims, Doc("Widths: flattened features, hidden layers, output.").AtLeast(1));
  visitor.Field("use_bn", &use_bn, Doc("Batch norm after each linear layer but the last."));
  visitor.Field("use_relu", &use_relu, Doc("ReLU after each linear layer but the last."));
  visitor.Field("use_residual", &use_residual, Doc("The layers are those of mlp_res."));
}

absl::StatusOr<std::unique_ptr<Head>> MakeMlp(const MlpOptions& options, const HeadSection& section, int64_t seed) {
  SSL_RETURN_IF_ERROR(CheckWidths("mlp", options.dims));
  return std::make_unique<Mlp>(options, section, seed);
}

absl::StatusOr<std::unique_ptr<Head>> MakeResidualMlp(const MlpOptions& options, const HeadSection& section,
                                                      int64_t seed) {
  SSL_RETURN_IF_ERROR(CheckWidths("mlp_res", options.dims));
  return std::make_unique<ResidualMlp>(options, section, seed);
}

absl::StatusOr<std::unique_ptr<Head>> MakeEvalMlp(const EvalMlpOptions& options, const HeadSection& section,
                                                  int64_t seed) {
  SSL_RETURN_IF_ERROR(CheckWidths("eval_mlp", options.dims));
  if (options.in_channels < 1) {
    return absl::InvalidArgumentError("eval_mlp.in_channels is missing, expected the channels of the features");
  }
  MlpOptions layers;
  layers.dims = options.dims;
  layers.use_bn = options.use_bn;
  layers.use_relu = options.use_relu;
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Head> classifier,
                       options.use_residual ? MakeResidualMlp(layers, section, seed) : MakeMlp(layers, section, seed));
  return std::make_unique<EvalMlp>(options, section, std::move(classifier));
}

absl::Status RegisterMlp(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->heads.Register("mlp", &MlpFactory));
  SSL_RETURN_IF_ERROR(registries->heads.Register("mlp_res", &ResidualMlpFactory));
  SSL_RETURN_IF_ERROR(registries->heads.Register("mlp_fsdp", &MlpFactory));
  SSL_RETURN_IF_ERROR(registries->heads.Register("eval_mlp_fsdp", &EvalMlpFactory));
  return registries->heads.Register("eval_mlp", &EvalMlpFactory);
}

}  // namespace ssl
