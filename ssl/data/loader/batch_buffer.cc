// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/batch_buffer.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/core/pinned_memory.h"
#include "ssl/data/loader/view_floats.h"
#include "ssl/data/loader/view_pixels.h"

namespace ssl {
namespace {

std::string ShapeText(int height, int width) { return absl::StrCat(width, " x ", height); }

// Puts the floats of an erased box over what was written.
void WriteErased(const View& view, int channels, float* output) {
  const CropBox& box = view.erased.box;
  const int width = view.image.width();
  const float* values = view.erased.values.data();
  for (int y = box.top; y < box.top + box.height; ++y) {
    for (int x = box.left; x < box.left + box.width; ++x, values += 3) {
      const int64_t column = view.flipped ? width - 1 - x : x;
      std::copy(values, values + channels, output + (static_cast<int64_t>(y) * width + column) * channels);
    }
  }
}

absl::Status CheckView(const View& view, int channels) {
  if (view.table == nullptr) {
    return absl::InvalidArgumentError("the transforms leave 8-bit pixels, expected ToTensor among them");
  }
  const int image_channels = view.image.channels();
  if (image_channels != 1 && image_channels != channels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "image has ", image_channels, " channels and IMAGE_CHANNELS is ", channels, "; expected ", image_channels,
        ", or Grayscale among the transforms: files are decoded in three channels, of which ", "grey ones fill all"));
  }
  if (view.table->channels > channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("Normalize has ", view.table->channels, " values, expected one, as IMAGE_CHANNELS is ", channels));
  }
  return absl::OkStatus();
}

int NumViews(const BatchLayout& layout, const CollatedInput& input) {
  return input.num_views < 0 ? static_cast<int>(layout.views.size()) - input.first_view : input.num_views;
}

// Of the tensor that begins with view `first`.
int NumJoined(const BatchLayout& layout, const CollatedInput& input) {
  return input.joins_views ? NumViews(layout, input) : 1;
}

// A batch has a class for each row, or a row of classes.
absl::Status CheckNoLabelList(const Sample& sample) {
  if (sample.label_list.empty() || !sample.label_row.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("sample ", sample.index, " has ", sample.label_list.size(),
                                                 " labels, one from each file of LABEL_PATHS; expected OneHotEncode "
                                                 "among TRANSFORMS, which makes one row of them"));
}

}  // namespace

absl::StatusOr<BatchLayout> LayoutFor(const Sample& first, BatchLayout layout) {
  if (layout.has_labels) {
    const absl::Status status = CheckNoLabelList(first);
    if (!status.ok()) return status;
  }
  layout.label_columns = static_cast<int64_t>(first.label_row.size());
  layout.views.clear();
  layout.tables.clear();
  for (int v = 0; v < first.num_views(); ++v) {
    const absl::Status status = CheckView(first.view(v), layout.channels);
    if (!status.ok()) return status;
    layout.views.push_back({first.view(v).image.height(), first.view(v).image.width()});
    layout.tables.push_back(first.view(v).table);
  }
  return layout;
}

bool CanKeepPixels(const BatchLayout& layout) {
  const auto& tables = layout.tables;
  if (std::any_of(tables.begin(), tables.end(), [](const PixelTable* table) { return table->mean.empty(); })) {
    return false;
  }
  return std::all_of(layout.inputs.begin(), layout.inputs.end(), [&](const CollatedInput& input) {
    if (!input.joins_views) return true;
    const auto first = tables.begin() + input.first_view;
    return std::all_of(first, first + NumViews(layout, input), [&](const PixelTable* table) {
      return table->mean == (*first)->mean && table->std == (*first)->std;
    });
  });
}

int64_t BytesOfImages(const BatchLayout& layout) {
  const auto value_size = static_cast<int64_t>(layout.keeps_pixels ? sizeof(uint8_t) : sizeof(float));
  int64_t bytes = 0;
  for (const CollatedInput& input : layout.inputs) {
    const int joined = NumJoined(layout, input);
    for (int v = input.first_view; v < input.first_view + NumViews(layout, input); v += joined) {
      const ViewShape& view = layout.views[static_cast<size_t>(v)];
      const int64_t of_view = int64_t{view.height} * view.width * layout.channels * layout.batch_size * value_size;
      bytes += PinnedBytes(joined * of_view, layout.device);
    }
  }
  return bytes;
}

