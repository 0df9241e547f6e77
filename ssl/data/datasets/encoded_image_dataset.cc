// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/encoded_image_dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/utf8.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/exif_orientation.h"
#include "ssl/data/image/needed_region.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

constexpr uint8_t kGrey = 128;

// What is needed of an image that is turned after it was decoded, when this is needed of the upright one.
NeededPixels BeforeTurning(int orientation, NeededRegion needed, int height, int width) {
  const bool exchanges_sides = ExchangesSides(orientation);
  NeededPixels result = WholeImage(height, width);
  result.reduction = needed(exchanges_sides ? width : height, exchanges_sides ? height : width).reduction;
  while (height % result.reduction != 0 || width % result.reduction != 0) result.reduction /= 2;
  return result;
}

NeededRegion NeededOf(const Sample& sample) {
  return sample.needed != nullptr ? *sample.needed : NeededRegion(WholeImage);
}

absl::string_view TextOf(absl::Span<const uint8_t> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// With BROKEN_IMAGES error, which `place` names. Whatever is wrong with the file, the data is damaged.
absl::Status RefuseBroken(const absl::Status& reason, const std::string& place) {
  if (IsErrorOfProcess(reason)) return reason;
  return absl::DataLossError(absl::StrCat(place, ": ", reason.message()));
}

}  // namespace

absl::StatusOr<EncodedImageOptions> ReadEncodedImageOptions(const DataSplitOptions& split, const ConfigNode& data_split,
                                                            const BuildContext& context) {
  EncodedImageOptions options;
  options.file_system = &context.file_system;
  options.grey_side = static_cast<int>(split.default_gray_img_size);
  if (split.broken_images == "error") {
    options.refuses_broken = absl::StrCat(SplitKey(data_split, context.config, "BROKEN_IMAGES"), " is error");
  }
  options.max_broken_fraction = split.max_broken_fraction;
  options.split = SplitPath(data_split, context.config);
  options.max_broken_place = SplitKey(data_split, context.config, "MAX_BROKEN_FRACTION");
  const int64_t ranks = context.communicator.size();
  if (ranks > 1) options.reader = absl::StrCat("rank ", context.communicator.rank(), " of ", ranks);
  options.turns_upright = split.exif_orientation;
  options.grey16 = Grey16Of(split);
  options.decode_mode = split.decode == "fast" ? DecodeMode::kFast : DecodeMode::kExact;
  if (!split.paths_below.empty()) {
    absl::StatusOr<std::unique_ptr<FolderRoot>> root = FolderRoot::Open(split.paths_below);
    if (!root.ok()) return Annotate(root.status(), SplitKey(data_split, context.config, "PATHS_BELOW"));
    options.root = *std::move(root);
  }
  return options;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> OpenImageFile(const EncodedImageOptions& options,
                                                            const std::string& path) {
  return options.root == nullptr ? options.file_system->OpenRead(path) : options.root->OpenRead(path);
}

absl::StatusOr<FileStamp> StampOfImageFile(const EncodedImageOptions& options, const std::string& path) {
  if (options.root != nullptr || options.file_system == &PosixFileSystem()) return ReadFileStamp(path);
  FileStamp stamp;
  SSL_ASSIGN_OR_RETURN(stamp.size, options.file_system->Size(path));
  return stamp;
}

EncodedImageDataset::EncodedImageDataset(int64_t size, std::vector<int64_t> labels, EncodedImageOptions options)
    : size_(size),
      labels_(std::move(labels)),
      options_(std::move(options)),
      broken_(size_, options_.max_broken_fraction, options_.max_broken_place, options_.reader, options_.split) {}

absl::StatusOr<FileStamp> EncodedImageDataset::StampOf(const std::string& path) const {
  return StampOfImageFile(options_, path);
}

absl::Status EncodedImageDataset::CheckIndexed(int64_t index, const std::string& path) const {
  const FileStamp* indexed = IndexedFile(index);
  if (indexed == nullptr) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const FileStamp stamp, StampOf(path));
  // Not by device and inode: an automounter, or a file system of a user's process, may give the same file others.
  if (stamp.size == indexed->size && stamp.modified_ns == indexed->modified_ns) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "its file has changed since it was indexed; start anew to read what it holds now");
}

absl::Status EncodedImageDataset::ReadBytes(int64_t index, std::string* path, ByteBuffer* bytes) const {
  absl::Status status = ReadPart(Locate(index, path), *path, bytes);
  // Afterwards: what was read before a change is what was indexed.
  const absl::Status indexed = CheckIndexed(index, *path);
  if (!indexed.ok()) status = indexed;
  return status.ok() ? status : AsReadError(status);
}

absl::Status EncodedImageDataset::ReadPart(const FilePart& part, const std::string& path, ByteBuffer* bytes) const {
  const auto memory_for = [&](int64_t size) -> absl::StatusOr<char*> {
    SSL_RETURN_IF_ERROR(CheckFileSize(size, options_.limits));
    return reinterpret_cast<char*>(bytes->Allocate(static_cast<size_t>(size)));
  };
  if (options_.root == nullptr) return ReadFilePart(*options_.file_system, path, part, memory_for);
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, options_.root->OpenRead(path));
  return ReadFilePart(*file, part, memory_for);
}

