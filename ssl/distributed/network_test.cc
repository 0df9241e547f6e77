// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/network.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void Nothing(const absl::Status&) {}

TEST(NetworkTest, LocalAddress_TowardsTheOwnMachine) {
  EXPECT_EQ(LocalAddressTowards("127.0.0.1").value(), "127.0.0.1");
  EXPECT_EQ(LocalAddressTowards("127.0.0.7").value(), "127.0.0.1");
}

TEST(NetworkTest, NameWithoutAddress_IsNamed) {
  EXPECT_THAT(LocalAddressTowards("no-such-host.invalid"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"no-such-host.invalid\"")));
  EXPECT_THAT(AwaitListener("no-such-host.invalid", 9, absl::ZeroDuration(), Nothing),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("\"no-such-host.invalid\"")));
}

TEST(NetworkTest, CheckDescriptors_TellsTheLimitAndWhatIsOpen) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const absl::Cleanup restore = [&] { setrlimit(RLIMIT_NOFILE, &before); };
  rlimit limit = before;
  limit.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_OK(CheckDescriptors(50));
  EXPECT_THAT(CheckDescriptors(100), StatusIs(absl::StatusCode::kResourceExhausted,
                                              AllOf(HasSubstr("may have 100 file descriptors"),
                                                    HasSubstr("and 100 more are needed"), HasSubstr("ulimit -n"))));
}

TEST(NetworkTest, CheckDescriptors_WhereNoneIsLeft) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const absl::Cleanup restore = [&] { setrlimit(RLIMIT_NOFILE, &before); };
  // Files that are open already stay so.
  rlimit limit = before;
  limit.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_THAT(CheckDescriptors(1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("may have 3 file descriptors, 3 are open and 1 more are needed")));
}

TEST(NetworkTest, CheckDescriptors_BeyondTheHardLimit_OnlyRootHelps) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max > 10'000'000) limit.rlim_max = 10'000'000;
  EXPECT_THAT(CheckDescriptors(static_cast<int64_t>(limit.rlim_max) + 10'000'000),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more are needed: ")));
}

TEST(NetworkTest, AwaitListener_ReturnsWhenItListens) {
  const int stream = socket(AF_INET, SOCK_STREAM, 0);
  const absl::Cleanup closer = [stream] { close(stream); };
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(stream, reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(stream, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int port = ntohs(address.sin_port);
  EXPECT_THAT(AwaitListener("127.0.0.1", port, absl::ZeroDuration(), Nothing),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Connection refused")));
  absl::Status status = absl::UnknownError("not called");
  std::thread waiting([&] { status = AwaitListener("127.0.0.1", port, absl::Minutes(1), Nothing); });
  ASSERT_EQ(listen(stream, 1), 0);
  waiting.join();
  EXPECT_OK(status);
}

TEST(NetworkTest, InterfaceThatIsNotThere_IsNamedWithThoseThatAre) {
  EXPECT_OK(CheckInterface("lo"));
  EXPECT_THAT(CheckInterface("none0"),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("\"none0\""), HasSubstr("machine's: lo"))));
}

TEST(NetworkTest, WritingIntoAClosedConnection_IsAnErrorWhileSigpipeIsBlocked) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  close(ends[1]);
  int error = 0;
  {
    const SigpipeBlock block;
    std::thread([&] { error = write(ends[0], "a", 1) < 0 ? errno : 0; }).join();
    EXPECT_EQ(write(ends[0], "a", 1), -1);
  }
  EXPECT_EQ(error, EPIPE);
  EXPECT_EXIT((void)!write(ends[0], "a", 1), ::testing::KilledBySignal(SIGPIPE), "");
  close(ends[0]);
}

}  // namespace
}  // namespace ssl
