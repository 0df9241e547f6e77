// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/shared_directory.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SharedDirectoryTest, OneRankHasItForItself) {
  EXPECT_OK(CheckSharedDirectory("/no/such/directory", PosixFileSystem(), *MakeLocalCommunicator()));
}

// What rank 0 and rank 1 hear when rank 1's directory is another one, or the same.
absl::Status Check(const GlooOptions& options, bool is_shared) {
  const int64_t rank = options.rendezvous.rank;
  const std::string path = absl::StrCat(options.rendezvous.file, is_shared ? ".run" : absl::StrCat(".run", rank));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
  if (rank == 0 || !is_shared) SSL_RETURN_IF_ERROR(PosixFileSystem().CreateDirectories(path));
  const absl::Status status = CheckSharedDirectory(path, PosixFileSystem(), *communicator);
  SSL_RETURN_IF_ERROR(communicator->Barrier());
  EXPECT_THAT(*PosixFileSystem().List(path), IsEmpty());
  return status;
}

TEST(SharedDirectoryTest, OneDirectoryIsFoundByAll) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& options) { return Check(options, true); }));
}

TEST(SharedDirectoryTest, ADirectoryOfAHostsOwnIsRefused) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& options) {
    const absl::Status status = Check(options, false);
    if (options.rendezvous.rank == 0) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted, HasSubstr("failed on rank 1 ")));
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("of rank 1 (on ")));
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
