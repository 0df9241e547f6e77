// SPDX-License-Identifier: Apache-2.0
//
// What communicator_test does not ask of every Communicator: starting a world of processes, and how it ends when a
// process is missing, dead, stopped, or calls something else than the others.
#include "ssl/distributed/gloo_communicator.h"

#include <ATen/ops/full.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Status Sum(Communicator& communicator) {
  at::Tensor tensor = at::full({2}, communicator.rank(), at::kFloat);
  return communicator.AllReduce(tensor, ReduceOp::kSum);
}

// A socket of the loopback interface that is bound to a free port.
class BoundSocket {
 public:
  BoundSocket() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), length), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  ~BoundSocket() { close(socket_); }

  int get() const { return socket_; }
  int port() const { return port_; }

 private:
  const int socket_;
  int port_ = 0;
};

GlooOptions OptionsAt(int port, int64_t rank, int64_t size) {
  GlooOptions options;
  options.rendezvous.host = "127.0.0.1";
  options.rendezvous.port = port;
  options.rendezvous.rank = rank;
  options.rendezvous.size = size;
  options.rendezvous.connect_timeout = absl::Seconds(1);
  return options;
}

TEST(GlooCommunicatorTest, PortThatIsTaken_IsNamed) {
  const BoundSocket other;
  ASSERT_EQ(listen(other.get(), 1), 0);
  EXPECT_THAT(MakeGlooCommunicator(OptionsAt(other.port(), 0, 2)).status(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr(absl::StrCat("port ", other.port(), ", ")), HasSubstr("choose another port"))));
}

TEST(GlooCommunicatorTest, RankZeroThatDoesNotListen_IsUnavailableAndNamed) {
  const BoundSocket silent;
  const absl::Status status = MakeGlooCommunicator(OptionsAt(silent.port(), 1, 2)).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr(absl::StrCat("rank 1 did not reach rank 0 at 127.0.0.1:", silent.port()))));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCausePeer);
}

TEST(GlooCommunicatorTest, RanksThatDoNotCome_AreDeadlineExceededAndNamed) {
  GlooOptions options;
  options.rendezvous.file = MakeTempDir("rendezvous") + "/store";
  options.rendezvous.size = 3;
  options.rendezvous.connect_timeout = absl::Milliseconds(200);
  const absl::Status status = MakeGlooCommunicator(options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               AllOf(HasSubstr(options.rendezvous.file),
                                     HasSubstr(", rank 1, rank 2 did not come: see the output of rank 1, or raise "
                                               "config.DISTRIBUTED.CONNECT_SECONDS"))));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCausePeer);
}

