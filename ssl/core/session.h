// SPDX-License-Identifier: Apache-2.0
//
// Training as an embedding program sees it: one object, made from a configuration.
//
//   ssl::Registries registries;
//   SSL_RETURN_IF_ERROR(ssl::RegisterSwav(&registries));
//   SSL_ASSIGN_OR_RETURN(auto session, ssl::Session::Create(config, registries, {}));
//   SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<MyHook>()));
//   SSL_RETURN_IF_ERROR(session->Train().status());            // or Step() in a loop of the host's own
//
// A session is used by one thread; RequestStop may come from any thread or signal handler. Nothing throws or exits.
#ifndef SSL_CORE_SESSION_H_
#define SSL_CORE_SESSION_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/resume_plan.h"
#include "ssl/core/run_directory.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/trainer.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

enum class TrainOutcome {
  kFinished,  // all phases are done
  kStopped,   // a stop was requested; the state was saved, and the same call in a new session resumes
};

// What a host may bring. References and pointers outlive the session.
struct SessionOptions {
  // The host's own batches instead of those that DATA.TRAIN and DATA.TEST describe.
  std::unique_ptr<BatchSource> train_source;
  std::unique_ptr<BatchSource> test_source;
  // Null: a world of one rank.
  Communicator* communicator = nullptr;
  // Null: the session has one of its own.
  StopToken* stop = nullptr;
  // Null: the disk.
  FileSystem* file_system = nullptr;
  // The directory of CHECKPOINT.DIR, when the host holds it already. Null: the session opens it.
  const RunDirectory* run_directory = nullptr;
};

// The tree that a session with this configuration works with: defaults of everything registered, `config` over them,
// and what follows from other settings filled in.
absl::StatusOr<ConfigNode> ResolveConfig(const ConfigNode& config, const Registries& registries);

class Session {
 public:
  // config: the tree under "config"; keys that it lacks keep their defaults. With CHECKPOINT.DIR "" the session
  // keeps no files.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const ConfigNode& config, const Registries& registries,
                                                         SessionOptions options);
  ~Session();

  // Before the first Train or Step. A host's own metric sinks go to metrics().
  absl::Status AddHook(std::unique_ptr<Hook> hook) { return trainer_->AddHook(std::move(hook)); }

  // Restores the checkpoint of CHECKPOINT.DIR to go on from, if there is one, and tells the hooks. Train and Step begin
  // with it; a second call does nothing.
  absl::Status Start();

  // Trains to the end or to a stop.
  absl::StatusOr<TrainOutcome> Train();

  // One optimizer update (or test step); false when training is over or a stop was requested. The host then calls
  // Finish.
  absl::StatusOr<bool> Step();
  absl::Status Finish();

  // Whether this session removed what an earlier run had left (CHECKPOINT.OVERWRITE_EXISTING): results that were read
  // before are not this run's.
  bool removed_earlier_run() const { return plan_.removes_earlier; }

  void RequestStop(int reason) { stop_->Request(reason); }

  Model& model() { return trainer_->task().model(); }
  const TrainState& state() const { return trainer_->task().state(); }
  MetricStore& metrics() { return trainer_->metrics(); }
  const ConfigNode& config() const { return config_; }

 private:
  Session() = default;

  absl::Status Build(SessionOptions options);
  absl::Status OpenRunDirectory(const RunDirectory* held);
  absl::Status BuildCheckpointer();
  absl::Status RemoveEarlierRun();
  BuildContext MakeContext() const;
  // Whether a checkpoint is there to go on from: then weights come from it and not from MODEL.WEIGHTS_INIT.
  bool Resumes() const { return plan_.iteration >= 0; }
  absl::Status Restore();

  ConfigNode config_;
  TaskOptions options_;
  Registries registries_;
  std::unique_ptr<Communicator> own_communicator_;
  StopToken own_stop_;
  Communicator* communicator_ = nullptr;
  StopToken* stop_ = nullptr;
  FileSystem* file_system_ = nullptr;
  std::unique_ptr<RunDirectory> own_run_directory_;
  const RunDirectory* run_directory_ = nullptr;  // null when the session keeps no files
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Checkpointer> checkpointer_;
  ResumePlan plan_;
  bool started_ = false;
};

}  // namespace ssl

#endif  // SSL_CORE_SESSION_H_
