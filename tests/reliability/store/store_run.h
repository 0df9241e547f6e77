// SPDX-License-Identifier: Apache-2.0
//
// A run as far as its checkpoints go, for the tests of this folder: a few tensors whose values tell the iteration.
//
//   StoreRun run(directory, file_system);
//   ASSERT_OK(run.GoTo(15));  // as a process would: take the directory, resume, train to 15, save
//   EXPECT_TRUE(run.IsWhole());
#ifndef SSL_TESTS_RELIABILITY_STORE_STORE_RUN_H_
#define SSL_TESTS_RELIABILITY_STORE_STORE_RUN_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <stdlib.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/run_directory.h"
#include "ssl/core/run_identity.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {

// Of a harness that draws random cases: SSL_SEED, or `fallback`. Printed, so that a failure can be had again.
inline uint64_t HarnessSeed(uint64_t fallback) {
  uint64_t seed = fallback;
  const char* given = std::getenv("SSL_SEED");
  if (given != nullptr && !absl::SimpleAtoi(given, &seed)) seed = fallback;
  std::cout << "SSL_SEED=" << seed << "\n";
  return seed;
}

// A directory in memory where there is one: thousands of cases would wait for the disk's fsync otherwise, and no case
// here is about what fsync itself does.
class HarnessDirectory {
 public:
  HarnessDirectory() {
    std::string path = "/dev/shm/ssl_harness_XXXXXX";
    path_ = mkdtemp(path.data()) != nullptr ? path : MakeTempDir("harness");
  }
  ~HarnessDirectory() { PosixFileSystem().RemoveAll(path_).IgnoreError(); }
  HarnessDirectory(const HarnessDirectory&) = delete;
  HarnessDirectory& operator=(const HarnessDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class StoreRun : public Stateful {
 public:
  StoreRun(std::string directory, FileSystem& file_system, int64_t values = 64, bool in_background = false)
      : directory_(std::move(directory)),
        file_system_(file_system),
        in_background_(in_background),
        weight_(at::full({values}, 0.0, at::kFloat)),
        momentum_(at::full({values / 2}, 0.0, at::kDouble)),
        config_(ConfigNode::Map()) {
    config_.SetPath("OPTIMIZER.lr", ConfigNode::FromDouble(0.1));
    state_.max_iterations = 1000;
  }

  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("model/weight", weight_);
    visitor.Tensor("optimizer/momentum", momentum_);
    visitor.Scope("train_state", state_);
  }

  // What a process does: takes the directory, resumes what is there, goes on to `iteration`, and saves.
  absl::Status GoTo(int64_t iteration) {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<RunDirectory> held,
                         RunDirectory::Open(directory_, file_system_, *communicator_));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer, Resume(held.get()));
    Fill(iteration);
    SSL_RETURN_IF_ERROR(checkpointer->Save());
    return checkpointer->Wait();
  }

  // Resumes only; the state is that of the checkpoint.
  absl::Status Look() {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<RunDirectory> held,
                         RunDirectory::Open(directory_, file_system_, *communicator_));
    return Resume(held.get()).status();
  }

  int64_t iteration() const { return state_.iteration; }
  // All values are those of the iteration.
  bool IsWhole() const {
    return weight_.eq(state_.iteration).all().item<bool>() && momentum_.eq(-state_.iteration).all().item<bool>();
  }
  std::string StepDirectory(int64_t iteration) const {
    return absl::StrCat(directory_, "/checkpoints/step_", iteration);
  }
  CheckpointStore Store() {
    return CheckpointStore({directory_ + "/checkpoints", 0, ""}, file_system_, *communicator_);
  }

 private:
  absl::StatusOr<std::unique_ptr<Checkpointer>> Resume(const RunDirectory* held) {
    const RunIdentity identity(config_, catalog_, {});
    CheckpointerOptions options;
    options.store.directory = directory_ + "/checkpoints";
    options.store.config_json = identity.ToJson();
    options.store.run_directory = held;
    options.num_phases = 2;
    options.in_background = in_background_;
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Checkpointer> checkpointer,
                         Checkpointer::Make(std::move(options), file_system_, *communicator_, *this, state_));
    SSL_ASSIGN_OR_RETURN(const ResumePlan plan, checkpointer->Plan(CheckpointOptions(), identity));
    SSL_RETURN_IF_ERROR(checkpointer->Open());
    Fill(0);
    if (plan.iteration >= 0) SSL_RETURN_IF_ERROR(checkpointer->Restore(plan.iteration));
    return checkpointer;
  }

  void Fill(int64_t iteration) {
    state_.iteration = iteration;
    weight_.fill_(iteration);
    momentum_.fill_(-iteration);
  }

  const std::string directory_;
  FileSystem& file_system_;
  const bool in_background_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  at::Tensor weight_;
  at::Tensor momentum_;
  TrainState state_;
  ConfigNode config_;
  OptionCatalog catalog_;
};

}  // namespace ssl

#endif  // SSL_TESTS_RELIABILITY_STORE_STORE_RUN_H_
