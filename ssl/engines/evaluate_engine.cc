// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluate_engine.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/dataset.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/knn_engine.h"
#include "ssl/engines/neighbors_engine.h"

namespace ssl {
namespace {

// Two classes, and one with two images: one to hold out, and one that it may be recognised by.
bool HasClassesToCompare(const Dataset& dataset) {
  if (!dataset.has_labels()) return false;
  std::set<int64_t> classes;
  for (int64_t i = 0; i < dataset.size(); ++i) classes.insert(dataset.Label(i));
  return classes.size() > 1 && static_cast<int64_t>(classes.size()) < dataset.size();
}

absl::StatusOr<bool> KnowsClasses(EngineContext& context) {
  const absl::StatusOr<std::unique_ptr<Dataset>> dataset = OpenSplitDataset("TRAIN", context);
  SSL_RETURN_IF_ERROR(AgreeOnStatus(dataset.status(), "opening config.DATA.TRAIN", context.communicator));
  return HasClassesToCompare(**dataset);
}

class EvaluateEngine : public Engine {
 public:
  EvaluateEngine(std::unique_ptr<Engine> knn, std::unique_ptr<Engine> neighbors)
      : knn_(std::move(knn)), neighbors_(std::move(neighbors)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    SSL_ASSIGN_OR_RETURN(const bool knows_classes, KnowsClasses(context));
    // Planned once: a complete configuration leaves nothing to choose or to tell.
    return WithEvaluationPlan("evaluate", context,
                              [&](EngineContext& complete) { return RunAll(knows_classes, complete); });
  }

  absl::Status Check(EngineContext& context) const override {
    SSL_ASSIGN_OR_RETURN(const bool knows_classes, KnowsClasses(context));
    if (knows_classes) SSL_RETURN_IF_ERROR(knn_->Check(context));
    return neighbors_->Check(context);
  }

 private:
  absl::StatusOr<EngineReport> RunAll(bool knows_classes, EngineContext& context) const {
    std::string summary;
    if (knows_classes) {
      SSL_ASSIGN_OR_RETURN(EngineReport report, knn_->Run(context));
      if (report.stopped) return report;
      summary = std::move(report.summary);
    } else {
      SSL_LOG(INFO) << "evaluation: the images have no classes to compare, so that there is no accuracy; folders of "
                       "images, one for each class, with several images in each, would be such";
    }
    SSL_ASSIGN_OR_RETURN(EngineReport report, neighbors_->Run(context));
    report.summary = absl::StrCat(summary, report.summary);
    return report;
  }

  const std::unique_ptr<Engine> knn_;
  const std::unique_ptr<Engine> neighbors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeEvaluateEngine(const ConfigNode& config, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Engine> knn, MakeKnnEngine(config, context));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Engine> neighbors, MakeNeighborsEngine(config, context));
  return std::make_unique<EvaluateEngine>(std::move(knn), std::move(neighbors));
}

}  // namespace ssl
