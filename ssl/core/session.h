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
// A session is used by one thread; RequestStop and RequestSnapshot may come from any thread or signal handler. Nothing
// throws or exits. The calls may come in any order. The first error ends the run: Start, Step and Train return it from
// then on, nothing is trained or saved any more, and Finish tells the hooks.
//
// LibTorch's current device, generators, autocast and gradient mode are, after each call, what the host had before it.
// With MACHINE.DEVICE gpu, each process of a host takes a GPU of its own.
#ifndef SSL_CORE_SESSION_H_
#define SSL_CORE_SESSION_H_

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/resume_plan.h"
#include "ssl/core/run_directory.h"
#include "ssl/core/run_preview.h"
#include "ssl/core/run_progress.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/timed_communicator.h"
#include "ssl/core/trainer.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

enum class TrainOutcome {
  kFinished,  // all phases are done, or a hook has ended the run early (context.stop, kStopUser): nothing is left to do
  kStopped,   // a stop was requested; the state was saved, and the same call in a new session resumes
};

// What a host may bring. References and pointers outlive the session.
struct SessionOptions {
  // The host's own batches instead of those that DATA.TRAIN and DATA.TEST describe.
  std::unique_ptr<BatchSource> train_source;
  std::unique_ptr<BatchSource> test_source;
  // Null: a world of one rank.
  Communicator* communicator = nullptr;
  // Interrupts the run; sessions may share one, and hooks never set it. Null: the session has one of its own.
  StopToken* stop = nullptr;
  // Null: the disk.
  FileSystem* file_system = nullptr;
  // The directory of CHECKPOINT.DIR, when the host holds it already. Null: the session opens it.
  const RunDirectory* run_directory = nullptr;
  // The session is made for its Preview only: no directory is opened, no weights are read, and it cannot start.
  bool only_preview = false;
  // Everything is made on the CPU, whatever MACHINE.DEVICE says: to find what is wrong on a machine that lacks the
  // device, or without taking any of it. The session can start, and makes no step.
  bool without_device = false;
  // Null, or where the session keeps noting how far the run is. It may outlive the session.
  RunProgress* progress = nullptr;
};

// The tree that a session with this configuration works with: defaults of everything registered, `config` over them,
// and what follows from other settings filled in.
absl::StatusOr<ConfigNode> ResolveConfig(const ConfigNode& config, const Registries& registries);

class Session {
 public:
  // config: the tree under "config"; keys that it lacks keep their defaults. With CHECKPOINT.DIR "" the session
  // keeps no files. Cancelled when a stop was requested while the data was being opened: nothing has begun then.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const ConfigNode& config, const Registries& registries,
                                                         SessionOptions options);
  ~Session();

  // What this run would do from its beginning, with the hooks that it has now.
  RunPreview Preview() const { return trainer_->Preview(); }

  // Before the first Train or Step; FailedPrecondition afterwards. A host's own metric sinks go to metrics().
  absl::Status AddHook(std::unique_ptr<Hook> hook);

  // Restores the checkpoint of CHECKPOINT.DIR to go on from, if there is one, and tells the hooks. Train and Step begin
  // with it; a second call does nothing.
  absl::Status Start();

  // Trains to the end or to a stop, and finishes.
  absl::StatusOr<TrainOutcome> Train();

  // One optimizer update (or test step); false when training is over or a stop was requested. The host then calls
  // Finish. FailedPrecondition after that.
  absl::StatusOr<bool> Step();

  // Ends the run: saves what is new, unless there was an error, and tells the hooks. Returns the run's first error; a
  // second call does nothing else.
  absl::Status Finish();

  // Whether this session's start removes what an earlier run left (CHECKPOINT.OVERWRITE_EXISTING): results that were
  // read before are not this run's.
  bool removed_earlier_run() const { return plan_.removes_earlier; }

  // FailedPrecondition before Start() of a session that resumes: the weights are not there yet.
  // images: [B, C, H, W]. What Model::Features returns, in evaluation mode and without gradients; its exceptions are a
  // Status here. With MACHINE.DEVICE gpu, images may be on the host; features are on the device.
  absl::StatusOr<std::vector<at::Tensor>> Features(const at::Tensor& images,
                                                   const std::vector<FeatureRequest>& requests);

  // Both reach all sessions that share the token.
  void RequestStop(int reason) { stop_->Request(reason); }
  // Asks for a checkpoint after the step in progress; training goes on.
  void RequestSnapshot() { stop_->RequestSnapshot(); }

  // Why the run has ended early, as the hook that decided it says; "" when it has not.
  const std::string& end_reason() const { return trainer_->end_reason(); }

  // For state and parameters. Its tensor code throws LibTorch's exceptions.
  Model& model() { return trainer_->task().model(); }
  const TrainState& state() const { return trainer_->task().state(); }
  MetricStore& metrics() { return trainer_->metrics(); }
  const ConfigNode& config() const { return config_; }
  const RunProgress& progress() const { return *progress_; }

 private:
  Session() = default;

  // Reads the options, and takes what is not the session's own; of a preview the device is the CPU.
  absl::Status Enter(const SessionOptions& options);
  absl::Status Build(SessionOptions options);
  absl::Status InitializeWeights(const BuildContext& context);
  absl::Status CheckKeepsItsWeights() const;
  absl::Status OpenRunDirectory(const RunDirectory* held);
  absl::Status BuildCheckpointer();
  absl::Status RemoveEarlierRun();
  BuildContext MakeContext() const;
  // Whether a checkpoint is there to go on from: then weights come from it and not from MODEL.WEIGHTS_INIT.
  bool Resumes() const { return plan_.iteration >= 0; }
  absl::Status Restore();
  absl::Status FinishRun();
  absl::Status StartRun();
  absl::Status AddConfiguredSinks();
  // The run's error, or that it has ended.
  absl::Status CheckUsable() const;
  // Notes where the run stands after a call of part `phase`, and the run's first error; returns `status`.
  absl::Status Note(const char* phase, absl::Status status);

  ConfigNode config_;
  TaskOptions options_;
  c10::Device device_ = c10::kCPU;
  Registries registries_;
  std::unique_ptr<Communicator> own_communicator_;
  StopToken own_stop_;
  // What the run uses, but for saves: those of a thread in the background are no waits of a step.
  std::unique_ptr<TimedCommunicator> communicator_;
  Communicator* untimed_communicator_ = nullptr;
  StopToken* stop_ = nullptr;
  FileSystem* file_system_ = nullptr;
  std::unique_ptr<RunDirectory> own_run_directory_;
  const RunDirectory* run_directory_ = nullptr;  // null when the session keeps no files
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Checkpointer> checkpointer_;
  ResumePlan plan_;
  RunProgress own_progress_;
  RunProgress* progress_ = nullptr;
  bool only_preview_ = false;
  bool without_device_ = false;
  bool started_ = false;
  bool ended_ = false;
  absl::Status failure_;  // the first error
};

}  // namespace ssl

#endif  // SSL_CORE_SESSION_H_
