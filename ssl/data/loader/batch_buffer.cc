// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/batch_buffer.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/data/loader/view_floats.h"

namespace ssl {
namespace {

std::string ShapeText(int height, int width) { return absl::StrCat(height, " x ", width); }

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
    return absl::InvalidArgumentError(
        absl::StrCat("image has ", image_channels, " channels, expected 1 or IMAGE_CHANNELS, which is ", channels));
  }
  if (view.table->channels > channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("Normalize has ", view.table->channels, " values, expected one, as IMAGE_CHANNELS is ", channels));
  }
  return absl::OkStatus();
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
  for (int v = 0; v < first.num_views(); ++v) {
    const absl::Status status = CheckView(first.view(v), layout.channels);
    if (!status.ok()) return status;
    layout.views.push_back({first.view(v).image.height(), first.view(v).image.width()});
  }
  return layout;
}

BatchBuffer::BatchBuffer(const BatchLayout& layout) : layout_(layout) {
  memory_.views.resize(layout.views.size());
  for (const CollatedInput& input : layout.inputs) {
    std::vector<at::Tensor> tensors = AllocateInput(input);
    const std::vector<std::string>& keys = layout.input_keys;
    if (std::find(keys.begin(), keys.end(), input.name) == keys.end()) {
      unused_.insert(unused_.end(), tensors.begin(), tensors.end());
    } else if (keys.size() == 1) {
      full_.views = std::move(tensors);
    } else {
      full_.named_inputs[input.name] = tensors.front();
    }
  }
  full_.indices = at::empty({layout.batch_size}, at::TensorOptions().dtype(at::kLong));
  memory_.indices = full_.indices.mutable_data_ptr<int64_t>();
  memory_.label_columns = layout.label_columns;
  if (layout.has_labels) AllocateTargets();
}

std::vector<at::Tensor> BatchBuffer::AllocateInput(const CollatedInput& input) {
  const at::TensorOptions floats = at::TensorOptions().dtype(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast);
  const int end = input.num_views < 0 ? static_cast<int>(layout_.views.size()) : input.first_view + input.num_views;
  const int joined = input.joins_views ? end - input.first_view : 1;
  std::vector<at::Tensor> tensors;
  for (int first = input.first_view; first < end; first += joined) {
    const ViewShape& shape = layout_.views[first];
    tensors.push_back(at::empty({layout_.batch_size * joined, layout_.channels, shape.height, shape.width}, floats));
    float* values = tensors.back().mutable_data_ptr<float>();
    for (int v = first; v < first + joined; ++v) {
      memory_.views[v] = {values, shape.height, shape.width, layout_.channels, joined};
      values += memory_.views[v].row_size();
    }
  }
  return tensors;
}

void BatchBuffer::AllocateTargets() {
  const at::TensorOptions floats = at::TensorOptions().dtype(at::kFloat);
  const at::TensorOptions integers = at::TensorOptions().dtype(at::kLong);
  const int64_t rows = layout_.batch_size;
  const int64_t columns = layout_.label_columns;
  if (layout_.targets.kind == TargetLayout::Kind::kLabels) {
    full_.targets = columns == 0 ? at::empty({rows}, integers) : at::empty({rows, columns}, integers);
    memory_.labels = full_.targets.mutable_data_ptr<int64_t>();
    return;
  }
  if (layout_.targets.kind == TargetLayout::Kind::kNone) return;
  labels_.resize(rows * std::max<int64_t>(columns, 1));
  memory_.labels = labels_.data();
  if (layout_.targets.kind == TargetLayout::Kind::kRows) {
    full_.targets = at::empty({rows, layout_.targets.columns}, integers);
    memory_.target_rows = full_.targets.mutable_data_ptr<int64_t>();
  } else {
    full_.targets = at::empty({rows, layout_.targets.columns}, floats);
    memory_.target_weights = full_.targets.mutable_data_ptr<float>();
  }
}

absl::Status BatchBuffer::Write(const Sample& sample, int64_t row) {
  const int num_views = static_cast<int>(layout_.views.size());
  if (sample.num_views() != num_views) {
    return absl::InvalidArgumentError(absl::StrCat("sample ", sample.index, " has ", sample.num_views(),
                                                   " views, expected ", num_views, " as the first sample"));
  }
  for (int v = 0; v < num_views; ++v) {
    const View& view = sample.view(v);
    const ViewShape& shape = layout_.views[v];
    if (view.image.height() != shape.height || view.image.width() != shape.width) {
      return absl::InvalidArgumentError(absl::StrCat("sample ", sample.index, ", view ", v, " is ",
                                                     ShapeText(view.image.height(), view.image.width()), ", expected ",
                                                     ShapeText(shape.height, shape.width),
                                                     " as the first sample; add a crop or resize to the transforms"));
    }
    const absl::Status status = CheckView(view, layout_.channels);
    if (!status.ok()) return status;
    WriteViewFloats(view, layout_.channels, memory_.views[v].row(row));
    WriteErased(view, layout_.channels, memory_.views[v].row(row));
  }
  memory_.indices[row] = sample.index;
  return WriteLabels(sample, row);
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
  partial_.indices = full_.indices.narrow(0, 0, rows);
  if (full_.targets.defined()) partial_.targets = full_.targets.narrow(0, 0, rows);
  return partial_;
}

}  // namespace ssl