TEST(GlooCommunicatorTest, OptionsThatCannotBe_AreInvalidArgument) {
  const auto code = [](const GlooOptions& options) { return MakeGlooCommunicator(options).status().code(); };
  EXPECT_EQ(code(OptionsAt(29500, 2, 2)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(OptionsAt(29500, -1, 2)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(OptionsAt(0, 0, 2)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(OptionsAt(65536, 0, 2)), absl::StatusCode::kInvalidArgument);
  GlooOptions never = OptionsAt(29500, 0, 1);
  never.timeout = absl::InfiniteDuration();
  EXPECT_EQ(code(never), absl::StatusCode::kInvalidArgument);
  never = OptionsAt(29500, 0, 1);
  never.rendezvous.connect_timeout = absl::ZeroDuration();
  EXPECT_EQ(code(never), absl::StatusCode::kInvalidArgument);
  GlooOptions both = OptionsAt(29500, 0, 1);
  both.rendezvous.file = MakeTempDir("rendezvous") + "/store";
  EXPECT_EQ(code(both), absl::StatusCode::kInvalidArgument);
  GlooOptions file;
  file.rendezvous.file = MakeTempDir("rendezvous") + "/gone/store";
  EXPECT_THAT(MakeGlooCommunicator(file).status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/gone/")));
}

TEST(GlooCommunicatorTest, InterfaceThatIsNotThere_IsInvalidArgumentAndNamed) {
  GlooOptions options;
  options.rendezvous.file = MakeTempDir("rendezvous") + "/store";
  options.interface = "none0";
  EXPECT_THAT(MakeGlooCommunicator(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"none0\"")));
}

TEST(GlooCommunicatorTest, WorldOfOne_OverTcp) {
  BoundSocket free;
  GlooOptions options = OptionsAt(free.port(), 0, 1);
  options.rendezvous.listening_socket = dup(free.get());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
  EXPECT_OK(Sum(*communicator));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> duplicate, communicator->Duplicate());
  EXPECT_OK(Sum(*duplicate));
}

// Rank 0 listens, as a launcher would before it starts the ranks, and tells the port to the others in a file.
absl::Status RunOverTcp(GlooOptions options, const std::function<absl::Status(Communicator&)>& rank_main) {
  const std::string port_file = options.rendezvous.file + ".port";
  options.rendezvous.file.clear();
  options.rendezvous.host = "localhost";
  options.interface.clear();
  const BoundSocket free;
  if (options.rendezvous.rank == 0) {
    EXPECT_EQ(listen(free.get(), 8), 0);
    options.rendezvous.port = free.port();
    options.rendezvous.listening_socket = dup(free.get());
    std::ofstream(port_file + ".new") << free.port();
    EXPECT_EQ(rename((port_file + ".new").c_str(), port_file.c_str()), 0);
  }
  while (options.rendezvous.port == 0) std::ifstream(port_file) >> options.rendezvous.port;
  absl::StatusOr<std::unique_ptr<Communicator>> communicator = MakeGlooCommunicator(options);
  return communicator.ok() ? rank_main(**communicator) : communicator.status();
}

// Whether SIGPIPE is blocked in each thread of this process.
std::vector<bool> SigpipeBlockedInThreads() {
  std::vector<bool> blocked;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string word; status >> word;) {
      uint64_t mask = 0;
      if (word == "SigBlk:" && status >> std::hex >> mask) blocked.push_back(mask >> (SIGPIPE - 1) & 1);
    }
  }
  return blocked;
}

TEST(GlooCommunicatorTest, ThreadsThatWriteToRanks_AreNotEndedBySigpipe) {
  const auto unblocked = [] {
    const std::vector<bool> blocked = SigpipeBlockedInThreads();
    return std::count(blocked.begin(), blocked.end(), false);
  };
  const int64_t before = unblocked();
  const size_t threads_before = SigpipeBlockedInThreads().size();
  BoundSocket free;
  GlooOptions options = OptionsAt(free.port(), 0, 1);
  options.rendezvous.listening_socket = dup(free.get());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
  EXPECT_GE(SigpipeBlockedInThreads().size(), threads_before + 3);  // the store's, Gloo's device, its worker
  EXPECT_EQ(unblocked(), before);
}

TEST(GlooCommunicatorTest, WithoutComparison_OperationsWork) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](GlooOptions options) {
    options.check_operations = false;
    const absl::StatusOr<std::unique_ptr<Communicator>> communicator = MakeGlooCommunicator(options);
    if (!communicator.ok()) return communicator.status();
    EXPECT_OK((*communicator)->Barrier());
    at::Tensor parameter = at::full({2}, options.rendezvous.rank + 5, at::kFloat).requires_grad_();
    EXPECT_OK((*communicator)->Broadcast(parameter, 1));
    EXPECT_EQ(parameter[1].item<float>(), 6);
    EXPECT_OK((*communicator)->AllReduce(parameter, ReduceOp::kMean));
    EXPECT_EQ(parameter[1].item<float>(), 6);
    return (*communicator)->Barrier();
  }));
}

TEST(GlooCommunicatorTest, WorldOverTcp_ReducesAndDuplicates) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& options) {
    return RunOverTcp(options, [](Communicator& communicator) -> absl::Status {
      const absl::StatusOr<std::unique_ptr<Communicator>> duplicate = communicator.Duplicate();
      if (!duplicate.ok()) return duplicate.status();
      EXPECT_OK(Sum(**duplicate));
      return Sum(communicator);
    });
  }));
}

