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

// Whether the test images are others than those of DATA.TRAIN.
bool NamesTestSet(const ConfigNode& config) {
  const ConfigNode& test = config.Section("DATA.TEST");
  const auto has_items = [&test](const char* key) {
    const ConfigNode* list = test.Find(key);
    return list != nullptr && !list->items().empty();
  };
  return has_items("DATA_SOURCES") || has_items("DATA_PATHS");
}

// The images of "TRAIN" or "TEST".
absl::StatusOr<std::unique_ptr<Dataset>> Open(const char* split, EngineContext& context) {
  absl::StatusOr<std::unique_ptr<Dataset>> dataset = OpenSplitDataset(split, context);
  SSL_RETURN_IF_ERROR(
      AgreeOnStatus(dataset.status(), absl::StrCat("opening config.DATA.", split), context.communicator));
  return dataset;
}

// Whether an accuracy can be told, by which the log says why not. context: as configured; complete: as planned. A part
// that is held out of DATA.TRAIN is looked at as part of it.
absl::StatusOr<bool> KnowsClasses(EngineContext& context, EngineContext& complete, std::string* reason) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> train, Open("TRAIN", context));
  if (!HasClassesToCompare(*train)) {
    *reason = "the images have no classes to compare";
    return false;
  }
  if (!NamesTestSet(context.config)) return true;
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> test, Open("TEST", complete));
  *reason = absl::StrCat("the test images (", test->description(), ") have no classes");
  return test->has_labels();
}

class EvaluateEngine : public Engine {
 public:
  EvaluateEngine(std::unique_ptr<Engine> knn, std::unique_ptr<Engine> neighbors)
      : knn_(std::move(knn)), neighbors_(std::move(neighbors)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    // Planned once: a complete configuration leaves nothing to choose or to tell.
    return WithEvaluationPlan("evaluate", context, [&](EngineContext& complete) { return RunAll(context, complete); });
  }

  absl::Status Check(EngineContext& context) const override {
    return CheckWithEvaluationPlan(context, [&](EngineContext& complete) -> absl::Status {
      std::string reason;
      SSL_ASSIGN_OR_RETURN(const bool knows_classes, KnowsClasses(context, complete, &reason));
      if (knows_classes) SSL_RETURN_IF_ERROR(knn_->Check(complete));
      return neighbors_->Check(complete);
    });
  }

 private:
  absl::StatusOr<EngineReport> RunAll(EngineContext& configured, EngineContext& context) const {
    std::string reason;
    SSL_ASSIGN_OR_RETURN(const bool knows_classes, KnowsClasses(configured, context, &reason));
    EngineReport report;
    if (knows_classes) {
      SSL_ASSIGN_OR_RETURN(report, knn_->Run(context));
      if (report.stopped) return report;
    } else {
      SSL_LOG(INFO) << "evaluation: " << reason
                    << ", so that there is no accuracy; folders of images, one for each class, with several images in "
                       "each, would be such";
    }
    const absl::StatusOr<EngineReport> neighbors = neighbors_->Run(context);
    report.verdict.Update(neighbors.status());
    // The accuracies are there whatever becomes of the sheets. Without them, an error is all that is left to tell.
    if (!neighbors.ok()) return knows_classes ? report : absl::StatusOr<EngineReport>(neighbors.status());
    report.stopped = neighbors->stopped;
    absl::StrAppend(&report.summary, neighbors->summary);
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
