// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/dino_grouper.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/optimizer_options.h"
#include "ssl/optim/parameter_rules.h"

namespace ssl {
namespace {

class DinoGrouper : public ParameterGrouper {
 public:
  DinoGrouper(double weight_decay, std::string schedule)
      : weight_decay_(weight_decay), schedule_(std::move(schedule)) {}

  absl::StatusOr<std::vector<ParameterGroup>> Group(std::vector<NamedParameter> parameters) const override {
    return FormGroups(std::move(parameters), [&](const NamedParameter& parameter) {
      const bool regularized = !IsBias(parameter.name) && !absl::StrContains(parameter.name, "norm");
      return MakeGroup("", regularized, weight_decay_, schedule_);
    });
  }

 private:
  const double weight_decay_;
  const std::string schedule_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeDinoGrouperFromConfig(const ConfigNode& params,
                                                                            const BuildContext& context) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  return std::make_unique<DinoGrouper>(options.weight_decay,
                                       options.param_schedulers.weight_decay.is_map() ? "weight_decay" : "");
}

}  // namespace ssl
