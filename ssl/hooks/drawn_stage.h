// SPDX-License-Identifier: Apache-2.0
//
// Which stage of a trunk hooks draw, and on which images.
#ifndef SSL_HOOKS_DRAWN_STAGE_H_
#define SSL_HOOKS_DRAWN_STAGE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/model.h"
#include "ssl/core/step_context.h"

namespace ssl {

// The sides of a drawing, in pixels.
inline constexpr int64_t kDrawingSize = 224;

// `stage`, or the last one that is a map when it is "". NotFound, with the nearest name, when the trunk has no such
// stage, and FailedPrecondition when it has none that is a map; `place` begins the message.
absl::StatusOr<std::string> DrawnStage(const Model& model, const std::string& stage, absl::string_view place);

// What the files of `hook` are called: the stage, behind its own name for an instance that has one, so that several
// hooks may share a folder.
std::string DrawingName(const Hook& hook, const std::string& stage);

// The first `most` images of view `view` of the batch, [B, C, H, W]. FailedPrecondition for a batch without it.
absl::StatusOr<at::Tensor> DrawnImages(const StepContext& context, int64_t view, int64_t most);

}  // namespace ssl

#endif  // SSL_HOOKS_DRAWN_STAGE_H_
