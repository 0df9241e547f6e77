// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/token_features.h"

#include <ATen/ops/cat.h>

#include "absl/strings/str_cat.h"
#include "ssl/models/trunks/feature_index.h"

namespace ssl {
namespace {

using Form = TokenFeature::Form;

// `count` blocks up to the last one, `stride` apart.
std::vector<size_t> LastBlocks(size_t num_blocks, size_t count, size_t stride = 1) {
  std::vector<size_t> blocks;
  for (size_t i = count; i > 0; --i) blocks.push_back(num_blocks - 1 - (i - 1) * stride);
  return blocks;
}

void AddConcatenated(const std::string& prefix, Form form, size_t num_blocks, std::vector<TokenFeature>* features) {
  for (size_t count = 1; count <= num_blocks; ++count) {
    features->push_back({absl::StrCat(prefix, count), form, LastBlocks(num_blocks, count)});
  }
}

void AddStrided(size_t num_blocks, std::vector<TokenFeature>* features) {
  for (size_t count = 1; count <= num_blocks; ++count) {
    const std::string name = absl::StrCat("stridePOOL_", count);
    features->push_back({name, Form::kMean, LastBlocks(num_blocks, count, num_blocks / count)});
    for (size_t stride = 1; (count - 1) * stride < num_blocks && stride <= num_blocks; ++stride) {
      features->push_back({absl::StrCat(name, "_", stride), Form::kMean, LastBlocks(num_blocks, count, stride)});
    }
  }
}

}  // namespace

std::vector<TokenFeature> AllTokenFeatures(size_t num_blocks, bool has_class_token) {
  std::vector<TokenFeature> features;
  const size_t last = num_blocks - 1;
  if (has_class_token) {
    for (size_t block = 0; block < num_blocks; ++block) {
      features.push_back({absl::StrCat("blkCLS", block), Form::kClassToken, {block}});
    }
    AddConcatenated("concatCLS", Form::kClassToken, num_blocks, &features);
  } else {
    AddStrided(num_blocks, &features);
    AddConcatenated("concatPOOL", Form::kMean, num_blocks, &features);
  }
  AddConcatenated("concatBLK", Form::kTokens, num_blocks, &features);
  features.push_back({"lastBLK", Form::kTokens, {last}});
  features.push_back({"lastMAP", Form::kMap, {last}});
  features.push_back(has_class_token ? TokenFeature{"lastCLS", Form::kClassToken, {last}}
                                     : TokenFeature{"lastPOOL", Form::kMean, {last}});
  return features;
}

std::vector<TokenFeature> ChooseTokenFeatures(const std::vector<TokenFeature>& all,
                                              const std::vector<std::string>& names) {
  const std::vector<std::string> known = NamesOfFeatures(all);
  std::vector<TokenFeature> chosen;
  for (const std::string& name : names) chosen.push_back(all[FeatureIndex(name, known)]);
  return chosen;
}

std::vector<std::string> NamesOfFeatures(const std::vector<TokenFeature>& features) {
  std::vector<std::string> names;
  for (const TokenFeature& feature : features) names.push_back(feature.name);
  return names;
}

at::Tensor FormTokenFeature(const TokenFeature& feature, const std::vector<at::Tensor>& tokens, PatchGrid grid) {
  std::vector<at::Tensor> parts;
  for (const size_t block : feature.blocks) {
    const at::Tensor& of_block = tokens[block];
    const at::Tensor patches = of_block.narrow(1, of_block.size(1) - grid.size(), grid.size());
    switch (feature.form) {
      case Form::kClassToken:
        parts.push_back(of_block.select(1, 0));
        break;
      case Form::kTokens:
        parts.push_back(of_block);
        break;
      case Form::kMean:
        parts.push_back(patches.mean(1));
        break;
      case Form::kMap:
        parts.push_back(patches.unflatten(1, {grid.height, grid.width}).permute({0, 3, 1, 2}));
        break;
    }
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, -1);
}

}  // namespace ssl
