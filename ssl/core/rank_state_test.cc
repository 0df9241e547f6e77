// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/rank_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> NamesOf(const std::vector<NamedTensor>& state) {
  std::vector<std::string> names;
  for (const NamedTensor& entry : state) names.push_back(entry.name);
  return names;
}

// What each rank keeps of its own.
std::vector<std::vector<std::string>> Kept(const std::vector<std::vector<NamedTensor>>& states) {
  std::vector<std::vector<std::string>> kept(states.size());
  EXPECT_OK(ThreadWorld(static_cast<int64_t>(states.size()), absl::Seconds(60))
                .Run([&](Communicator& communicator) -> absl::Status {
                  const int64_t rank = communicator.rank();
                  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> own, StateOfItsOwn(states[rank], communicator));
                  kept[rank] = NamesOf(own);
                  return absl::OkStatus();
                }));
  return kept;
}

TEST(StateOfItsOwnTest, OneRank_HasAll) {
  const auto communicator = MakeLocalCommunicator();
  EXPECT_THAT(NamesOf(*StateOfItsOwn({{"a", at::full({2}, 1.0)}, {"b", at::full({2}, 2.0)}}, *communicator)),
              ElementsAre("a", "b"));
}

TEST(StateOfItsOwnTest, OtherRanks_HaveWhatDiffers) {
  const at::Tensor weight = at::arange(6.0).view({2, 3});
  const auto state = [&](double mean, at::ScalarType type, const at::Tensor& last) -> std::vector<NamedTensor> {
    return {
        {"weight", weight.clone()}, {"mean", at::full({1}, mean)}, {"type", at::full({2}, 0, type)}, {"last", last}};
  };
  EXPECT_THAT(Kept({state(0.0, at::kLong, weight), state(0.0, at::kLong, weight.clone()), state(1.0, at::kLong, weight),
                    state(-0.0, at::kDouble, weight.view({3, 2}))}),
              ElementsAre(ElementsAre("weight", "mean", "type", "last"), IsEmpty(), ElementsAre("mean"),
                          ElementsAre("mean", "type", "last")))
      << "a negative zero is another value, bit by bit";
}

TEST(StateOfItsOwnTest, ValuesCount_AndNotHowTheyLieInMemory) {
  const at::Tensor matrix = at::arange(6.0).view({2, 3});
  const at::Tensor columns = matrix.t().contiguous().t();
  ASSERT_FALSE(columns.is_contiguous());
  EXPECT_THAT(Kept({{{"matrix", matrix}}, {{"matrix", columns}}}), ElementsAre(ElementsAre("matrix"), IsEmpty()));
}

TEST(StateOfItsOwnTest, OtherNames_AreKeptWithAllElse) {
  const at::Tensor value = at::full({2}, 1.0);
  EXPECT_THAT(
      Kept({{{"a", value}, {"b", value}}, {{"a", value}, {"c", value}}, {{"a", value}}, {{"b", value}, {"a", value}}}),
      ElementsAre(ElementsAre("a", "b"), ElementsAre("a", "c"), ElementsAre("a"), ElementsAre("b", "a")));
}

TEST(OverRankZeroTest, OwnEntriesComeFirst_AndUnknownOnesOfRankZeroStayAway) {
  const std::vector<NamedTensor> rank_zero = {
      {"weight", at::full({1}, 1.0)}, {"mean", at::full({1}, 2.0)}, {"only_there", at::full({1}, 3.0)}};
  const std::vector<NamedTensor> walked = {{"weight", {}}, {"mean", {}}, {"missing", {}}};
  std::map<std::string, double> state;
  for (const NamedTensor& entry :
       OverRankZero(rank_zero, {{"mean", at::full({1}, 4.0)}, {"left_over", at::full({1}, 5.0)}}, walked)) {
    state[entry.name] = entry.tensor.item<double>();
  }
  EXPECT_THAT(state,
              UnorderedElementsAre(std::pair("weight", 1.0), std::pair("mean", 4.0), std::pair("left_over", 5.0)));
}

}  // namespace
}  // namespace ssl
