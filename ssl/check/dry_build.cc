// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/dry_build.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_util.h"
#include "ssl/base/stop_token.h"
#include "ssl/base/torch_guard.h"
#include "ssl/check/named_components.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/algorithm_scope.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/core_options.h"
#include "ssl/core/hook.h"
#include "ssl/core/label_check.h"
#include "ssl/core/meter.h"
#include "ssl/core/method.h"
#include "ssl/core/model.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/phases_builder.h"
#include "ssl/core/run_device.h"
#include "ssl/core/schedule.h"
#include "ssl/core/session.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/dataset_builder.h"
#include "ssl/data/transform.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/preview_communicator.h"
#include "ssl/engines/engine.h"

namespace ssl {
namespace {

constexpr char kDirectory[] = "config.CHECKPOINT.DIR";
constexpr char kNoDirectory[] = "";
constexpr char kSomeDirectory[] = "runs";  // a run that chooses none is given one

// Adds the place and the key of `node` where the message has no place of that file. Damage is in what the message
// names.
absl::Status WithPlace(const absl::Status& status, const ConfigNode& node, const std::string& path) {
  const std::string& file = node.location().file;
  const bool has_place = absl::IsDataLoss(status) || absl::StrContains(status.message(), absl::StrCat(file, ":"));
  if (file.empty() || has_place) return status;
  return Annotate(status, absl::StrCat(node.location().ToString(), ": ", path));
}

// Of the ranks that the configuration is for, of which the others are imagined.
std::unique_ptr<Communicator> RanksOf(const ConfigNode& config) {
  const int64_t ranks = ReadWorldShape(config).value_or(WorldShape()).ranks();
  return ranks == 1 ? MakeLocalCommunicator() : MakePreviewCommunicator(ranks);
}

class Builder {
 public:
  // directory: the one that the run would have. `root` names none, so that nothing is opened or written.
  Builder(const ConfigNode& root, const Registries& registries, std::string directory)
      : root_(root),
        config_(*root.Find("config")),
        directory_(std::move(directory)),
        communicator_(RanksOf(config_)),
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

  // The model, the method, and the data sets that the phases of training read.
  void MakeModelAndData() {
    const absl::StatusOr<TaskOptions> options = ReadTaskOptions(config_);
    if (!options.ok()) return Add(options.status(), config_, "config");
    Make(context_.registries.models, options->model_name, config_.Section("MODEL"), "config.MODEL");
    MakeMethod(options->loss.name);
    const RunOptions& run = options->run;
    const PhasesBuilder phases{options->num_epochs, TestCadence(run), run.test_model, run.test_only};
    for (const std::string& split : phases.AvailableSplits()) MakeDataset(split);
  }

  absl::Status CheckDevice() {
    bool is_used = false;
    for (const std::string& name : EngineNames(root_)) {
      const absl::StatusOr<std::unique_ptr<Engine>> engine = context_.registries.engines.Make(name, config_, context_);
      is_used |= engine.ok() && (*engine)->uses_device();
    }
    const absl::StatusOr<TaskOptions> options = ReadTaskOptions(config_);
    if (!is_used || !options.ok()) return absl::OkStatus();
    const absl::Status device = RunDevice(options->machine, config_, *communicator_).status();
    return device.ok() ? CheckCublasWorkspace(*options, config_) : device;
  }

  // What an evaluation after the training would find wrong then. run: the directory, where the configuration has one:
  // engines look into it, and write nothing there.
  void CheckEngines(const std::string& run) {
    StopToken stop;
    ConfigNode results = ConfigNode::Map();
    EngineContext context{config_, context_.registries, *communicator_, stop, context_.file_system, run, results};
    for (const std::string& name : EngineNames(root_)) {
      const auto check = [&]() -> absl::Status {
        const absl::StatusOr<std::unique_ptr<Engine>> engine =
            context_.registries.engines.Make(name, config_, context_);
        return engine.ok() ? (*engine)->Check(context) : absl::OkStatus();  // MakeParts has said so
      };
      Add(GuardTorch(name, check), *root_.Find("engine_name"), absl::StrCat("engine ", name));
      context.earlier_engines.push_back(name);
    }
  }

