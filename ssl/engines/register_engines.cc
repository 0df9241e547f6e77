// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/register_engines.h"

#include <memory>
#include <string>
#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/engines/check_data_engine.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/estimate_engine.h"
#include "ssl/engines/evaluate_engine.h"
#include "ssl/engines/export_engine.h"
#include "ssl/engines/extract_features_engine.h"
#include "ssl/engines/folder_recipe.h"
#include "ssl/engines/full_tune_engine.h"
#include "ssl/engines/knn_engine.h"
#include "ssl/engines/label_predictions_engine.h"
#include "ssl/engines/linear_eval_engine.h"
#include "ssl/engines/neighbors_engine.h"
#include "ssl/engines/preview_engine.h"
#include "ssl/engines/train_engine.h"

namespace ssl {

absl::Status RegisterEngines(Registries* registries) {
  if (!registries->AddPackage("engines")) return absl::OkStatus();
  Registry<Engine>& engines = registries->engines;
  SSL_RETURN_IF_ERROR(engines.Register("check_data", MakeCheckDataEngine));
  SSL_RETURN_IF_ERROR(engines.Register("estimate", MakeEstimateEngine));
  SSL_RETURN_IF_ERROR(engines.Register("evaluate", MakeEvaluateEngine));
  SSL_RETURN_IF_ERROR(engines.Register("export", MakeExportEngine));
  SSL_RETURN_IF_ERROR(engines.Register("extract_features", MakeExtractFeaturesEngine));
  SSL_RETURN_IF_ERROR(engines.Register("extract_label_predictions", MakeLabelPredictionsEngine));
  SSL_RETURN_IF_ERROR(engines.Register("full_tune", MakeFullTuneEngine));
  SSL_RETURN_IF_ERROR(engines.Register("knn", MakeKnnEngine));
  SSL_RETURN_IF_ERROR(engines.Register("linear_eval", MakeLinearEvalEngine));
  SSL_RETURN_IF_ERROR(engines.Register("neighbors", MakeNeighborsEngine));
  SSL_RETURN_IF_ERROR(engines.Register("preview", MakePreviewEngine));
  SSL_RETURN_IF_ERROR(engines.Register("train", MakeTrainEngine));

  // Before the packages whose resolvers scale by the batch or count crops: ssl/builtins.cc registers them later.
  registries->resolvers.push_back(&ResolveFolderRecipe);

  OptionCatalog& options = registries->options;
  // An evaluation's settings may change while its run goes on.
  const auto add = [&options](std::string section, OptionCatalog::Factory make) {
    return options.Add(std::move(section), std::move(make), AtResume::kMayChange);
  };
  SSL_RETURN_IF_ERROR(add("CHECK_DATA", [] { return std::make_unique<CheckDataOptions>(); }));
  SSL_RETURN_IF_ERROR(add("EXPORT", [] { return std::make_unique<ExportEngineOptions>(); }));
  SSL_RETURN_IF_ERROR(add("EXTRACT_FEATURES", [] { return std::make_unique<ExtractFeaturesOptions>(); }));
  SSL_RETURN_IF_ERROR(add("FULL_TUNE", [] { return std::make_unique<FullTuneOptions>(); }));
  SSL_RETURN_IF_ERROR(options.Add("FOLDER_RECIPE", [] { return std::make_unique<FolderRecipeOptions>(); }));
  SSL_RETURN_IF_ERROR(add("LINEAR_EVAL", [] { return std::make_unique<LinearEvalOptions>(); }));
  SSL_RETURN_IF_ERROR(add("NEAREST_NEIGHBOR", [] { return std::make_unique<NearestNeighborOptions>(); }));
  SSL_RETURN_IF_ERROR(add("NEIGHBORS", [] { return std::make_unique<NeighborsOptions>(); }));
  return add("PREVIEW", [] { return std::make_unique<PreviewOptions>(); });
}

}  // namespace ssl