BatchBuffer::BatchBuffer(const BatchLayout& layout) : layout_(layout) {
  if (!layout.plans_views) AllocateInputs();
  full_.indices = EmptyPinned({layout.batch_size}, at::kLong, at::MemoryFormat::Contiguous, c10::kCPU);
  memory_.indices = full_.indices.mutable_data_ptr<int64_t>();
  memory_.label_columns = layout.label_columns;
  if (layout.has_labels) AllocateTargets();
}

void BatchBuffer::AllocateInputs() {
  const BatchLayout& layout = layout_;
  memory_.views.resize(layout.views.size());
  pixels_.resize(layout.views.size(), nullptr);
  std::map<std::string, PixelNormalization> of_named;
  for (const CollatedInput& input : layout.inputs) {
    Input allocated = AllocateInput(input);
    const std::vector<std::string>& keys = layout.input_keys;
    if (std::find(keys.begin(), keys.end(), input.name) == keys.end()) {
      unused_.insert(unused_.end(), allocated.tensors.begin(), allocated.tensors.end());
    } else if (keys.size() == 1) {
      full_.views = std::move(allocated.tensors);
      full_.normalizations = std::move(allocated.normalizations);
    } else {
      full_.named_inputs[input.name] = allocated.tensors.front();
      if (layout.keeps_pixels) of_named[input.name] = allocated.normalizations.front();
    }
  }
  for (auto& [name, normalization] : of_named) full_.normalizations.push_back(std::move(normalization));
}

BatchBuffer::Input BatchBuffer::AllocateInput(const CollatedInput& input) {
  const int end = input.first_view + NumViews(layout_, input);
  const int joined = NumJoined(layout_, input);
  const at::ScalarType type = layout_.keeps_pixels ? at::kByte : at::kFloat;
  Input allocated;
  for (int first = input.first_view; first < end; first += joined) {
    const ViewShape& shape = layout_.views[first];
    at::Tensor images = EmptyPinned({layout_.batch_size * joined, layout_.channels, shape.height, shape.width}, type,
                                    at::MemoryFormat::ChannelsLast, layout_.device);
    float* const floats = layout_.keeps_pixels ? nullptr : images.mutable_data_ptr<float>();
    uint8_t* const pixels = layout_.keeps_pixels ? images.mutable_data_ptr<uint8_t>() : nullptr;
    for (int v = first; v < first + joined; ++v) {
      memory_.views[v] = {nullptr, shape.height, shape.width, layout_.channels, joined};
      const int64_t offset = (v - first) * memory_.views[v].row_size();
      if (layout_.keeps_pixels) {
        pixels_[v] = pixels + offset;
      } else {
        memory_.views[v].values = floats + offset;
      }
    }
    allocated.tensors.push_back(std::move(images));
    if (!layout_.keeps_pixels) continue;
    allocated.normalizations.push_back({layout_.tables[first]->mean, layout_.tables[first]->std});
  }
  return allocated;
}

void BatchBuffer::AllocateTargets() {
  const auto empty = [this](const std::vector<int64_t>& sizes, at::ScalarType type) {
    return EmptyPinned(sizes, type, at::MemoryFormat::Contiguous, layout_.device);
  };
  const int64_t rows = layout_.batch_size;
  const int64_t columns = layout_.label_columns;
  if (layout_.targets.kind == TargetLayout::Kind::kLabels) {
    full_.targets = columns == 0 ? empty({rows}, at::kLong) : empty({rows, columns}, at::kLong);
    memory_.labels = full_.targets.mutable_data_ptr<int64_t>();
    return;
  }
  if (layout_.targets.kind == TargetLayout::Kind::kNone) return;
  labels_.resize(rows * std::max<int64_t>(columns, 1));
  memory_.labels = labels_.data();
  if (layout_.targets.kind == TargetLayout::Kind::kRows) {
    full_.targets = empty({rows, layout_.targets.columns}, at::kLong);
    memory_.target_rows = full_.targets.mutable_data_ptr<int64_t>();
  } else {
    full_.targets = empty({rows, layout_.targets.columns}, at::kFloat);
    memory_.target_weights = full_.targets.mutable_data_ptr<float>();
  }
}

