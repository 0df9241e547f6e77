// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/token_features.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr PatchGrid kGrid = {2, 3};

// Tokens of block `block`: [2 images, tokens, 4].
at::Tensor TokensOf(int64_t block, int64_t tokens) {
  return at::arange(2 * tokens * 4, at::kFloat).view({2, tokens, 4}) + 1000 * block;
}

at::Tensor Form(const std::string& name, size_t blocks, bool has_class_token) {
  const std::vector<TokenFeature> all = AllTokenFeatures(blocks, has_class_token);
  std::vector<at::Tensor> tokens;
  const TokenFeature feature = ChooseTokenFeatures(all, {name})[0];
  for (size_t block = 0; block < blocks; ++block) {
    const bool is_read = std::set<size_t>(feature.blocks.begin(), feature.blocks.end()).count(block) > 0;
    tokens.push_back(is_read ? TokensOf(static_cast<int64_t>(block), has_class_token ? 7 : 6) : at::Tensor());
  }
  return FormTokenFeature(feature, tokens, kGrid);
}

TEST(TokenFeatures, ClassTokensOfBlocks) {
  const auto class_token = [](int64_t block) { return TokensOf(block, 7).select(1, 0); };
  EXPECT_TRUE(at::equal(Form("blkCLS1", 3, true), class_token(1)));
  EXPECT_TRUE(at::equal(Form("lastCLS", 3, true), class_token(2)));
  EXPECT_TRUE(at::equal(Form("concatCLS2", 3, true), at::cat({class_token(1), class_token(2)}, 1)));
}

TEST(TokenFeatures, TokensAndMapsOfPatches) {
  EXPECT_TRUE(at::equal(Form("lastBLK", 3, true), TokensOf(2, 7)));
  EXPECT_TRUE(at::equal(Form("concatBLK2", 3, true), at::cat({TokensOf(1, 7), TokensOf(2, 7)}, 2)));
  const at::Tensor map = Form("lastMAP", 3, true);
  EXPECT_EQ(map.sizes(), at::IntArrayRef({2, 4, 2, 3}));
  EXPECT_TRUE(at::equal(map.select(2, 1).select(2, 2), TokensOf(2, 7).select(1, 6))) << "behind the class token";
  EXPECT_TRUE(at::equal(Form("lastMAP", 3, false).select(2, 0).select(2, 1), TokensOf(2, 6).select(1, 1)));
}

TEST(TokenFeatures, MeansWithoutAClassToken) {
  const auto mean = [](int64_t block) { return TokensOf(block, 6).mean(1); };
  EXPECT_TRUE(at::equal(Form("lastPOOL", 4, false), mean(3)));
  EXPECT_TRUE(at::equal(Form("concatPOOL2", 4, false), at::cat({mean(2), mean(3)}, 1)));
  EXPECT_TRUE(at::equal(Form("stridePOOL_2_3", 4, false), at::cat({mean(0), mean(3)}, 1)));
  EXPECT_TRUE(at::equal(Form("stridePOOL_2", 4, false), at::cat({mean(1), mean(3)}, 1)));
  EXPECT_TRUE(at::equal(Form("stridePOOL_4", 4, false), at::cat({mean(0), mean(1), mean(2), mean(3)}, 1)));
}

TEST(TokenFeatures, OfANetworkAreNamedOnce) {
  EXPECT_THAT(NamesOfFeatures(AllTokenFeatures(2, true)),
              ElementsAre("blkCLS0", "blkCLS1", "concatCLS1", "concatCLS2", "concatBLK1", "concatBLK2", "lastBLK",
                          "lastMAP", "lastCLS"));
  const std::vector<std::string> without = NamesOfFeatures(AllTokenFeatures(12, false));
  EXPECT_EQ(without.back(), "lastPOOL");
  EXPECT_THAT(without, IsSupersetOf({"concatPOOL4", "stridePOOL_4", "stridePOOL_4_3", "concatBLK12"}));
  EXPECT_EQ(std::set<std::string>(without.begin(), without.end()).size(), without.size());
}

TEST(TokenFeatures, AnUnknownOneIsNamedWithTheNearest) {
  const std::vector<TokenFeature> all = AllTokenFeatures(2, true);
  try {
    ChooseTokenFeatures(all, {"lastCLS", "lastCSL"});
    FAIL() << "it has no such feature";
  } catch (const c10::ValueError& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("feature 'lastCSL' is not one of blkCLS0, "));
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("lastCLS"));
  }
  EXPECT_THROW(ChooseTokenFeatures(all, {"lastPOOL"}), c10::ValueError) << "there is a class token";
  EXPECT_THROW(ChooseTokenFeatures(all, {"blkCLS2"}), c10::ValueError) << "there are two blocks";
}

}  // namespace
}  // namespace ssl