void EncodedImageDataset::KeepInMemory(const DatasetCache& cache) {
  cache_ = std::make_unique<ImageCache>(cache, size_, options_.description);
}

absl::StatusOr<bool> EncodedImageDataset::ReadEncoded(int64_t index, ByteBuffer* bytes) const {
  std::string path;
  const absl::Status status = ReadBytes(index, &path, bytes);
  if (!status.ok()) return Named(index, status);
  return true;
}

absl::Status EncodedImageDataset::DecodeBytes(absl::string_view bytes, NeededRegion needed, Sample* sample) const {
  Image* image = &sample->view(0).image;
  const int orientation = options_.turns_upright ? ExifOrientation(bytes) : 1;
  const auto decode = [&](NeededRegion part, Image* decoded) {
    return DecodeImageRegion(bytes, options_.limits, options_.decode_mode, part, decoded, options_.grey16);
  };
  if (orientation == 1) return decode(needed, image);
  const auto turned = [&](int height, int width) { return BeforeTurning(orientation, needed, height, width); };
  Image* lying = &sample->image_buffer;
  SSL_RETURN_IF_ERROR(decode(turned, lying));
  TurnUpright(orientation, *lying, image);
  return absl::OkStatus();
}

absl::Status EncodedImageDataset::DecodeSource(int64_t index, Sample* sample) const {
  SSL_RETURN_IF_ERROR(ReadBytes(index, &sample->path_buffer, &sample->file_buffer));
  return DecodeBytes(sample->file_buffer.view(), NeededOf(*sample), sample);
}

absl::Status EncodedImageDataset::DecodeCached(int64_t index, Sample* sample) const {
  // Before the file is read: one that changes meanwhile does not pass for what was read.
  Locate(index, &sample->path_buffer);
  const absl::StatusOr<FileStamp> source = StampOf(sample->path_buffer);
  // Why there is none, opening the file tells.
  if (!source.ok()) return DecodeSource(index, sample);
  const CachedImage* kept = cache_->Find(index, *source);
  if (cache_->content() == CacheContent::kRaw && kept != nullptr) {
    return DecodeBytes(TextOf(kept->bytes()), NeededOf(*sample), sample);
  }
  Image* image = &sample->view(0).image;
  if (kept != nullptr) {
    image->Borrow(kept->memory.get(), kept->height, kept->width, 3);
    return absl::OkStatus();
  }
  if (cache_->full()) return DecodeSource(index, sample);
  if (cache_->content() == CacheContent::kRaw) {
    SSL_RETURN_IF_ERROR(DecodeSource(index, sample));
    const ByteBuffer& bytes = sample->file_buffer;
    cache_->Add(index, *source, absl::MakeConstSpan(bytes.data(), bytes.size()), 0, 0);
    return absl::OkStatus();
  }
  SSL_RETURN_IF_ERROR(ReadBytes(index, &sample->path_buffer, &sample->file_buffer));
  SSL_RETURN_IF_ERROR(DecodeBytes(sample->file_buffer.view(), WholeImage, sample));
  cache_->Add(index, *source, absl::MakeConstSpan(image->pixels(), static_cast<size_t>(image->size_bytes())),
              image->height(), image->width());
  return absl::OkStatus();
}

absl::Status EncodedImageDataset::Named(int64_t index, const absl::Status& error) const {
  // Errors of the file system name their path already. A path may hold any bytes.
  const std::string name = SampleName(index);
  const absl::Status named = absl::StrContains(error.message(), name) ? error : Annotate(error, name);
  absl::Status printable(named.code(), EscapeForMessage(named.message()));
  named.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { printable.SetPayload(type, payload); });
  return printable;
}

absl::Status EncodedImageDataset::Decode(int64_t index, Sample* sample) const {
  const absl::Status status = cache_ == nullptr ? DecodeSource(index, sample) : DecodeCached(index, sample);
  return status.ok() ? status : Named(index, status);
}

absl::Status EncodedImageDataset::Get(int64_t index, Sample* sample) const {
  sample->label = Label(index);
  const absl::Status decoded = Decode(index, sample);
  if (decoded.ok()) {
    broken_.AddGood(index);
    return absl::OkStatus();
  }
  if (!options_.refuses_broken.empty()) return RefuseBroken(decoded, options_.refuses_broken);
  // Where nothing was read, the code says so, whatever the buffer holds.
  const ReadFault fault = ReadFaultOf(sample->file_buffer.view(), decoded);
  SSL_RETURN_IF_ERROR(broken_.AddBroken(index, fault, decoded));
  sample->fault = fault;
  PutGrey(sample);
  return absl::OkStatus();
}

void EncodedImageDataset::PutGrey(Sample* sample) const {
  Image* image = &sample->view(0).image;
  uint8_t* pixels = image->Allocate(options_.grey_side, options_.grey_side, 3);
  std::fill_n(pixels, image->size_bytes(), kGrey);
}

}  // namespace ssl
