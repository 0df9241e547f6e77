// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/rank_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(StateOfItsOwnTest, NamesThatRankZeroLacks_AreKept) {
  const at::Tensor value = at::full({2}, 1.0);
  EXPECT_THAT(
      Kept({{{"a", value}, {"b", value}}, {{"a", value}, {"c", value}}, {{"a", value}}, {{"b", value}, {"a", value}}}),
      ElementsAre(ElementsAre("a", "b"), ElementsAre("c"), IsEmpty(), IsEmpty()));
}

// What ranks saved, by rank, and what others restore of it.
class SavedRanksTest : public ::testing::Test {
 protected:
  using State = std::map<std::string, std::vector<double>>;

  SavedRanks::Read Read() {
    return [this](int64_t rank) -> absl::StatusOr<std::vector<NamedTensor>> {
      if (rank < static_cast<int64_t>(saved_.size())) return saved_[rank];
      return absl::NotFoundError(absl::StrCat("no file of rank ", rank));
    };
  }

  // By rank; each walks what `walks` says of it.
  absl::Status Restore(const std::vector<WalkedState>& walks, std::vector<State>* restored,
                       std::vector<std::string>* said = nullptr) {
    restored->assign(walks.size(), {});
    return ThreadWorld(static_cast<int64_t>(walks.size()), absl::Seconds(60))
        .Run([&](Communicator& communicator) -> absl::Status {
          const WalkedState& walked = walks[communicator.rank()];
          SavedRanks ranks(static_cast<int64_t>(saved_.size()), Read());
          SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, ranks.StateOf(walked, communicator));
          for (const NamedTensor& entry : state) {
            const at::Tensor values = entry.tensor.to(at::kDouble).contiguous();
            const double* const begin = values.const_data_ptr<double>();
            (*restored)[communicator.rank()][entry.name].assign(begin, begin + values.numel());
          }
          if (said != nullptr && communicator.rank() == 0) said->push_back(ranks.DescribeChange(walked, communicator));
          return absl::OkStatus();
        });
  }

  std::vector<std::vector<NamedTensor>> saved_;
};

WalkedState Walk(const std::vector<std::string>& names, std::map<std::string, RanksDifference> differences = {}) {
  WalkedState walked;
  for (const std::string& name : names) walked.tensors.push_back({name, {}});
  walked.differences = std::move(differences);
  return walked;
}

at::Tensor Values(std::vector<double> values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<double>());
  return tensor;
}

TEST_F(SavedRanksTest, AsManyRanks_GetTheirOwnAndElseRankZeros) {
  saved_ = {{{"weight", Values({1})}, {"mean", Values({2})}}, {{"mean", Values({4})}}};
  std::vector<State> restored;
  ASSERT_OK(Restore({Walk({"weight", "mean"}), Walk({"weight", "mean", "missing"}, {{"mean", {RankValues::kMean}}})},
                    &restored));
  EXPECT_THAT(restored, ElementsAre(State{{"weight", {1}}, {"mean", {2}}}, State{{"weight", {1}}, {"mean", {4}}}));
}

TEST_F(SavedRanksTest, StateOfOneRank_IsFoundByName_WhoeverWalksItThen) {
  saved_ = {{{"a", Values({1})}}, {{"b", Values({2})}}, {{"c", Values({3})}}};
  std::vector<State> restored;
  const State all = {{"a", {1}}, {"b", {2}}, {"c", {3}}};
  ASSERT_OK(Restore({Walk({"a", "b", "c"})}, &restored));
  EXPECT_THAT(restored, ElementsAre(all));
  ASSERT_OK(Restore({Walk({"c"}), Walk({"a", "b"})}, &restored));
  EXPECT_THAT(restored, ElementsAre(State{{"c", {3}}}, State{{"a", {1}}, {"b", {2}}}));
  // As many, which divide it in another way, or do not divide it.
  ASSERT_OK(Restore({Walk({"b"}), Walk({"c"}), Walk({"a"})}, &restored));
  EXPECT_THAT(restored, ElementsAre(State{{"b", {2}}}, State{{"c", {3}}}, State{{"a", {1}}}));
  ASSERT_OK(Restore({Walk({"a", "b", "c"}), Walk({"a", "b", "c"}), Walk({"a", "b", "c"})}, &restored));
  EXPECT_THAT(restored, ElementsAre(all, all, all));
}

TEST_F(SavedRanksTest, WhatNoRankWalks_IsLeftOverOnRankZero) {
  saved_ = {{{"a", Values({1})}, {"old", Values({5})}}, {{"b", Values({2})}, {"older", Values({6})}}};
  std::vector<State> restored;
  ASSERT_OK(Restore({Walk({"b"}), Walk({"a"})}, &restored));
  EXPECT_THAT(restored, ElementsAre(State{{"b", {2}}, {"old", {5}}, {"older", {6}}}, State{{"a", {1}}}));
}

TEST_F(SavedRanksTest, OtherRanks_GetRankZerosUnlessDeclared) {
  saved_ = {{{"mean", Values({1})},
             {"rows", Values({0, 4})},
             {"count", Values({1})},
             {"loss", Values({2})},
             {"text", Values({7})}},
            {{"mean", Values({9})}, {"rows", Values({1, 5})}, {"count", Values({2})}, {"text", Values({8, 8})}},
            {{"rows", Values({2, 6})}, {"loss", Values({6})}, {"text", Values({})}},
            {{"rows", Values({3, 7})}, {"count", Values({4})}}};
  const WalkedState walked = Walk({"mean", "rows", "count", "loss", "text"}, {{"rows", {RankValues::kDealRows}},
                                                                              {"count", {RankValues::kSum}},
                                                                              {"loss", {RankValues::kMean}},
                                                                              {"text", {RankValues::kJoin}}});
  std::vector<State> restored;
  std::vector<std::string> said;
  ASSERT_OK(Restore({walked, walked}, &restored, &said));
  EXPECT_THAT(
      restored,
      ElementsAre(State{{"mean", {1}}, {"rows", {0, 2, 4, 6}}, {"count", {8}}, {"loss", {3}}, {"text", {7, 8, 8, 7}}},
                  State{{"mean", {1}}, {"rows", {1, 3, 5, 7}}, {"count", {0}}, {"loss", {3}}, {"text", {}}}))
      << "an entry that a rank has not of its own is rank 0's";
  EXPECT_THAT(said, ElementsAre("saved by 4 ranks, and goes on with 2: count is added up; loss is averaged; rows is "
                                "dealt out anew; text is put together; all else is rank 0's"));
  ASSERT_OK(Restore({walked}, &restored));
  EXPECT_THAT(restored[0]["rows"], ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(SavedRanksTest, RowsThatCannotBeShared_AreRefusedOnAllRanks) {
  saved_ = {{{"rows", Values({0, 1, 2, 3})}}};
  const WalkedState walked = Walk({"rows"}, {{"rows", {RankValues::kDealRows}}});
  std::vector<State> restored;
  EXPECT_THAT(Restore({walked, walked, walked}, &restored),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rows has 4 rows over all ranks that saved it, "
                                                                     "which 3 ranks cannot share equally")));
}

TEST_F(SavedRanksTest, RanksThatContradictEachOther_AreDamage) {
  saved_ = {{{"rows", Values({0, 1})}}, {{"rows", Values({0, 1, 2})}}};
  std::vector<State> restored;
  EXPECT_THAT(Restore({Walk({"rows"}, {{"rows", {RankValues::kDealRows}}})}, &restored),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("rows")));
}

}  // namespace
}  // namespace ssl
