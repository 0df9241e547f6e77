// SPDX-License-Identifier: Apache-2.0
//
// An evaluation reads the directory of a run that goes on: at each of its file calls in turn, the run saves twice and
// removes everything that was there before.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kModel[] = "model.safetensors";

class CheckpointSearchTest : public ::testing::Test {
 protected:
  CheckpointStore Store(FileSystem& file_system, int64_t keep_last = 0) {
    return CheckpointStore({directory_, keep_last, "hash"}, file_system, *communicator_);
  }
  static std::vector<CheckpointPart> Parts(double value) { return {{kModel, {{"weight", at::full({4}, value)}}}}; }

  // Calls `read` with a file system at whose 1st, 2nd, ... reading call `act` is done, while there is such a call.
  void AtEachCall(const std::function<void()>& prepare, const std::function<void()>& act,
                  const std::function<void(FileSystem&)>& read) {
    bool acted = true;
    for (int call = 1; acted; ++call) {
      SCOPED_TRACE(absl::StrCat("call ", call));
      prepare();
      FaultFileSystem reader(posix_, directory_);
      reader.set_fault_reads(true);
      acted = false;
      reader.ActAtCall(call, [&] {
        act();
        acted = true;
      });
      read(reader);
    }
  }
  void AtEachCallOfARun(const std::function<void(FileSystem&)>& read) {
    std::unique_ptr<CheckpointStore> run;
    const auto save = [&](int64_t iteration) { ASSERT_OK(run->Save(iteration, Parts(iteration))); };
    const auto prepare = [&] {
      ASSERT_OK(posix_.RemoveAll(directory_));
      run = std::make_unique<CheckpointStore>(Store(posix_, 2));
      for (const int64_t iteration : {5, 10}) save(iteration);
    };
    const auto act = [&] {
      for (const int64_t iteration : {15, 20}) save(iteration);
    };
    AtEachCall(prepare, act, read);
  }

  FileSystem& posix_ = PosixFileSystem();
  const std::string directory_ = MakeTempDir("checkpoints");
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(CheckpointSearchTest, Search_FindsACheckpoint) {
  AtEachCallOfARun([this](FileSystem& reader) {
    const absl::StatusOr<int64_t> found = Store(reader).FindNewestValid();
    ASSERT_OK(found);
    EXPECT_THAT(*found, AnyOf(10, 20));
  });
}

// Both ranks read the same one, although only one of them meets the removal.
TEST_F(CheckpointSearchTest, Read_ReadsACheckpoint) {
  AtEachCallOfARun([this](FileSystem& reader) {
    std::vector<double> read(2);
    std::vector<int64_t> found(2);
    ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
      const int64_t rank = communicator.rank();
      CheckpointStore store({directory_, 0, ""}, rank == 1 ? reader : posix_, communicator);
      const auto load = [&](int64_t iteration) -> absl::Status {
        SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> model, store.Load(iteration, kModel));
        read[rank] = model[0].tensor[0].item<double>();
        return absl::OkStatus();
      };
      SSL_ASSIGN_OR_RETURN(found[rank], store.ReadNewest(load));
      return absl::OkStatus();
    }));
    EXPECT_THAT(found[0], AnyOf(10, 20));
    EXPECT_EQ(found[1], found[0]);
    EXPECT_EQ(read[0], found[0]);
    EXPECT_EQ(read[1], found[0]);
  });
}

// What was there is not "nothing": an evaluation would go on with random weights.
TEST_F(CheckpointSearchTest, AllRemoved_IsNoMissingCheckpoint) {
  const auto prepare = [this] {
    for (const int64_t iteration : {5, 10}) ASSERT_OK(Store(posix_).Save(iteration, Parts(iteration)));
  };
  const auto act = [this] { ASSERT_OK(posix_.RemoveAll(directory_)); };
  int missing = 0;
  int removed = 0;
  AtEachCall(prepare, act, [&](FileSystem& reader) {
    CheckpointStore store = Store(reader);
    const auto load = [&](int64_t iteration) { return store.Load(iteration, kModel).status(); };
    const absl::Status status = store.ReadNewest(load).status();
    missing += absl::IsNotFound(status) ? 1 : 0;
    removed += absl::IsFailedPrecondition(status) ? 1 : 0;
    EXPECT_THAT(status.code(),
                AnyOf(absl::StatusCode::kOk, absl::StatusCode::kFailedPrecondition, absl::StatusCode::kNotFound));
  });
  EXPECT_EQ(missing, 1) << "before the first look";
  EXPECT_GE(removed, 4) << "before manifest, model, manifest of the older one, the second search";
}

// As a removal from another host of a network file system might: who holds no lock reads a copy.
TEST_F(CheckpointSearchTest, WhatAReaderHas_DoesNotChangeWithTheFile) {
  ASSERT_OK(Store(posix_).Save(5, Parts(2.5)));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> model, Store(posix_).Load(5, kModel));
  std::filesystem::resize_file(absl::StrCat(directory_, "/step_5/", kModel), 0);
  EXPECT_EQ(model[0].tensor.sum().item<double>(), 10.0);
}

// A file that the manifest does not list is missing in a whole checkpoint: to search again would not help.
TEST_F(CheckpointSearchTest, FileThatIsNotThere_IsDataLoss) {
  ASSERT_OK(Store(posix_).Save(5, Parts(5.0)));
  CheckpointStore store = Store(posix_);
  int reads = 0;
  const absl::StatusOr<int64_t> read = store.ReadNewest([&](int64_t iteration) {
    ++reads;
    return store.Load(iteration, "other.safetensors").status();
  });
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("other.safetensors")));
  EXPECT_EQ(reads, 2);
}

}  // namespace
}  // namespace ssl
