// SPDX-License-Identifier: Apache-2.0
//
// When a session asks for the weights to start from, and that all ranks begin with the same.
#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

TEST(InitialWeightsTest, AreAskedFor_UnlessACheckpointIsThere) {
  const std::string directory = MakeTempDir("weights");
  Registries registries = FakeRegistries();
  int calls = 0;
  registries.initialize_weights = [&calls](Model& model, const BuildContext&) {
    ++calls;
    return absl::OkStatus();
  };
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                         Session::Create(FakeConfig(directory), registries, {}));
    ASSERT_OK(session->Step());
    ASSERT_OK(session->Finish());
  }
  EXPECT_EQ(calls, 1);
}

// Such as from the directory of a run that saved between the ranks' looks.
TEST(InitialWeightsTest, ThatDifferBetweenRanks_AreThoseOfRankZero) {
  std::vector<uint32_t> hashes(2);
  std::vector<double> weights(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    const int64_t rank = communicator.rank();
    Registries registries = FakeRegistries();
    registries.initialize_weights = [rank](Model& model, const BuildContext&) {
      model.Parameters()[0].value.detach().fill_(static_cast<double>(rank + 5));
      return absl::OkStatus();
    };
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(FakeConfig(""), registries, std::move(options)));
    hashes[rank] = *HashState(session->model());
    weights[rank] = session->model().Parameters()[0].value.mean().item<double>();
    return absl::OkStatus();
  }));
  EXPECT_EQ(weights[0], 5.0);
  EXPECT_EQ(weights[1], 5.0);
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(InitialWeightsTest, ThatOneRankCannotRead_StartNoRank) {
  std::vector<absl::Status> ends(2);
  const absl::Status status = ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) {
    const int64_t rank = communicator.rank();
    Registries registries = FakeRegistries();
    registries.initialize_weights = [rank](Model&, const BuildContext&) {
      return rank == 1 ? absl::NotFoundError("no such weights") : absl::OkStatus();
    };
    SessionOptions options;
    options.communicator = &communicator;
    ends[rank] = Session::Create(FakeConfig(""), registries, std::move(options)).status();
    return absl::OkStatus();
  });
  ASSERT_OK(status);
  EXPECT_THAT(ends[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("loading weights")));
  EXPECT_THAT(ends[1], StatusIs(absl::StatusCode::kNotFound, HasSubstr("no such weights")));
}

}  // namespace
}  // namespace ssl
