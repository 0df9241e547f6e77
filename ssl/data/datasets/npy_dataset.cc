// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/npy_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/sample.h"

namespace ssl {
namespace {

constexpr int64_t kMostSide = 65535;

absl::Status CheckArray(const NpyArray& array) {
  if (array.dtype != NpyDtype::kUint8) {
    return absl::InvalidArgumentError(
        absl::StrCat(array.path, ": values have ", array.item_bytes, " bytes or are no numbers, expected 8-bit images ",
                     "(|u1); in numpy, images from 0 to 1 become such by (255 * images).round().astype('uint8')"));
  }
  const std::vector<int64_t>& shape = array.shape;
  const bool has_channels = shape.size() == 4;
  const bool valid = (shape.size() == 3 || has_channels) && (!has_channels || shape[3] == 1 || shape[3] == 3) &&
                     shape[0] >= 1 && shape[1] >= 1 && shape[2] >= 1 && std::max(shape[1], shape[2]) <= kMostSide;
  if (valid) return absl::OkStatus();
  if (!shape.empty() && shape[0] == 0) {
    return absl::InvalidArgumentError(absl::StrCat(array.path, ": holds no images, expected at least one"));
  }
  const bool channels_first = has_channels && (shape[1] == 1 || shape[1] == 3);
  return absl::InvalidArgumentError(absl::StrCat(
      array.path, ": images have the shape [", absl::StrJoin(shape, ", "), "], expected [N, height, width] or [N, ",
      "height, width, channels] with 1 or 3 channels",
      channels_first ? "; channels stand first here: numpy.ascontiguousarray(images.transpose(0, 2, 3, 1))" : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<NpyDataset>> NpyDataset::Create(NpyArray array) {
  SSL_RETURN_IF_ERROR(CheckArray(array));
  return absl::WrapUnique(new NpyDataset(std::move(array)));
}

NpyDataset::NpyDataset(NpyArray array)
    : array_(std::move(array)),
      height_(static_cast<int>(array_.shape[1])),
      width_(static_cast<int>(array_.shape[2])),
      channels_(array_.shape.size() == 4 ? static_cast<int>(array_.shape[3]) : 1) {}

absl::Status NpyDataset::Get(int64_t index, Sample* sample) const {
  const int64_t image_bytes = static_cast<int64_t>(height_) * width_ * channels_;
  const auto* pixels = reinterpret_cast<const uint8_t*>(array_.bytes.data());
  sample->view(0).image.Borrow(pixels + index * image_bytes, height_, width_, channels_);
  return absl::OkStatus();
}

std::string NpyDataset::SampleIdentity(int64_t index) const {
  return absl::StrCat(height_, " x ", width_, " x ", channels_);
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeNpyImages(const ConfigNode& data_split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  const std::vector<std::string> below = split.split == "test"
                                             ? std::vector<std::string>{"val_images.npy", "test_images.npy"}
                                             : std::vector<std::string>{"train_images.npy"};
  SSL_ASSIGN_OR_RETURN(const std::string path,
                       FindDatasetPath("DATA_PATHS", split.data_paths, below, split, data_split, context));
  const std::string place = SplitKey(data_split, context.config, "DATA_PATHS");
  absl::StatusOr<NpyArray> array = ReadNpy(context.file_system, path);
  if (!array.ok()) return Annotate(array.status(), place);
  absl::StatusOr<std::unique_ptr<NpyDataset>> dataset = NpyDataset::Create(*std::move(array));
  if (!dataset.ok()) return Annotate(dataset.status(), place);
  return *std::move(dataset);
}

}  // namespace ssl
