// SPDX-License-Identifier: Apache-2.0
//
// Everything that a configuration may name. Filled by plain functions, one per package:
//
//   ssl::Registries registries;
//   SSL_RETURN_IF_ERROR(ssl::RegisterSwav(&registries));
#ifndef SSL_CORE_REGISTRIES_H_
#define SSL_CORE_REGISTRIES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"
#include "ssl/core/component.h"
#include "ssl/core/registry.h"
#include "ssl/io/file_system.h"

namespace ssl {

class BatchSource;
class Communicator;
class Dataset;
class DeviceGraph;
class Engine;
class Head;
class Hook;
class Meter;
class Method;
class MetricSink;
class Model;
class Optimizer;
class ParameterGrouper;
class Schedule;
class StopToken;
class TrainStep;
class Transform;
class Trunk;
struct Registries;

// What a factory may use of the run. Valid during the call only.
struct BuildContext {
  const ConfigNode& config;  // the resolved tree under "config"
  const Registries& registries;
  Communicator& communicator;
  int64_t seed = 0;
  std::string run_directory = {};               // "" when the run keeps no files
  int64_t first_iteration = 0;                  // where a resumed run goes on; known when sinks are made
  FileSystem& file_system = PosixFileSystem();  // what files are read and written through; outlives the run
  // Asked by what may take long, such as the scan of a huge folder, which is Cancelled then. Null: nobody stops it.
  const StopToken* stop = nullptr;
  // The run's, prepared, when hooks are made; outlives them.
  Method* method = nullptr;
  // The method's, which the run has already when configured hooks are made: their names are taken.
  std::vector<std::string> hook_names = {};
  // When configured hooks and sinks are made: where the keys of params stand, "KNN" at "config.HOOKS.EVAL.KNN".
  const std::map<std::string, std::string>* key_paths = nullptr;
};

// Fills in a setting that follows from others (the number of crops from the transforms); `config` is the tree under
// "config", `registries` those of the run, with what a host has registered after the resolver. Reports a contradiction
// as InvalidArgument with both locations.
using Resolver = std::function<absl::Status(const Registries& registries, ConfigNode* config)>;

struct Registries {
  Registry<BatchSource> batch_sources{"data set type"};  // DATA.<SPLIT>.BASE_DATASET; params: the DATA.<SPLIT> node
  Registry<Dataset> datasets{"data source"};             // DATA.<SPLIT>.DATA_SOURCES; params: the DATA.<SPLIT> node
  // By the type of device, as "cuda" (device_graph.h); params: the TRAINER node
  Registry<DeviceGraph> device_graphs{"device graph"};
  Registry<Engine> engines{"engine"};                // engine_name; params: the tree under "config"
  Registry<Head> heads{"head"};                      // MODEL.HEAD.PARAMS; params: the head's own arguments
  Registry<Hook> hooks{"hook"};                      // params: the hook's own options
  Registry<Meter> meters{"meter"};                   // METERS.names; params: the METERS.<name> node
  Registry<Method> methods{"loss"};                  // LOSS.name; params: the LOSS.<name> node
  Registry<MetricSink> metric_sinks{"metric sink"};  // params: the sink's own options
  Registry<Model> models{"model"};                   // MODEL.BASE_MODEL_NAME; params: the MODEL node
  Registry<Optimizer> optimizers{"optimizer"};       // OPTIMIZER.name; params: the OPTIMIZER node
  // OPTIMIZER.param_group_constructor; params: the OPTIMIZER node
  Registry<ParameterGrouper> parameter_groupers{"parameter grouping"};
  Registry<Schedule> schedules{"schedule"};       // param_schedulers.<x>.name; params: that node
  Registry<TrainStep> train_steps{"train step"};  // TRAINER.TRAIN_STEP_NAME; params: the TRAINER node
  Registry<Transform> transforms{"transform"};    // TRANSFORMS entries; params: the entry
  Registry<Trunk> trunks{"trunk"};                // MODEL.TRUNK.NAME; params: the MODEL.TRUNK node

  // The configuration keys that the registered components read, with defaults and one line of help each.
  OptionCatalog options;

  // DATASET_NAMES entry -> folder with its files, used where DATA_PATHS is empty.
  std::map<std::string, std::string> dataset_folders;

  // Those of the hooks and metric sinks that keys of the configuration turn on, by name.
  std::map<std::string, Component> hook_components;
  std::map<std::string, Component> sink_components;

  // The hooks and sinks that the configuration turns on. A run in which nobody set them has only its method's hooks
  // and those that the host adds.
  std::function<absl::StatusOr<std::vector<std::unique_ptr<Hook>>>(const BuildContext&)> configured_hooks;
  std::function<absl::StatusOr<std::vector<std::unique_ptr<MetricSink>>>(const BuildContext&)> configured_sinks;

  // Fills a new model with the weights that MODEL.WEIGHTS_INIT names; called when no checkpoint is there to resume.
  // Null: models keep the weights they are made with.
  std::function<absl::Status(Model& model, const BuildContext& context)> initialize_weights;

  // Run in this order on the composed tree, before anything is built.
  std::vector<Resolver> resolvers;

  // True the first time that `package` asks, so that packages can register the packages they build on.
  bool AddPackage(const std::string& package) { return packages_.insert(package).second; }

 private:
  std::set<std::string> packages_;
};

}  // namespace ssl

#endif  // SSL_CORE_REGISTRIES_H_
