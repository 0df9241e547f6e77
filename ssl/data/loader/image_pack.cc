// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/image_pack.h"

#include <c10/util/llvmMathExtras.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/core/pinned_memory.h"

namespace ssl {
namespace {

// Behind the last byte that the view reads of its image.
int64_t SourceEnd(const ViewPlan& plan) {
  return plan.source_begin + (plan.rows.in - 1) * plan.source_stride +
         static_cast<int64_t>(plan.columns.in) * plan.source_channels;
}

at::Tensor EmptyBytes(int64_t size, const c10::Device& device) {
  return EmptyPinned({size}, at::kByte, at::MemoryFormat::Contiguous, device);
}

// From the first byte that the views read of their image to the one behind the last.
std::pair<int64_t, int64_t> RangeRead(absl::Span<const ViewPlan> plans) {
  std::pair<int64_t, int64_t> range = {std::numeric_limits<int64_t>::max(), 0};
  for (const ViewPlan& plan : plans) {
    range.first = std::min(range.first, plan.source_begin);
    range.second = std::max(range.second, SourceEnd(plan));
  }
  return range;
}

}  // namespace

int64_t ImagePack::BytesOfImages(const BatchLayout& layout) {
  const int64_t full_blocks = layout.batch_size / kBlockRows;
  return full_blocks * PinnedBytes(kBlockRows * layout.image_bytes, layout.device) +
         PinnedBytes(layout.batch_size % kBlockRows * layout.image_bytes, layout.device);
}

ImagePack::ImagePack(const BatchLayout& layout)
    : layout_(layout),
      blocks_(static_cast<size_t>((layout.batch_size + kBlockRows - 1) / kBlockRows)),
      plans_(static_cast<size_t>(layout.batch_size) * layout.views.size()),
      plan_memory_(EmptyBytes(static_cast<int64_t>(plans_.size() * sizeof(ViewPlan)), layout.device)) {
  images_.normalization = {layout.tables[0]->mean, layout.tables[0]->std};
}

void ImagePack::Clear(Block* block) {
  block->use.Add(block->used);
  block->used = 0;
  if (!block->use.is_over()) return;
  block->memory.reset();
  block->use = BufferUse();
  lets_go_ = true;
}

uint8_t* ImagePack::Add(int64_t bytes, Block* block) const {
  const int64_t needed = block->used + bytes;
  if (!block->memory.defined() || block->memory.numel() < needed) {
    // Doubles: so much is taken by LibTorch in any case.
    const at::Tensor larger = EmptyBytes(static_cast<int64_t>(c10::llvm::PowerOf2Ceil(needed)), layout_.device);
    if (block->used > 0) {
      std::memcpy(larger.mutable_data_ptr(), block->memory.const_data_ptr(), static_cast<size_t>(block->used));
    }
    block->memory = larger;
  }
  uint8_t* const added = block->memory.mutable_data_ptr<uint8_t>() + block->used;
  block->used = needed;
  return added;
}

absl::Status ImagePack::Write(const Image& image, absl::Span<const ViewPlan> plans, int64_t row) {
  const size_t views = layout_.views.size();
  for (size_t v = 0; v < plans.size(); ++v) {
    if (plans.size() == views && plans[v].rows.out == layout_.views[v].height &&
        plans[v].columns.out == layout_.views[v].width) {
      continue;
    }
    return absl::InternalError(absl::StrCat("view ", v, " is planned otherwise than the transforms make it"));
  }
  const auto [begin, end] = RangeRead(plans);
  Block& block = blocks_[static_cast<size_t>(row / kBlockRows)];
  if (row % kBlockRows == 0) Clear(&block);
  const int64_t moved = block.used - begin;
  std::memcpy(Add(end - begin, &block), image.pixels() + begin, static_cast<size_t>(end - begin));
  for (size_t v = 0; v < views; ++v) {
    ViewPlan& plan = plans_[static_cast<size_t>(row) * views + v];
    plan = plans[v];
    plan.source_begin += moved;
  }
  return absl::OkStatus();
}

std::vector<ImagePack::Place> ImagePack::Places(int64_t rows) {
  const int num_views = static_cast<int>(layout_.views.size());
  const int joined = layout_.inputs[0].joins_views ? num_views : 1;
  std::vector<Place> places;
  int64_t begin = 0;
  images_.sizes.clear();
  for (int v = 0; v < num_views; ++v) {
    const ViewShape& shape = layout_.views[static_cast<size_t>(v)];
    const int64_t values = int64_t{3} * shape.height * shape.width;
    places.push_back({begin + v % joined * values, joined * values});
    if (v % joined != joined - 1) continue;
    images_.sizes.push_back({rows * joined, 3, shape.height, shape.width});
    begin += rows * joined * values;
  }
  return places;
}

void ImagePack::Finish(int64_t rows) {
  const std::vector<Place> places = Places(rows);
  if (is_free_) ReleaseUnusedPinned(layout_.device);
  images_.blocks.clear();
  is_free_ = lets_go_.exchange(false);
  int64_t block_begin = 0;
  auto* plan = static_cast<ViewPlan*>(plan_memory_.mutable_data_ptr());
  for (int64_t row = 0; row < rows; ++row) {
    const Block& block = blocks_[static_cast<size_t>(row / kBlockRows)];
    if (row % kBlockRows == 0) {
      if (row > 0) block_begin += images_.blocks.back().numel();
      images_.blocks.push_back(block.memory.narrow(0, 0, block.used));
    }
    for (size_t v = 0; v < places.size(); ++v, ++plan) {
      *plan = plans_[static_cast<size_t>(row) * places.size() + v];
      plan->source_begin += block_begin;
      plan->result_begin = places[v].begin + row * places[v].step;
    }
  }
  const int64_t plan_bytes = rows * static_cast<int64_t>(places.size() * sizeof(ViewPlan));
  images_.plans = plan_memory_.narrow(0, 0, plan_bytes);
}

}  // namespace ssl
