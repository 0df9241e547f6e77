// SPDX-License-Identifier: Apache-2.0
//
// VISSL's names for what a transformer of L blocks gives on its way; i counts blocks from 0, n is at most L. Tokens are
// those behind the network's last norm, whichever block they come from:
//
//   blkCLS<i>, lastCLS         [B, C]               the class token of block i, of the last block
//   concatCLS<n>               [B, n C]             class tokens of the last n blocks, in the order of the network
//   lastBLK                    [B, N, C]            all tokens of the last block
//   concatBLK<n>               [B, N, n C]          all tokens of the last n blocks
//   lastMAP                    [B, C, h, w]         tokens of patches, as a map
//   lastPOOL, concatPOOL<n>    [B, C], [B, n C]     means over the patches, of networks without class token
//   stridePOOL_<n>_<s>         [B, n C]             of n blocks: the last one and every s-th before it
//   stridePOOL_<n>             [B, n C]             the same with s = L / n
#ifndef SSL_MODELS_TRUNKS_TOKEN_FEATURES_H_
#define SSL_MODELS_TRUNKS_TOKEN_FEATURES_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "ssl/models/trunks/position_embedding.h"

namespace ssl {

struct TokenFeature {
  enum class Form { kClassToken, kTokens, kMean, kMap };

  std::string name;
  Form form = Form::kClassToken;
  std::vector<size_t> blocks;  // whose tokens are joined along channels, in the order of the network
};

// All of a network; the last one is its output: lastCLS, or lastPOOL without class token.
std::vector<TokenFeature> AllTokenFeatures(size_t num_blocks, bool has_class_token);

// Of these names, in their order. One that is not among `all` throws c10::ValueError, which names the nearest one.
std::vector<TokenFeature> ChooseTokenFeatures(const std::vector<TokenFeature>& all,
                                              const std::vector<std::string>& names);

std::vector<std::string> NamesOfFeatures(const std::vector<TokenFeature>& features);

// tokens: by block, normalised, [B, N, C]; those that the feature does not read may be undefined. grid: of the patches,
// which are the last tokens.
at::Tensor FormTokenFeature(const TokenFeature& feature, const std::vector<at::Tensor>& tokens, PatchGrid grid);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_TOKEN_FEATURES_H_
