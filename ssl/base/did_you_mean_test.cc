// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/did_you_mean.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

const std::vector<std::string>& Names() {
  static const auto* names =
      new std::vector<std::string>{"swav_loss", "moco_loss", "BATCHSIZE_PER_REPLICA", "num_epochs", "lr", "momentum"};
  return *names;
}

TEST(NearestNameTest, OneEdit_IsNear) {
  EXPECT_EQ(NearestName("swav_los", Names()), "swav_loss");    // deleted
  EXPECT_EQ(NearestName("swav_losss", Names()), "swav_loss");  // inserted
  EXPECT_EQ(NearestName("swav_lozs", Names()), "swav_loss");   // replaced
  EXPECT_EQ(NearestName("swva_loss", Names()), "swav_loss");   // swapped
}

TEST(NearestNameTest, Swap_CountsOnce) {
  // Two swaps are two edits; as four replacements they would be too far from a 6-letter name.
  EXPECT_EQ(NearestName("badcef", {"abcdef"}), "abcdef");
}

TEST(NearestNameTest, Case_DoesNotCount) {
  EXPECT_EQ(NearestName("batchsize_per_replica", Names()), "BATCHSIZE_PER_REPLICA");
}

TEST(NearestNameTest, FarNames_AreNotSuggested) {
  EXPECT_EQ(NearestName("temperature", Names()), "");
  EXPECT_EQ(NearestName("", Names()), "");
  EXPECT_EQ(NearestName("swav_loss", {}), "");
}

TEST(NearestNameTest, ShortName_IsNotNearToEveryOtherShortName) {
  EXPECT_EQ(NearestName("wd", Names()), "");
  EXPECT_EQ(NearestName("x", {"y"}), "");
  EXPECT_EQ(NearestName("lrr", Names()), "lr");
}

TEST(NearestNameTest, LimitIsAThirdOfTheLength) {
  const std::string name = "abcdefghi";  // 9 letters: 3 edits
  EXPECT_EQ(NearestName("xyzdefghi", {name}), name);
  EXPECT_EQ(NearestName("wxyzefghi", {name}), "");
}

TEST(NearestNameTest, GreatestDistance_NarrowsTheLimit) {
  const std::string name = "abcdefghi";
  EXPECT_EQ(NearestName("xyzdefghi", {name}, 2), "");
  EXPECT_EQ(NearestName("xycdefghi", {name}, 2), name);
  EXPECT_EQ(NearestName("xbcdefghi", {name}, 0), "");
  EXPECT_EQ(NearestName("ABCDEFGHI", {name}, 0), name);
  EXPECT_EQ(NearestName("wxyzefghi", {name}, 4), "") << "it widens nothing";
}

TEST(NearestNameTest, NearestWins_AndTheFirstOnATie) {
  EXPECT_EQ(NearestName("moco_lss", {"moco_less", "moco_loss"}), "moco_less");
  EXPECT_EQ(NearestName("moco_loss2", {"moco_lose", "moco_loss"}), "moco_loss");
}

TEST(NearestNameTest, ANameThatTheWordBegins_ComesBeforeNearerOnes) {
  EXPECT_EQ(NearestName("self_supervision_fsdp", {"self_supervision_task", "self_supervision_fsdp_task"}),
            "self_supervision_fsdp_task");
  EXPECT_EQ(NearestName("SWAV", {"swab", "swav_1"}), "swav_1");
  EXPECT_EQ(NearestName("swav", {"swab", "swav_loss"}), "swab") << "it has to be near";
  EXPECT_EQ(NearestName("swav_h", {"swav_head", "swav_hd"}), "swav_hd") << "the nearest of these";
}

TEST(NearestNameTest, WholeWordsOfALongerName_StandForItWhereNoneIsNear) {
  EXPECT_EQ(NearestName("BATCHSIZE", Names()), "BATCHSIZE_PER_REPLICA");
  EXPECT_EQ(NearestName("swav", {"dino_loss", "swav_momentum_loss", "swav_loss"}), "swav_loss") << "the shortest";
  EXPECT_EQ(NearestName("epochs", {"num_epochs_of_all", "num_epochs"}), "num_epochs");
  EXPECT_EQ(NearestName("batchs", Names()), "") << "a part of a word";
  EXPECT_EQ(NearestName("num", Names()), "") << "too short";
  EXPECT_EQ(NearestName("BATCHSIZE", Names(), 4), "") << "has to be near";
}

TEST(NearestNameTest, HugeName_IsAnsweredWithoutQuadraticWork) {
  EXPECT_EQ(NearestName(std::string(10'000'000, 'a'), Names()), "");
}

TEST(DidYouMeanTest, Text_IsReadyForTheEndOfAMessage) {
  EXPECT_EQ(DidYouMean("num_epoch", Names()), "; did you mean 'num_epochs'?");
  EXPECT_EQ(DidYouMean("temperature", Names()), "");
}

}  // namespace
}  // namespace ssl
