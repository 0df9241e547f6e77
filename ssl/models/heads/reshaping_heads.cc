// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/reshaping_heads.h"

#include <c10/util/Exception.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"

namespace ssl {
namespace {

class IdentityHead : public Head {
 public:
  std::vector<at::Tensor> Forward(const at::Tensor& features) override { return {features}; }
  int64_t input_dim() const override { return 0; }
  int64_t OutputDim(int64_t given) const override { return given; }
  ModelTensors Tensors() const override { return {}; }
  void SetTraining(bool) override {}
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>&) override {}
};

class SiameseConcatView : public Head {
 public:
  explicit SiameseConcatView(int64_t num_towers) : num_towers_(num_towers) {}

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    TORCH_CHECK_VALUE(features.size(0) % num_towers_ == 0, "siamese_concat_view gets ", features.size(0),
                      " rows, expected a multiple of num_towers, ", num_towers_);
    return {features.reshape({features.size(0) / num_towers_, -1})};
  }

  int64_t input_dim() const override { return 0; }
  int64_t OutputDim(int64_t given) const override { return given * num_towers_; }
  ModelTensors Tensors() const override { return {}; }
  void SetTraining(bool) override {}
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>&) override {}

 private:
  const int64_t num_towers_;
};

struct NoArguments : public Options {
  void VisitFields(FieldVisitor&) override {}
};

struct SiameseOptions : public Options {
  int64_t num_towers = 0;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("num_towers", &num_towers, Doc("Rows that are joined.").AtLeast(1));
  }
};

absl::StatusOr<std::unique_ptr<Head>> IdentityFactory(const ConfigNode& params, const BuildContext&) {
  NoArguments none;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "identity", UnknownKeys::kError, &none));
  return MakeIdentityHead();
}

absl::StatusOr<std::unique_ptr<Head>> SiameseFactory(const ConfigNode& params, const BuildContext&) {
  SiameseOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "siamese_concat_view", UnknownKeys::kError, &options));
  if (options.num_towers == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(params.location().ToString(), ": siamese_concat_view.num_towers is missing"));
  }
  return MakeSiameseConcatView(options.num_towers);
}

}  // namespace

std::unique_ptr<Head> MakeIdentityHead() { return std::make_unique<IdentityHead>(); }

std::unique_ptr<Head> MakeSiameseConcatView(int64_t num_towers) {
  return std::make_unique<SiameseConcatView>(num_towers);
}

absl::Status RegisterReshapingHeads(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->heads.Register("identity", &IdentityFactory));
  return registries->heads.Register("siamese_concat_view", &SiameseFactory);
}

}  // namespace ssl
