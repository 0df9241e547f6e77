// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/batch_views.h"

#include <algorithm>
#include <cstdint>

namespace ssl {
namespace {

// images: [B * n, ...], all n views of sample 0 first.
void AddApart(const at::Tensor& images, int64_t samples, std::vector<at::Tensor>* views) {
  const int64_t joined = samples == 0 ? 1 : std::max<int64_t>(1, images.size(0) / samples);
  for (int64_t v = 0; v < joined; ++v) views->push_back(images.slice(0, v, images.size(0), joined));
}

}  // namespace

std::vector<at::Tensor> ViewsOf(const Batch& batch) {
  std::vector<at::Tensor> views;
  for (const at::Tensor& images : batch.views) AddApart(images, batch.size(), &views);
  for (const auto& [name, images] : batch.named_inputs) AddApart(images, batch.size(), &views);
  return views;
}

bool HasARowForEachSample(const Batch& batch) {
  if (!batch.indices.defined()) return true;  // a host's: nothing says that a row is not a sample
  return std::all_of(batch.views.begin(), batch.views.end(),
                     [&batch](const at::Tensor& images) { return images.size(0) == batch.size(); });
}

}  // namespace ssl
