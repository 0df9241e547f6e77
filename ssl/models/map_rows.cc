// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/map_rows.h"

#include "ssl/models/channel_kernels.h"

namespace ssl {

bool HasRows(const at::Tensor& map) {
  return map.is_cpu() && map.dim() == 4 && map.numel() > 0 && map.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         (map.scalar_type() == at::kFloat || map.scalar_type() == at::kBFloat16);
}

MapRows::MapRows(const at::Tensor& map)
    : channels_(map.size(1)),
      rows_(map.numel() / map.size(1)),
      data_(map.data_ptr()),
      narrow_(map.scalar_type() == at::kBFloat16) {}

const float* MapRows::Read(int64_t begin, int64_t count, std::vector<float>* buffer) const {
  if (!narrow_) return static_cast<const float*>(data_) + begin * channels_;
  WidenBfloat16(static_cast<const uint16_t*>(data_) + begin * channels_, count * channels_, buffer->data());
  return buffer->data();
}

void MapRows::Store(const float* values, int64_t begin, int64_t count) const {
  if (narrow_) NarrowToBfloat16(values, count * channels_, static_cast<uint16_t*>(data_) + begin * channels_);
}

}  // namespace ssl
