// SPDX-License-Identifier: Apache-2.0
//
// A whole task that the command runs by name (engine_name): train, knn, export.
#ifndef SSL_ENGINES_ENGINE_H_
#define SSL_ENGINES_ENGINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
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
  // False where the command has said that it may not write into the run directory: what is there can be read.
  bool keeps_results = true;
  // The run directory, when the command holds its lock; null: an engine that trains opens it.
  const RunDirectory* held_directory = nullptr;
  // Where the training of an engine stands, for a report of its failure; null: nobody asks.
  RunProgress* progress = nullptr;
  // What an engine that trains in the run directory calls when nothing refuses the training any more: what a program
  // writes there before would be another run's, where the start is refused. Null: nobody asks.
  std::function<absl::Status()> on_training_begins = nullptr;
  // For Check: the names of the engines that come before in the same command, and will have done their work by then.
  std::vector<std::string> earlier_engines = {};
};

// How an engine makes the parts that a configuration names.
inline BuildContext MakeBuildContext(const EngineContext& context, int64_t seed) {
  return {context.config,      context.registries, context.communicator, seed, context.run_directory, 0,
          context.file_system, &context.stop};
}

// While it lives, the first stop signal ends the process at once, as it does while a training is built: for what may
// take long, such as the scan of a huge folder, by an engine that has nothing to save yet.
class OpeningScope {
 public:
  explicit OpeningScope(const EngineContext& context);
  ~OpeningScope();
  OpeningScope(const OpeningScope&) = delete;
  OpeningScope& operator=(const OpeningScope&) = delete;

  // Cancelled when a stop was requested before.
  absl::Status CheckNotStopped() const;

 private:
  const EngineContext& context_;
  std::string phase_;  // before
};

struct EngineReport {
  bool stopped = false;  // a stop was requested before the work was done
  std::string summary;   // for people: a table, or a line
  // What the command ends with after the summary and the results are there: of a check that found what it looks for.
  // An error on one rank is one on all (AgreeOnStatus).
  absl::Status verdict = {};
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual absl::StatusOr<EngineReport> Run(EngineContext& context) = 0;
  // What can be known to be wrong before anything runs, such as classes of the test set that the training set lacks,
  // layers that the network does not have, or a folder that cannot be made: an engine that comes after another one is
  // asked before the first begins. Needs no trained weights, leaves no file, and computes on the CPU, so that a
  // configuration for another device can be checked where that is missing.
  virtual absl::Status Check(EngineContext& context) const { return absl::OkStatus(); }
  // Whether it trains in the run directory itself, which it then has to have for itself.
  virtual bool trains() const { return false; }
  // Whether it computes on MACHINE.DEVICE: one that does not runs where that is missing.
  virtual bool uses_device() const { return true; }
  // Of the training that it does, whose checkpoints a report of its failure names.
  virtual std::string TrainingDirectory(const std::string& run_directory) const { return run_directory; }
};

}  // namespace ssl

#endif  // SSL_ENGINES_ENGINE_H_
