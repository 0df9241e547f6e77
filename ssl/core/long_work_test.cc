// SPDX-License-Identifier: Apache-2.0
//
// What one rank reads or removes for longer than the others would wait for it in an operation.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fake_run.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/long_work.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

// Of the operations of whole sessions, on a machine that does other work.
constexpr absl::Duration kPatience = absl::Seconds(10);

class LongWorkTest : public ::testing::Test {
 protected:
  // `run` calls Do in what rank 0 does.
  void ExpectIsWaitedFor(absl::FunctionRef<absl::Status(Communicator&)> run) {
    EXPECT_OK(ThreadWorld(2, kPatience).Run([&](Communicator& base) {
      CountingCommunicator counting(base, &work_.counts());
      Communicator& communicator = base.rank() == 1 ? static_cast<Communicator&>(counting) : base;
      const absl::Status status = run(communicator);
      work_.End(communicator);
      return status;
    }));
    EXPECT_GE(work_.met(), LongWork::kMeetings);
  }

  absl::Status OpenSession(const Registries& registries, FileSystem& file_system, Communicator& communicator,
                           const ConfigNode& config) {
    SessionOptions options;
    options.communicator = &communicator;
    options.file_system = &file_system;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config, registries, std::move(options)));
    return session->Start();
  }

  const std::string directory_ = MakeTempDir("long_work");
  const std::vector<CheckpointPart> parts_ = {{"model.safetensors", {}}};
  LongWork work_;
};

// Takes long to read, remove or replace one file.
class SlowFileSystem : public FaultFileSystem {
 public:
  SlowFileSystem(std::string slow, const std::string& root, LongWork* work, const Communicator& communicator)
      : FaultFileSystem(PosixFileSystem(), root), slow_(std::move(slow)), work_(*work), communicator_(communicator) {}

  // What comes before that is quick, and fails for this file.
  void FailOnce() { fails_once_ = true; }

  absl::StatusOr<std::string> Read(const std::string& path) override {
    if (absl::EndsWith(path, slow_)) SSL_RETURN_IF_ERROR(work_.Do(communicator_));
    return FaultFileSystem::Read(path);
  }
  absl::Status RemoveAll(const std::string& path) override {
    if (absl::EndsWith(path, slow_)) SSL_RETURN_IF_ERROR(work_.Do(communicator_));
    return FaultFileSystem::RemoveAll(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (absl::EndsWith(to, slow_) && std::exchange(fails_once_, false)) return absl::UnavailableError("not now");
    if (absl::EndsWith(to, slow_)) SSL_RETURN_IF_ERROR(work_.Do(communicator_));
    return FaultFileSystem::Rename(from, to);
  }

 private:
  bool fails_once_ = false;
  const std::string slow_;
  LongWork& work_;
  const Communicator& communicator_;
};

TEST_F(LongWorkTest, WeightsToStartFrom) {
  ExpectIsWaitedFor([&](Communicator& communicator) {
    Registries registries = FakeRegistries();
    registries.initialize_weights = [&](Model&, const BuildContext&) { return work_.Do(communicator); };
    return OpenSession(registries, PosixFileSystem(), communicator, FakeConfig(""));
  });
}

TEST_F(LongWorkTest, RemovalOfAnEarlierRun) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Session> earlier, MakeSession(FakeConfig(directory_)));
  ASSERT_OK(earlier->Train());
  earlier.reset();  // it holds the directory
  ConfigNode config = FakeConfig(directory_);
  config.SetPath("CHECKPOINT.OVERWRITE_EXISTING", ConfigNode::FromBool(true));
  ExpectIsWaitedFor([&](Communicator& communicator) {
    SlowFileSystem files("/results.json", directory_, &work_, communicator);
    return OpenSession(FakeRegistries(), files, communicator, config);
  });
}

TEST_F(LongWorkTest, TidyingUpBehindACheckpointThatIsThere) {
  ASSERT_OK(CheckpointStore({directory_, 0, ""}, PosixFileSystem(), *MakeLocalCommunicator()).Save(3, parts_));
  ExpectIsWaitedFor([&](Communicator& communicator) {
    SlowFileSystem files("/LATEST", directory_, &work_, communicator);
    return CheckpointStore({directory_, 0, ""}, files, communicator).Save(3, parts_);
  });
}

class LongCheckpointerWorkTest : public LongWorkTest {
 protected:
  LongCheckpointerWorkTest() {
    run_.state.iteration = 5;
    options_.store.directory = directory_;
  }

  absl::StatusOr<std::unique_ptr<Checkpointer>> Make(FileSystem& files, Communicator& communicator, FakeRun& run) {
    return Checkpointer::Make(options_, files, communicator, run, run.state);
  }

  absl::Status Save() {
    const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer, Make(PosixFileSystem(), *alone, run_));
    return checkpointer->Save();
  }

  CheckpointerOptions options_;
  FakeRun run_;
};

// After the last save of a run.
TEST_F(LongCheckpointerWorkTest, TidyingUpWhereItHasFailed) {
  ExpectIsWaitedFor([&](Communicator& communicator) -> absl::Status {
    SlowFileSystem files("/LATEST", directory_, &work_, communicator);
    files.FailOnce();
    FakeRun run = run_;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer, Make(files, communicator, run));
    SSL_RETURN_IF_ERROR(checkpointer->Save());
    SSL_RETURN_IF_ERROR(checkpointer->Wait());
    return communicator.Barrier();
  });
  EXPECT_EQ(*PosixFileSystem().Read(directory_ + "/LATEST"), "step_5\n");
}

TEST_F(LongCheckpointerWorkTest, ReadingAManifestToRestore) {
  ASSERT_OK(Save());
  ExpectIsWaitedFor([&](Communicator& communicator) -> absl::Status {
    SlowFileSystem files("/step_5/MANIFEST.json", directory_, &work_, communicator);
    FakeRun run;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer, Make(files, communicator, run));
    return checkpointer->Restore(5);
  });
}

// Tensors of a file are read as they are copied: what follows takes their place.
TEST_F(LongCheckpointerWorkTest, RestoringTensors) {
  ASSERT_OK(Save());
  ExpectIsWaitedFor([&](Communicator& communicator) -> absl::Status {
    FakeRun run;
    CheckpointerOptions options = options_;
    options.after_restore = [&] { return work_.Do(communicator); };
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer,
                         Checkpointer::Make(options, PosixFileSystem(), communicator, run, run.state));
    return checkpointer->Restore(5);
  });
}

TEST_F(LongWorkTest, ReadingTheNewestCheckpoint) {
  ASSERT_OK(CheckpointStore({directory_, 0, ""}, PosixFileSystem(), *MakeLocalCommunicator()).Save(3, parts_));
  ExpectIsWaitedFor([&](Communicator& communicator) {
    CheckpointStore store({directory_, 0, ""}, PosixFileSystem(), communicator);
    return store.ReadNewest([&](int64_t) { return work_.Do(communicator); }).status();
  });
}

}  // namespace
}  // namespace ssl
