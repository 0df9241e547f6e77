// SPDX-License-Identifier: Apache-2.0
//
// How many operations of all ranks an update takes, beside those of the method.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/check_nan_hook.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using Counts = std::map<std::string, int64_t>;

// What a rank of two calls in its second update of `batches` batches, from the end of the first one on.
Counts CountUpdate(int64_t batches, const std::string& format, bool checks) {
  Counts of_rank_zero;
  EXPECT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& base) -> absl::Status {
    CollectiveCounts counts;
    CountingCommunicator communicator(base, &counts);
    Registries registries;
    SSL_RETURN_IF_ERROR(RegisterFakes(&registries));
    ConfigNode config = FakeConfig("");
    config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(batches));
    config.SetPath("MODEL.AMP_PARAMS.USE_AMP", ConfigNode::FromBool(!format.empty()));
    config.SetPath("MODEL.AMP_PARAMS.AMP_DTYPE", ConfigNode::FromString(format));
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config, registries, std::move(options)));
    if (checks) SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<CheckNanHook>(/*weights_frequency=*/1000)));
    SSL_RETURN_IF_ERROR(session->Step().status());
    counts.Take();
    SSL_RETURN_IF_ERROR(session->Step().status());
    if (base.rank() == 0) of_rank_zero = counts.Take();
    return absl::OkStatus();
  }));
  return of_rank_zero;
}

// Whether to stop or save; the gradients, here one bucket; and whether loss and gradients are finite, however many
// batches the update has. Nothing for the loss scale. (An operation for each gradient, for the loss of each batch, for
// all gradients or the loss scale, and for the stop made 4, for ResNet-50 164; its buckets are 5.)
TEST(StepCollectives, AnUpdate_TakesTwoBesideTheGradients) {
  for (const int64_t batches : {1, 2}) {
    for (const char* format : {"", "bfloat16", "float16"}) {
      SCOPED_TRACE(absl::StrCat(batches, " batches, ", format));
      EXPECT_THAT(CountUpdate(batches, format, /*checks=*/true), ElementsAre(Pair("all-reduce", 3)));
      EXPECT_THAT(CountUpdate(batches, format, /*checks=*/false), ElementsAre(Pair("all-reduce", 2)));
    }
  }
}

}  // namespace
}  // namespace ssl