// Gloo would not say so, but wait for the timeout.
TEST(GlooCommunicatorTest, TooFewDescriptorsForAllRanks_AreSaidAtOnce) {
  const absl::Status status = ProcessWorld(2).RunWithOptions([](const GlooOptions& options) {
    const rlimit few = {10, 10};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return absl::UnknownError("no limit was set");
    return MakeGlooCommunicator(options).status();
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("may have 10 file descriptors")));
}

TEST(GlooCommunicatorTest, WorldsOfDifferentSizes_AreRefusedOnEveryRank) {
  const absl::Status status = ProcessWorld(2).RunWithOptions([](GlooOptions options) {
    if (options.rendezvous.rank == 1) options.rendezvous.size = 3;
    return MakeGlooCommunicator(options).status();
  });
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("rank 0 (process "), HasSubstr("for a world of 2 ranks, rank 1 (process "),
                             HasSubstr("for one of 3"))));
}

TEST(GlooCommunicatorTest, RankThatHasComeBefore_IsRefused) {
  GlooOptions options;
  options.rendezvous.file = MakeTempDir("rendezvous") + "/store";
  options.interface = "lo";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> first, MakeGlooCommunicator(options));
  EXPECT_THAT(MakeGlooCommunicator(options).status(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr(absl::StrCat("rank 0 (process ", getpid(), " on ")), HasSubstr("remove it"))));
  options.rendezvous.prefix = "second start";
  EXPECT_OK(MakeGlooCommunicator(options));
}

TEST(GlooCommunicatorTest, RankThatEndsBeforeItIsConnected_IsNamed) {
  EXPECT_OK(ProcessWorld(2, absl::Seconds(1)).RunWithOptions([](GlooOptions options) {
    options.rendezvous.connect_timeout = absl::Seconds(5);
    if (options.rendezvous.rank == 1) return Rendezvous::Open(options.rendezvous).status();
    EXPECT_THAT(MakeGlooCommunicator(options).status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         AllOf(HasSubstr("connecting on rank 0 of 2 did not finish within 5s"),
                               ContainsRegex("rank 1 .process [0-9]+ on .*. ended"))));
    return absl::OkStatus();
  }));
}

TEST(GlooCommunicatorTest, RankThatIsKilled_IsNamedByTheOthersAtOnce) {
  const absl::Status status = ProcessWorld(3).Run([](Communicator& communicator) {
    EXPECT_OK(Sum(communicator));
    if (communicator.rank() == 2) raise(SIGKILL);
    const absl::Status failure = Sum(communicator);
    EXPECT_EQ(DetailOf(failure, kDetailCause), kCausePeer);
    EXPECT_EQ(DetailOf(failure, kDetailSilent), "");
    EXPECT_EQ(communicator.Barrier(), failure);  // out of use
    return failure;
  });
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("all-reduce (sum) 1 of Float [2] on rank "),
                             ContainsRegex("^rank 2 .process [0-9]+ on .*. ended: .* lost a connection .Gloo: .*.$"),
                             Not(HasSubstr("rank 1 (process ")))));
}

// Rank 0 has started operations that rank 1 never meets, and goes on with its own work.
TEST(GlooCommunicatorTest, StartedOperations_EndWithTheErrorOfTheFirst) {
  const absl::Status status = ProcessWorld(2).Run([](Communicator& communicator) {
    EXPECT_OK(Sum(communicator));
    if (communicator.rank() == 1) raise(SIGKILL);
    at::Tensor one = at::full({2}, 1, at::kFloat);
    at::Tensor other = at::full({3}, 1, at::kFloat);
    const std::unique_ptr<Work> first = communicator.StartAllReduce(one, ReduceOp::kSum);
    const std::unique_ptr<Work> second = communicator.StartAllReduce(other, ReduceOp::kMax);
    const absl::Status failure = first->Wait();
    EXPECT_EQ(DetailOf(failure, kDetailCause), kCausePeer);
    EXPECT_EQ(second->Wait(), failure);
    EXPECT_EQ(communicator.Barrier(), failure);
    return failure;
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("all-reduce (sum) 1 of Float [2] on rank 0 of 2 lost a connection"),
                                     ContainsRegex("rank 1 .process [0-9]+ on .*. ended"))));
}

