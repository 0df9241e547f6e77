// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/embedding_checks.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/state_dict.h"

namespace ssl {
namespace {

// weight_v: the directions of a layer whose weight is normalised, of its shape.
bool IsHeadMatrix(const NamedTensor& entry) {
  const bool is_weight = absl::EndsWith(entry.name, ".weight") || absl::EndsWith(entry.name, ".weight_v");
  return absl::StartsWith(entry.name, "heads.") && is_weight && entry.tensor.dim() == 2;
}

std::string WidthKey(const EmbeddingShape& expected) {
  return absl::StrCat("config.LOSS.", expected.loss, ".", expected.width_key);
}

}  // namespace

absl::Status CheckHeadWidth(Model& model, const EmbeddingShape& expected) {
  // The state, not the parameters: it has the frozen ones, too.
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(model));
  const auto last = std::find_if(state.rbegin(), state.rend(), &IsHeadMatrix);
  if (last == state.rend() || last->tensor.size(0) == expected.width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(WidthKey(expected), " is ", expected.width, ", but the last layer of the heads, ", last->name,
                   ", gives ", last->tensor.size(0), " values (config.MODEL.HEAD.PARAMS); expected the same number"));
}

absl::Status CheckEmbeddings(const StepContext& context, const EmbeddingShape& expected) {
  if (context.batch != nullptr && static_cast<int64_t>(context.batch->views.size()) != expected.num_views) {
    return absl::InvalidArgumentError(absl::StrCat("batch has ", context.batch->views.size(), " views, ", expected.loss,
                                                   " expects ", expected.num_views, " (config.DATA.TRAIN.TRANSFORMS)"));
  }
  if (context.outputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("model returned ", context.outputs.size(), " outputs, ",
                                                   expected.loss, " expects 1: embeddings (config.MODEL.HEAD.PARAMS)"));
  }
  const at::Tensor& embeddings = context.outputs[0];
  if (embeddings.dim() == 2 && embeddings.size(1) == expected.width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("embeddings have shape [", absl::StrJoin(embeddings.sizes(), ", "),
                                                 "], expected [rows, ", expected.width, "] (", WidthKey(expected),
                                                 ")"));
}

}  // namespace ssl
