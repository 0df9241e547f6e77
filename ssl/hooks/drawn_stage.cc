// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/drawn_stage.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/batch.h"
#include "ssl/hooks/folder_in_run.h"
#include "ssl/hooks/heat_map.h"

namespace ssl {
namespace {

// Each once; what follows the blocks is pooled. Empty: the model is no chain of blocks, or its blocks are no stages. One
// that names no stages has those of its blocks.
std::vector<std::string> StagesOfBlocks(const Model& model) {
  const std::vector<std::string> known = model.feature_names();
  std::vector<std::string> stages;
  for (const std::string& block : model.block_names()) {
    std::string stage = block.substr(0, block.find('.'));
    if (!known.empty() && std::count(known.begin(), known.end(), stage) == 0) continue;
    if (stages.empty() || stages.back() != stage) stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace

absl::StatusOr<std::string> DrawnStage(const Model& model, const std::string& stage, absl::string_view place) {
  const std::vector<std::string> maps = StagesOfBlocks(model);
  if (!stage.empty()) {
    const std::vector<std::string> stages = model.feature_names();
    if (std::count(stages.begin(), stages.end(), stage) == 0) {
      return absl::NotFoundError(absl::StrCat(place, " is '", stage, "', which is no stage of the trunk",
                                              DidYouMean(stage, stages), "; expected one of ",
                                              absl::StrJoin(maps.empty() ? stages : maps, ", ")));
    }
    if (maps.empty() || std::count(maps.begin(), maps.end(), stage) > 0) return stage;
    return absl::InvalidArgumentError(absl::StrCat(place, " is '", stage,
                                                   "', which is pooled to one place, expected a ",
                                                   "stage that is a map: ", absl::StrJoin(maps, ", ")));
  }
  if (!maps.empty()) return maps.back();
  return absl::FailedPreconditionError(absl::StrCat(
      place, " is empty, and the model is no chain of stages that are maps, so that its last map is not known"));
}

absl::StatusOr<at::Tensor> DrawnImages(const StepContext& context, int64_t view, int64_t most) {
  const std::vector<at::Tensor>& views = context.batch->views;
  if (view < static_cast<int64_t>(views.size())) {
    const at::Tensor& images = views[static_cast<size_t>(view)];
    return images.narrow(0, 0, std::min(most, images.size(0)));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the batch has ", views.size(), " views, expected at least ", view + 1, " to draw"));
}

void WarnOfOnePixel(const at::Tensor& map, const Hook& hook, const std::string& stage, std::set<std::string>* told) {
  if (map.size(2) * map.size(3) > 1 || !told->insert(stage).second) return;
  SSL_LOG(WARNING) << hook.instance_name() << ": stage '" << stage << "' is a map of one pixel for images of "
                   << "this size, so that its drawings show nothing; layer_name names another stage";
}

absl::StatusOr<OutputFolder> DrawingFolder(const std::string& save_dir, absl::string_view hook,
                                           const ConfigNode& params, const BuildContext& context) {
  SSL_RETURN_IF_ERROR(CheckFolderInRun(params, "save_dir", save_dir, context));
  return FolderInRun(context, absl::StrCat("hook '", hook, "'"), save_dir);
}

absl::Status KeepDrawings(const at::Tensor& drawings, const Hook& hook, const std::string& what,
                          const OutputFolder& folder, FileSystem& file_system, StepContext& context) {
  const OutputFolder of_iteration = folder.Below(absl::StrCat("iteration_", context.state.iteration));
  // Names of instances hold no '.', so that no two pairs of name and `what` make one file.
  const std::string file = absl::StrCat(hook.instance_name(), ".", what);
  SSL_RETURN_IF_ERROR(WriteDrawings(drawings, file, of_iteration, file_system));
  return AddDrawings(drawings, absl::StrCat(hook.instance_name(), "/", what), context.metrics);
}

}  // namespace ssl
