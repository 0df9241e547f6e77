// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/register_core.h"

#include <memory>

#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/core/core_options.h"
#include "ssl/core/cuda_graph.h"
#include "ssl/core/graph_train_step.h"
#include "ssl/core/recorded_run.h"
#include "ssl/core/standard_train_step.h"
#include "ssl/core/world_options.h"

namespace ssl {
namespace {

// Read where the files are put together (ssl/config/compose.h), before there are any structs.
struct FileOptions : public Options {
  bool allow_unknown_keys = false;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("ALLOW_UNKNOWN_KEYS", &allow_unknown_keys,
                  Doc("keys of files that nothing here knows are warnings, not errors (ours)").MayChange());
  }
};

}  // namespace

absl::Status RegisterCore(Registries* registries) {
  if (!registries->AddPackage("core")) return absl::OkStatus();
  registries->resolvers.push_back(&ResolveGrey16);
  OptionCatalog& options = registries->options;
  SSL_RETURN_IF_ERROR(options.Add("", [] { return std::make_unique<RunOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("", [] { return std::make_unique<FileOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("CHECKPOINT", [] { return std::make_unique<CheckpointOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("DATA", [] { return std::make_unique<ReductionOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("DISTRIBUTED", [] { return std::make_unique<ReplicaOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("DISTRIBUTED", [] { return std::make_unique<WorldOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("LOSS", [] { return std::make_unique<LossOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("MACHINE", [] { return std::make_unique<MachineOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("MODEL.AMP_PARAMS", [] { return std::make_unique<AmpOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("REPRODUCIBILITY", [] { return std::make_unique<ReproducibilityOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("TRAINER", [] { return std::make_unique<TrainerOptions>(); }));
  SSL_RETURN_IF_ERROR(RegisterCudaGraph(registries));
  SSL_RETURN_IF_ERROR(registries->train_steps.Register("graph_train_step", &MakeGraphTrainStep));
  return registries->train_steps.Register("standard_train_step", &MakeStandardTrainStep);
}

}  // namespace ssl
