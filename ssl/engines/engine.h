// SPDX-License-Identifier: Apache-2.0
//
// A whole task that the command runs by name (engine_name): train, knn, export.
#ifndef SSL_ENGINES_ENGINE_H_
#define SSL_ENGINES_ENGINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

class RunDirectory;
struct RunProgress;

// References and pointers outlive the run. Engines of one command run one after another and share `results`.
struct EngineContext {
  const ConfigNode& config;  // the resolved tree under "config"
  const Registries& registries;
  Communicator& communicator;
  StopToken& stop;
  FileSystem& file_system;
  std::string run_directory;  // "" when the run keeps no files
  ConfigNode& results;        // what results.json will hold; an engine sets its own keys
  // The run directory, when the command holds its lock; null: an engine that trains opens it.
  const RunDirectory* held_directory = nullptr;
  // Where an engine that trains stands, for a report of its failure; null: nobody asks.
  RunProgress* progress = nullptr;
};

struct EngineReport {
  bool stopped = false;  // a stop was requested before the work was done
  std::string summary;   // for people: a table, or a line
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual absl::StatusOr<EngineReport> Run(EngineContext& context) = 0;
  // Whether it trains in the run directory itself, which it then has to have for itself.
  virtual bool trains() const { return false; }
};

}  // namespace ssl

#endif  // SSL_ENGINES_ENGINE_H_
