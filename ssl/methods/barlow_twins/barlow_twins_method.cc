// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/barlow_twins/barlow_twins_method.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/step_context.h"

namespace ssl {

absl::Status BarlowTwinsMethod::Prepare(StepContext& context) {
  const int64_t ranks = context.communicator.size();
  if (context.batch_size * ranks < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is ", context.batch_size, " on ", ranks,
                     " ranks; expected at least 2 images, for features are correlated over a batch"));
  }
  return CheckHeadWidth(context.model, embeddings_);
}

absl::Status BarlowTwinsMethod::ComputeLoss(StepContext& context) {
  SSL_RETURN_IF_ERROR(CheckEmbeddings(context, embeddings_));
  SSL_ASSIGN_OR_RETURN(context.loss, BarlowTwinsLoss(context.outputs[0], options_, context.communicator));
  return absl::OkStatus();
}

}  // namespace ssl
