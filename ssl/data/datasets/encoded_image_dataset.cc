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
#include "ssl/data/image/needed_region.h"
#include "ssl/data/sample.h"

namespace ssl {
namespace {

constexpr uint8_t kGrey = 128;
// How many neighbours of a broken image are tried before a grey one is taken.
constexpr int64_t kMaxNeighbours = 16;

// What is needed of an image that is turned after it was decoded, when this is needed of the upright one.
NeededPixels BeforeTurning(int orientation, NeededRegion needed, int height, int width) {
  const bool exchanges_sides = ExchangesSides(orientation);
  NeededPixels result = WholeImage(height, width);
  result.reduction = needed(exchanges_sides ? width : height, exchanges_sides ? height : width).reduction;
  while (height % result.reduction != 0 || width % result.reduction != 0) result.reduction /= 2;
  return result;
}

absl::Status DecodeBytes(absl::string_view bytes, const EncodedImageOptions& options, NeededRegion needed,
                         Image* image) {
  const int orientation = options.turns_upright ? ExifOrientation(bytes) : 1;
  if (orientation == 1) return DecodeImageRegion(bytes, options.limits, options.decode_mode, needed, image);
  const auto turned = [&](int height, int width) { return BeforeTurning(orientation, needed, height, width); };
  SSL_RETURN_IF_ERROR(DecodeImageRegion(bytes, options.limits, options.decode_mode, turned, image));
  TurnUpright(orientation, image);
  return absl::OkStatus();
}

NeededRegion NeededOf(const Sample& sample) {
  return sample.needed != nullptr ? *sample.needed : NeededRegion(WholeImage);
}

absl::string_view TextOf(absl::Span<const uint8_t> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

absl::Span<const uint8_t> BytesOf(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
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
  options.decode_mode = split.decode == "fast" ? DecodeMode::kFast : DecodeMode::kExact;
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

void EncodedImageDataset::KeepInMemory(const DatasetCache& cache) {
  cache_ = std::make_unique<ImageCache>(cache, size_, options_.description);
}

absl::Status EncodedImageDataset::DecodeSource(int64_t index, Sample* sample) const {
  SSL_ASSIGN_OR_RETURN(const EncodedBytes bytes, ReadBytes(index));
  return DecodeBytes(bytes.view(), options_, NeededOf(*sample), &sample->view(0).image);
}

absl::Status EncodedImageDataset::DecodeCached(int64_t index, Sample* sample) const {
  Image* image = &sample->view(0).image;
  // Before the file is read: one that changes meanwhile does not pass for what was read.
  GetSourcePath(index, &sample->path_buffer);
  SSL_ASSIGN_OR_RETURN(const FileStamp source, ReadFileStamp(sample->path_buffer));
  const CachedImage* kept = cache_->Find(index, source);
  if (cache_->content() == CacheContent::kRaw && kept != nullptr) {
    return DecodeBytes(TextOf(kept->bytes()), options_, NeededOf(*sample), image);
  }
  if (kept != nullptr) {
    image->Borrow(kept->memory.get(), kept->height, kept->width, 3);
    return absl::OkStatus();
  }
  if (cache_->full()) return DecodeSource(index, sample);
  SSL_ASSIGN_OR_RETURN(const EncodedBytes bytes, ReadBytes(index));
  if (cache_->content() == CacheContent::kRaw) {
    SSL_RETURN_IF_ERROR(DecodeBytes(bytes.view(), options_, NeededOf(*sample), image));
    cache_->Add(index, source, BytesOf(bytes.view()), 0, 0);
    return absl::OkStatus();
  }
  SSL_RETURN_IF_ERROR(DecodeBytes(bytes.view(), options_, WholeImage, image));
  cache_->Add(index, source, absl::MakeConstSpan(image->pixels(), static_cast<size_t>(image->size_bytes())),
              image->height(), image->width());
  return absl::OkStatus();
}

absl::Status EncodedImageDataset::Decode(int64_t index, Sample* sample) const {
  const absl::Status status = cache_ == nullptr ? DecodeSource(index, sample) : DecodeCached(index, sample);
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
