// SPDX-License-Identifier: Apache-2.0
//
// What hooks that draw have in common: which stage of a trunk, on which images, and where the drawings go.
#ifndef SSL_HOOKS_DRAWN_STAGE_H_
#define SSL_HOOKS_DRAWN_STAGE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/hook.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"

namespace ssl {

// The sides of a drawing, in pixels.
inline constexpr int64_t kDrawingSize = 224;

// `stage`, or the last one that is a map when it is "". NotFound, with the nearest name, when the trunk has no such
// stage, InvalidArgument for one that is pooled, and FailedPrecondition when it has none that is a map; `place` begins
// the message.
absl::StatusOr<std::string> DrawnStage(const Model& model, const std::string& stage, absl::string_view place);

// The first `most` images of view `view` of the batch, [B, C, H, W]. FailedPrecondition for a batch without it.
absl::StatusOr<at::Tensor> DrawnImages(const StepContext& context, int64_t view, int64_t most);

// Warns of a map, [B, C, h, w], of one pixel, whose drawings show nothing: once for each stage, which is added to
// `told`.
void WarnOfOnePixel(const at::Tensor& map, const Hook& hook, const std::string& stage, std::set<std::string>* told);

// The folder of a hook's drawings, `save_dir` of its options. InvalidArgument, with file and line, when that is no path
// inside the run; FailedPrecondition for a run that keeps no files.
absl::StatusOr<OutputFolder> DrawingFolder(const std::string& save_dir, absl::string_view hook,
                                           const ConfigNode& params, const BuildContext& context);

// Keeps `drawings`, [B, H, W, 3] uint8, for the sinks and as the files
//   <folder>/iteration_<iteration>/<name>.<what>_0.png, ...
// where <name> is the hook's instance_name(), which no other hook of the run has: several hooks may share a folder.
absl::Status KeepDrawings(const at::Tensor& drawings, const Hook& hook, const std::string& what,
                          const OutputFolder& folder, FileSystem& file_system, StepContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_DRAWN_STAGE_H_
