// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/supervised/supervised.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/meters/register_meters.h"
#include "ssl/methods/supervised/multiple_output_losses.h"
#include "ssl/methods/supervised/supervised_loss.h"
#include "ssl/methods/supervised/supervised_method.h"
#include "ssl/methods/supervised/torch_losses.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"

namespace ssl {
namespace {

absl::Status RegisterLosses(const std::vector<SupervisedLossEntry>& losses, Registries* registries) {
  for (const SupervisedLossEntry& entry : losses) {
    const std::string section = absl::StrCat("LOSS.", entry.name);
    const auto make = [entry, section](const ConfigNode& params,
                                       const BuildContext& context) -> absl::StatusOr<std::unique_ptr<Method>> {
      std::unique_ptr<SupervisedLoss> loss = entry.make();
      SSL_RETURN_IF_ERROR(ReadOptions(params, absl::StrCat("config.", section), UnknownKeys::kIgnore, loss.get()));
      return std::make_unique<SupervisedMethod>(entry.name, std::move(loss));
    };
    SSL_RETURN_IF_ERROR(registries->methods.Register(entry.name, make));
    SSL_RETURN_IF_ERROR(registries->options.Add(section, [entry] { return entry.make(); }));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterSupervised(Registries* registries) {
  if (!registries->AddPackage("supervised")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(RegisterModels(registries));
  SSL_RETURN_IF_ERROR(RegisterOptim(registries));
  SSL_RETURN_IF_ERROR(RegisterMeters(registries));
  SSL_RETURN_IF_ERROR(RegisterLosses(MultipleOutputLosses(), registries));
  return RegisterLosses(TorchLosses(), registries);
}

}  // namespace ssl