  void OpenSession() {
    SessionOptions options;
    options.communicator = communicator_.get();
    options.without_device = true;
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(config_, WithDirectory(), std::move(options));
    absl::Status status = session.status();
    if (status.ok()) status = (*session)->Start();
    Add(status, config_, "config");
  }

  // The session checks labels too, but cannot be opened where anything else is wrong.
  void CheckTrainLabels() {
    const ConfigNode& section = config_.Section("DATA.TRAIN");
    const absl::StatusOr<DataSplitOptions> split = ReadDataSplit(section, config_);
    if (method_ == nullptr || !split.ok() || split->data_sources.empty()) return;
    absl::Status labels;
    const auto check = [&]() -> absl::Status {
      const absl::StatusOr<std::unique_ptr<BatchSource>> source =
          context_.registries.batch_sources.Make(split->base_dataset, section, context_);
      if (source.ok()) labels = CheckLabels(*method_, "TRAIN", **source, config_);  // else the data set has said so
      return absl::OkStatus();
    };
    if (GuardTorch("config.DATA.TRAIN", check).ok()) Add(labels, section, "config.DATA.TRAIN");
  }

 private:
  // The registries, with hooks that are made for the directory of the run: the session has none, but what a hook would
  // write there is no mistake. Hooks write from their first step on, which this session does not reach.
  Registries WithDirectory() const {
    Registries registries = context_.registries;
    if (registries.configured_hooks == nullptr) return registries;
    registries.configured_hooks = [make = registries.configured_hooks, this](const BuildContext& context) {
      BuildContext of_run = context;
      of_run.run_directory = directory_;
      return make(of_run);
    };
    return registries;
  }

  void MakeMethod(const std::string& name) {
    const std::string path = absl::StrCat("LOSS.", name);
    const ConfigNode& params = config_.Section(path);
    Add(GuardTorch(absl::StrCat("config.", path),
                   [&]() -> absl::Status {
                     absl::StatusOr<std::unique_ptr<Method>> method =
                         context_.registries.methods.Make(name, params, context_);
                     if (!method.ok()) return method.status();
                     method_ = *std::move(method);
                     return absl::OkStatus();
                   }),
        params, absl::StrCat("config.", path));
  }

  // Reads the list of samples, not the samples.
  void MakeDataset(const std::string& split) {
    const std::string path = absl::StrCat("DATA.", split);
    if (config_.FindPath(absl::StrCat(path, ".DATA_SOURCES"))->items().empty()) return;  // the session says so
    Add(BuildDataset(config_.Section(path), context_).status(), config_.Section(path), absl::StrCat("config.", path));
  }

  void Add(const absl::Status& status, const ConfigNode& node, const std::string& path) {
    if (!status.ok()) problems_.push_back(WithPlace(status, node, path));
  }

  const ConfigNode& root_;
  const ConfigNode& config_;
  const std::string directory_;
  std::unique_ptr<Communicator> communicator_;
  BuildContext context_;
  std::unique_ptr<Method> method_;  // when it can be built
  std::vector<absl::Status> problems_;
};

}  // namespace

absl::Status CheckDeviceIsHere(const ConfigNode& root, const Registries& registries) {
  return GuardTorch("looking for the device", [&] { return Builder(root, registries, kNoDirectory).CheckDevice(); });
}

std::vector<absl::Status> DryBuild(const ConfigNode& root, const Registries& registries) {
  const ConfigNode* directory = root.FindPath(kDirectory);
  const bool is_chosen = directory != nullptr && !directory->text().empty();
  ConfigNode without_files = root;
  without_files.SetPath(kDirectory, ConfigNode::FromString(kNoDirectory));
  Builder builder(without_files, registries, is_chosen ? directory->text() : kSomeDirectory);
  builder.MakeParts();
  if (MeansToTrain(root)) {
    builder.MakeModelAndData();
    if (builder.ok()) {
      builder.OpenSession();
    } else {
      builder.CheckTrainLabels();
    }
  }
  if (builder.ok()) builder.CheckEngines(is_chosen ? directory->text() : kNoDirectory);
  return builder.Take();
}

}  // namespace ssl