TEST(GlooCommunicatorTest, RankOfAGroupThatIsKilled_IsNamedInItsGroupAlone) {
  const absl::Status status = ProcessWorld(3).Run([](Communicator& communicator) -> absl::Status {
    const absl::StatusOr<std::unique_ptr<Communicator>> group = communicator.Split(communicator.rank() == 0 ? 0 : 1);
    if (!group.ok()) return group.status();
    EXPECT_OK(Sum(**group));
    if (communicator.rank() == 2) raise(SIGKILL);
    const absl::Status after = Sum(**group);
    if (communicator.rank() == 0) return after;
    EXPECT_THAT(after,
                StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr("on rank 0 of 2 lost a connection"),
                                                               ContainsRegex("rank 1 .process [0-9]+ on .*. ended"))));
    return absl::OkStatus();
  });
  EXPECT_THAT(status, AnyOf(IsOk(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 2 ended without"))));
}

TEST(GlooCommunicatorTest, RankThatStops_IsDeadlineExceededAndNamed) {
  const absl::Status status = ProcessWorld(2, absl::Seconds(2)).Run([](Communicator& communicator) {
    if (communicator.rank() == 1) raise(SIGSTOP);
    const absl::Status failure = Sum(communicator);
    EXPECT_THAT(DetailOf(failure, kDetailSilent), ContainsRegex("^process [0-9]+ on [^,]*$"));
    return failure;
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               AllOf(HasSubstr("did not finish within 2s"),
                                     ContainsRegex("no answer from rank 1 .process [0-9]+ on .*, stopped .SIGSTOP"))));
}

TEST(GlooCommunicatorTest, RankZeroThatStops_IsNamedAlthoughItHoldsTheStore) {
  const absl::Status status = ProcessWorld(2, absl::Seconds(2)).RunWithOptions([](const GlooOptions& options) {
    return RunOverTcp(options, [](Communicator& communicator) -> absl::Status {
      if (communicator.rank() == 0) raise(SIGSTOP);
      const absl::Status failure = Sum(communicator);
      EXPECT_THAT(failure, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("no answer from rank 0 (process ")));
      return absl::OkStatus();
    });
  });
  EXPECT_THAT(status,
              AnyOf(IsOk(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 0 ended without a result"))));
}

TEST(GlooCommunicatorTest, RankZeroThatIsKilled_IsNamedAlthoughItHoldsTheStore) {
  const absl::Status status = ProcessWorld(3).RunWithOptions([](const GlooOptions& options) {
    return RunOverTcp(options, [](Communicator& communicator) -> absl::Status {
      if (communicator.rank() == 0) raise(SIGKILL);
      const absl::Status failure = Sum(communicator);
      EXPECT_THAT(failure, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 0 (process ")));
      return absl::OkStatus();
    });
  });
  EXPECT_THAT(status, AnyOf(IsOk(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("by signal 9"))));
}

TEST(GlooCommunicatorTest, RanksThatCallDifferentOperations_AreNamedWithThem) {
  const absl::Status status = ProcessWorld(3).Run([](Communicator& communicator) {
    if (communicator.rank() == 1) return communicator.Barrier();
    return Sum(communicator);
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               AllOf(HasSubstr("all-reduce (sum) 0 of Float [2]"), HasSubstr("barrier 0"))));
}

TEST(GlooCommunicatorTest, RanksWithDifferentShapes_AreNamedWithThem) {
  const absl::Status status = ProcessWorld(2).Run([](Communicator& communicator) {
    at::Tensor tensor = at::full({3 + 100 * communicator.rank()}, 1, at::kFloat);
    return communicator.AllReduce(tensor, ReduceOp::kSum);
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("Float [3]"), HasSubstr("Float [103]"))));
}

}  // namespace
}  // namespace ssl