absl::Status BatchBuffer::Write(const Sample& sample, int64_t row) {
  if (!layout_.plans_views) {
    const absl::Status status = WriteViews(sample, row);
    if (!status.ok()) return status;
  }
  memory_.indices[row] = sample.index;
  return WriteLabels(sample, row);
}

absl::Status BatchBuffer::WriteViews(const Sample& sample, int64_t row) {
  const int num_views = static_cast<int>(layout_.views.size());
  if (sample.num_views() != num_views) {
    return absl::InvalidArgumentError(absl::StrCat("sample ", sample.index, " has ", sample.num_views(),
                                                   " views, expected ", num_views, " as the first sample"));
  }
  for (int v = 0; v < num_views; ++v) {
    const View& view = sample.view(v);
    const ViewShape& shape = layout_.views[v];
    if (view.image.height() != shape.height || view.image.width() != shape.width) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sample ", sample.index, ", view ", v, " is ", ShapeText(view.image.height(), view.image.width()),
          ", expected ", ShapeText(shape.height, shape.width),
          " (width x height) as the first sample; add a crop or resize to the transforms"));
    }
    absl::Status status = CheckView(view, layout_.channels);
    if (!status.ok()) return status;
    status = WriteView(sample, v, row);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BatchBuffer::WriteView(const Sample& sample, int v, int64_t row) {
  const View& view = sample.view(v);
  const BatchRows::View& rows = memory_.views[v];
  if (!layout_.keeps_pixels) {
    WriteViewFloats(view, layout_.channels, rows.row(row));
    WriteErased(view, layout_.channels, rows.row(row));
    return absl::OkStatus();
  }
  if (view.table != layout_.tables[v] || view.erased.box.height > 0) {
    return absl::InternalError(absl::StrCat("sample ", sample.index, ", view ", v,
                                            " has another table than the first sample, or floats of its own, and no "
                                            "transform says so (Transform::float_rule)"));
  }
  WriteViewPixels(view, layout_.channels, pixels_[v] + row * rows.interleaved * rows.row_size());
  return absl::OkStatus();
}

absl::Status BatchBuffer::WriteLabels(const Sample& sample, int64_t row) {
  if (memory_.labels == nullptr) return absl::OkStatus();
  const absl::Status status = CheckNoLabelList(sample);
  if (!status.ok()) return status;
  const int64_t columns = layout_.label_columns;
  if (static_cast<int64_t>(sample.label_row.size()) != columns) {
    return absl::InvalidArgumentError(absl::StrCat("sample ", sample.index, " has labels for ", sample.label_row.size(),
                                                   " classes, expected ", columns, " as the first sample"));
  }
  if (columns == 0) {
    memory_.labels[row] = sample.label;
  } else {
    std::copy(sample.label_row.begin(), sample.label_row.end(), memory_.labels + row * columns);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> BatchBuffer::Collate(const Collator& collator, const CollateContext& context, int64_t rows) {
  memory_.rows = rows;
  const absl::Status status = collator.Collate(context, &memory_);
  if (!status.ok()) return status;
  return memory_.rows;
}

const Batch& BatchBuffer::Finish(int64_t rows) {
  if (rows == layout_.batch_size) return full_;
  partial_ = Batch();
  // A tensor of joined views has several rows for each sample.
  const auto first_rows = [&](const at::Tensor& images) {
    return images.narrow(0, 0, images.size(0) / layout_.batch_size * rows);
  };
  for (const at::Tensor& view : full_.views) partial_.views.push_back(first_rows(view));
  for (const auto& [name, input] : full_.named_inputs) partial_.named_inputs[name] = first_rows(input);
  partial_.normalizations = full_.normalizations;
  partial_.indices = full_.indices.narrow(0, 0, rows);
  if (full_.targets.defined()) partial_.targets = full_.targets.narrow(0, 0, rows);
  return partial_;
}

}  // namespace ssl
