// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/linear_eval_heads_grouper.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "re2/re2.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/optimizer_options.h"
#include "ssl/optim/parameter_rules.h"

namespace ssl {
namespace {

// The number of the head that `name` is part of; -1 outside heads.
int64_t HeadOf(const std::string& name) {
  int64_t head = -1;
  RE2::PartialMatch(name, R"(^heads\.([0-9]+)\.)", &head);
  return head;
}

class LinearEvalHeadsGrouper : public ParameterGrouper {
 public:
  LinearEvalHeadsGrouper(std::vector<LinearEvalHeadOptions> heads, bool regularize_bias, std::string location)
      : heads_(std::move(heads)), regularize_bias_(regularize_bias), location_(std::move(location)) {}

  absl::StatusOr<std::vector<ParameterGroup>> Group(std::vector<NamedParameter> parameters) const override {
    const LayerKinds kinds(parameters);
    std::vector<NamedParameter> of_heads;
    for (NamedParameter& parameter : parameters) {
      const int64_t head = HeadOf(parameter.name);
      if (head >= static_cast<int64_t>(heads_.size())) {
        return absl::InvalidArgumentError(
            absl::StrCat(location_, ": config.OPTIMIZER.linear_eval_heads has ", heads_.size(),
                         " entries, expected one for each head; parameter ", parameter.name, " has none"));
      }
      if (head >= 0) of_heads.push_back(std::move(parameter));
    }
    return FormGroups(std::move(of_heads), [&](const NamedParameter& parameter) {
      const int64_t head = HeadOf(parameter.name);
      const LinearEvalHeadOptions& settings = heads_[static_cast<size_t>(head)];
      const bool regularized = kinds.Regularized(parameter.name, {settings.regularize_bn, regularize_bias_});
      ParameterGroup group =
          MakeGroup(absl::StrCat("head", head, "_"), regularized, settings.weight_decay, /*schedule=*/"");
      group.learning_rate_scale = settings.learning_rate_scale;
      return group;
    });
  }

 private:
  const std::vector<LinearEvalHeadOptions> heads_;
  const bool regularize_bias_;
  const std::string location_;  // of linear_eval_heads
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeLinearEvalHeadsGrouperFromConfig(const ConfigNode& params,
                                                                                       const BuildContext& context) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  std::vector<LinearEvalHeadOptions> heads;
  for (const ConfigNode& entry : options.linear_eval_heads.items()) {
    const std::string path = absl::StrCat("config.OPTIMIZER.linear_eval_heads.", heads.size());
    if (entry.Find("lr") == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(entry.location().ToString(), ": ", path,
                                                     ".lr is missing, expected a factor of the learning rate"));
    }
    LinearEvalHeadOptions head;
    head.weight_decay = options.weight_decay;
    head.regularize_bn = options.regularize_bn;
    SSL_RETURN_IF_ERROR(ReadOptions(entry, path, UnknownKeys::kError, &head));
    heads.push_back(head);
  }
  const ConfigNode* list = params.Find("linear_eval_heads");
  return std::make_unique<LinearEvalHeadsGrouper>(std::move(heads), options.regularize_bias,
                                                  (list == nullptr ? params : *list).location().ToString());
}

}  // namespace ssl
