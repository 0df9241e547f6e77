// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/encoded_image_dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/exif_orientation.h"
#include "ssl/data/sample.h"

namespace ssl {
namespace {

constexpr uint8_t kGrey = 128;
// How many neighbours of a broken image are tried before a grey one is taken.
constexpr int64_t kMaxNeighbours = 16;

absl::Status DecodeBytes(absl::string_view bytes, const EncodedImageOptions& options, Sample* sample) {
  Image* image = &sample->view(0).image;
  const int orientation = options.turns_upright ? ExifOrientation(bytes) : 1;
  // The region is one of the image as it will stand.
  if (sample->needed != nullptr && orientation == 1) {
    return DecodeImageRegion(bytes, options.limits, *sample->needed, image);
  }
  SSL_RETURN_IF_ERROR(DecodeImage(bytes, options.limits, image));
  TurnUpright(orientation, image);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EncodedImageOptions> ReadEncodedImageOptions(const DataSplitOptions& split, const ConfigNode& data_split,
                                                            const BuildContext& context) {
  EncodedImageOptions options;
  options.file_system = &context.file_system;
  options.grey_side = static_cast<int>(split.default_gray_img_size);
  options.use_neighbour = split.enable_queue_dataset;
  if (split.broken_images == "error") {
    options.refuses_broken = absl::StrCat(SplitKey(data_split, context.config, "BROKEN_IMAGES"), " is error");
  }
  options.max_broken_fraction = split.max_broken_fraction;
  options.max_broken_place = SplitKey(data_split, context.config, "MAX_BROKEN_FRACTION");
  options.turns_upright = split.exif_orientation;
  if (!split.paths_below.empty()) {
    absl::StatusOr<std::unique_ptr<FolderRoot>> root = FolderRoot::Open(split.paths_below);
    if (!root.ok()) return Annotate(root.status(), SplitKey(data_split, context.config, "PATHS_BELOW"));
    options.root = *std::move(root);
  }
  return options;
}

absl::StatusOr<EncodedBytes> ReadEncodedBytes(const ReadableFile& file, int64_t offset, int64_t size,
                                              const DecodeLimits& limits) {
  SSL_RETURN_IF_ERROR(CheckFileSize(size, limits));
  EncodedBytes bytes;
  bytes.size = static_cast<size_t>(size);
  bytes.memory.reset(new char[bytes.size]);
  SSL_RETURN_IF_ERROR(file.ReadAt(offset, absl::MakeSpan(bytes.memory.get(), bytes.size)));
  return bytes;
}

EncodedImageDataset::EncodedImageDataset(int64_t size, std::vector<int64_t> labels, EncodedImageOptions options)
    : size_(size),
      labels_(std::move(labels)),
      options_(std::move(options)),
      broken_(size_, options_.max_broken_fraction, options_.max_broken_place) {}

absl::StatusOr<std::unique_ptr<ReadableFile>> EncodedImageDataset::OpenFile(const std::string& path) const {
  return options_.root == nullptr ? options_.file_system->OpenRead(path) : options_.root->OpenRead(path);
}

absl::Status EncodedImageDataset::Decode(int64_t index, Sample* sample) const {
  const absl::StatusOr<EncodedBytes> bytes = ReadBytes(index);
  absl::Status status = bytes.status();
  if (status.ok()) status = DecodeBytes(bytes->view(), options_, sample);
  if (status.ok()) return status;
  // Errors of the file system name their path already.
  const std::string name = SampleName(index);
  return absl::StrContains(status.message(), name) ? status : Annotate(status, name);
}

absl::Status EncodedImageDataset::Get(int64_t index, Sample* sample) const {
  sample->label = Label(index);
  const absl::Status decoded = Decode(index, sample);
  if (decoded.ok()) {
    broken_.AddGood(index);
    return absl::OkStatus();
  }
  if (!options_.refuses_broken.empty()) return Annotate(decoded, options_.refuses_broken);
  SSL_RETURN_IF_ERROR(broken_.AddBroken(index, decoded));
  sample->fault = ReadFaultOf(decoded);
  Replace(index, sample);
  return absl::OkStatus();
}

void EncodedImageDataset::Replace(int64_t index, Sample* sample) const {
  const int64_t neighbours = options_.use_neighbour ? std::min(kMaxNeighbours, size_ - 1) : 0;
  for (int64_t i = 1; i <= neighbours; ++i) {
    if (Decode((index + i) % size_, sample).ok()) return;
  }
  Image* image = &sample->view(0).image;
  uint8_t* pixels = image->Allocate(options_.grey_side, options_.grey_side, 3);
  std::fill_n(pixels, image->size_bytes(), kGrey);
}

}  // namespace ssl
