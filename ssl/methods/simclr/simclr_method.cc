// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/simclr/simclr_method.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/step_context.h"

namespace ssl {

SimclrMethod::SimclrMethod(const std::string& name, const InfoNceOptions& options, int64_t embedding_dim)
    : options_(options), embeddings_{name, "buffer_params.embedding_dim", options.num_views, embedding_dim} {}

absl::Status SimclrMethod::Prepare(StepContext& context) {
  const int64_t ranks = options_.negatives_of_all_ranks ? context.communicator.size() : 1;
  if (context.batch_size * ranks < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is ", context.batch_size, ", the images to tell apart on ", ranks,
        ranks == 1 ? " rank" : " ranks", "; expected at least 2, for an image is compared with others, and as many ",
        "images in config.DATA.TRAIN.DATA_PATHS"));
  }
  return CheckHeadWidth(context.model, embeddings_);
}

absl::Status SimclrMethod::ComputeLoss(StepContext& context) {
  SSL_RETURN_IF_ERROR(CheckEmbeddings(context, embeddings_));
  SSL_ASSIGN_OR_RETURN(context.loss, InfoNce(context.outputs[0], options_, context.communicator));
  return absl::OkStatus();
}

}  // namespace ssl
