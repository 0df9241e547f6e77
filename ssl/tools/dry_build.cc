// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/dry_build.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/hook.h"
#include "ssl/core/meter.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/schedule.h"
#include "ssl/core/session.h"
#include "ssl/data/dataset.h"
#include "ssl/data/dataset_builder.h"
#include "ssl/data/transform.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/tools/named_components.h"
#include "ssl/tools/setting_checks.h"

namespace ssl {
namespace {

constexpr char kNoDirectory[] = "";

std::vector<std::string> EngineNames(const ConfigNode& root) {
  std::vector<std::string> names;
  for (const NamedComponent& component : NamedComponents(root)) {
    if (component.kind == "engine") names.push_back(component.name);
  }
  return names;
}

// Losses whose labels are classes.
bool TakesClasses(const std::string& loss) {
  static constexpr const char* kNames[] = {"CrossEntropyLoss", "MultiMarginLoss", "NLLLoss",
                                           "cross_entropy_multiple_output_single_target"};
  return std::find(std::begin(kNames), std::end(kNames), loss) != std::end(kNames);
}

// Adds the place and the key of `node` where the message has no place of that file.
absl::Status WithPlace(const absl::Status& status, const ConfigNode& node, const std::string& path) {
  const std::string& file = node.location().file;
  if (file.empty() || absl::StrContains(status.message(), absl::StrCat(file, ":"))) return status;
  return Annotate(status, absl::StrCat(node.location().ToString(), ": ", path));
}

class Builder {
 public:
  Builder(const ConfigNode& root, const Registries& registries)
      : root_(root),
        config_(*root.Find("config")),
        communicator_(MakeLocalCommunicator()),
        context_{config_, registries, *communicator_} {}

  std::vector<absl::Status> Take() { return std::move(problems_); }
  bool ok() const { return problems_.empty(); }

  template <class Interface>
  void Make(const Registry<Interface>& registry, const std::string& name, const ConfigNode& params,
            const std::string& path) {
    const auto make = [&] { return registry.Make(name, params, context_).status(); };
    Add(GuardTorch(path, make), params, path);
  }

  // Entries of a list, each a map with a name.
  template <class Interface>
  void MakeEach(const Registry<Interface>& registry, const std::string& list) {
    const ConfigNode* node = config_.FindPath(list);
    for (size_t i = 0; node != nullptr && i < node->items().size(); ++i) {
      const ConfigNode& entry = node->items()[i];
      const std::string path = absl::StrCat("config.", list, ".", i);
      const ConfigNode* name = entry.Find("name");
      if (name == nullptr) {
        Add(absl::InvalidArgumentError("has no name, expected a map with a name"), entry, path);
      } else {
        Make(registry, name->text(), entry, path);
      }
    }
  }

  void MakeParts() {
    const Registries& registries = context_.registries;
    for (const std::string& name : EngineNames(root_)) Make(registries.engines, name, config_, "engine_name");
    MakeEach(registries.transforms, "DATA.TRAIN.TRANSFORMS");
    MakeEach(registries.transforms, "DATA.TEST.TRANSFORMS");
    for (const auto& [name, schedule] : config_.Section("OPTIMIZER.param_schedulers").entries()) {
      const ConfigNode* kind = schedule.Find("name");
      if (kind == nullptr || kind->text().empty()) continue;
      Make(registries.schedules, kind->text(), schedule, absl::StrCat("config.OPTIMIZER.param_schedulers.", name));
    }
    const ConfigNode& optimizer = config_.Section("OPTIMIZER");
    Make(registries.optimizers, optimizer.FindPath("name")->text(), optimizer, "config.OPTIMIZER");
    for (const ConfigNode& meter : config_.Section("METERS").FindPath("names")->items()) {
      const std::string path = absl::StrCat("METERS.", meter.text());
      Make(registries.meters, meter.text(), config_.Section(path), absl::StrCat("config.", path));
    }
  }

  void OpenSession() {
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(config_, context_.registries, {});
    absl::Status status = session.status();
    if (status.ok()) status = (*session)->Start();
    Add(status, config_, "config");
  }

  // Every label has to be an output of the last head.
  void CheckLabels() {
    const ConfigNode& split = config_.Section("DATA.TRAIN");
    const int64_t outputs = LastHeadOutputs(config_);
    if (outputs == 0 || split.FindPath("LABEL_TYPE")->text() != "standard") return;
    if (!TakesClasses(config_.FindPath("LOSS.name")->text())) return;
    const absl::StatusOr<std::unique_ptr<Dataset>> dataset = BuildDataset(split, context_);
    if (!dataset.ok()) return Add(dataset.status(), split, "config.DATA.TRAIN");
    int64_t highest = -1;
    for (int64_t i = 0; i < (*dataset)->size(); ++i) highest = std::max(highest, (*dataset)->Label(i));
    if ((*dataset)->has_labels() && highest < outputs) return;
    const std::string labels = (*dataset)->has_labels() ? absl::StrCat("label ", highest) : "no labels";
    problems_.push_back(absl::InvalidArgumentError(
        absl::StrCat(split.Find("DATA_SOURCES")->location().ToString(),
                     ": config.DATA.TRAIN.DATA_SOURCES: ", (*dataset)->description(), " has ", labels,
                     ", expected labels below ", outputs, ", the outputs of config.MODEL.HEAD.PARAMS (",
                     config_.FindPath("MODEL.HEAD.PARAMS")->location().ToString(), ")")));
  }

 private:
  void Add(const absl::Status& status, const ConfigNode& node, const std::string& path) {
    if (!status.ok()) problems_.push_back(WithPlace(status, node, path));
  }

  const ConfigNode& root_;
  const ConfigNode& config_;
  std::unique_ptr<Communicator> communicator_;
  BuildContext context_;
  std::vector<absl::Status> problems_;
};

}  // namespace

std::vector<absl::Status> DryBuild(const ConfigNode& root, const Registries& registries) {
  ConfigNode without_files = root;
  without_files.SetPath("config.CHECKPOINT.DIR", ConfigNode::FromString(kNoDirectory));
  Builder builder(without_files, registries);
  builder.MakeParts();
  const std::vector<std::string> engines = EngineNames(root);
  const bool trains = std::find(engines.begin(), engines.end(), "train") != engines.end();
  if (trains && builder.ok()) builder.OpenSession();
  if (trains && builder.ok()) builder.CheckLabels();
  return builder.Take();
}

}  // namespace ssl
