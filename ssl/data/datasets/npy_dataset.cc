// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/npy_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/image/image.h"
#include "ssl/data/sample.h"
#include "ssl/io/npy_header.h"

namespace ssl {
namespace {

constexpr int64_t kMostSide = 65535;

// [height, width, 3 or 4], which would be as many grey images as it has rows, each a few pixels wide.
bool IsOneColourImage(const std::vector<int64_t>& shape) {
  return shape.size() == 3 && (shape[2] == 3 || shape[2] == 4) && shape[1] != shape[2];
}

absl::Status CheckArray(const NpyArray& array) {
  if (array.dtype != NpyDtype::kUint8) {
    return absl::InvalidArgumentError(absl::StrCat(
        NpyValues<uint8_t>(array).status().message(), ", 8-bit images; in numpy, images from 0 to 255 become ",
        "such by images.astype('uint8'), those from 0 to 65535 by (images // 256).astype('uint8'), those from 0 to 1 "
        "by (255 * images).round().astype('uint8')"));
  }
  const std::vector<int64_t>& shape = array.shape;
  const bool has_channels = shape.size() == 4;
  if (IsOneColourImage(shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        array.path, ": has the shape [", absl::StrJoin(shape, ", "), "], as one colour image, expected [N, height, ",
        "width] or [N, height, width, channels]; in numpy, image[None] is an array of one image, and ",
        "images[..., None] one of grey images that are ", shape[2], " pixels wide"));
  }
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

// Where the values of `file` begin. array: as read through another opening, so that the file may have been replaced by
// one of another shape in between, whose values would be read from the wrong place.
absl::StatusOr<int64_t> BeginOfValues(const ReadableFile& file, const NpyArray& array) {
  std::string front(static_cast<size_t>(std::min<int64_t>(file.size(), 2 * kMaxNpyHeaderBytes)), '\0');
  SSL_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(front)));
  absl::string_view rest = front;
  const absl::StatusOr<NpyHeader> header = TakeNpyHeader(&rest);
  const auto begin = static_cast<int64_t>(front.size() - rest.size());
  const bool is_same = header.ok() && header->shape == array.shape && !header->fortran_order &&
                       begin + static_cast<int64_t>(array.bytes.size()) == file.size();
  if (is_same) return begin;
  return absl::DataLossError(absl::StrCat(array.path, ": was replaced by another file while it was opened"));
}

// Of the values, which begin at `begin`: of all in a small file, of pieces that are spread over a large one.
absl::StatusOr<uint32_t> ChecksumOfPieces(const ReadableFile& file, int64_t begin) {
  constexpr int64_t kMostPieces = 64;
  constexpr int64_t kPieceBytes = 4096;
  const int64_t bytes = file.size() - begin;
  const int64_t pieces = std::min(kMostPieces, (bytes + kPieceBytes - 1) / kPieceBytes);
  uint32_t checksum = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t offset = bytes * i / pieces;
    std::string piece(static_cast<size_t>(std::min(kPieceBytes, bytes * (i + 1) / pieces - offset)), '\0');
    SSL_RETURN_IF_ERROR(file.ReadAt(begin + offset, absl::MakeSpan(piece)));
    checksum = ExtendCrc32c(checksum, piece);
  }
  return checksum;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NpyDataset>> NpyDataset::Open(FileSystem& file_system, const std::string& path) {
  const absl::StatusOr<NpyArray> array = ReadNpy(file_system, path);
  if (absl::IsUnimplemented(array.status())) {
    return absl::UnimplementedError(absl::StrCat(array.status().message(), "; images are 8-bit (|u1), in C order"));
  }
  SSL_RETURN_IF_ERROR(array.status());
  SSL_RETURN_IF_ERROR(CheckArray(*array));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, file_system.OpenRead(path));
  SSL_ASSIGN_OR_RETURN(const int64_t begin, BeginOfValues(*file, *array));
  SSL_ASSIGN_OR_RETURN(const uint32_t checksum, ChecksumOfPieces(*file, begin));
  return absl::WrapUnique(new NpyDataset(*array, std::move(file), begin, checksum));
}

NpyDataset::NpyDataset(const NpyArray& array, std::unique_ptr<ReadableFile> file, int64_t begin, uint32_t checksum)
    : path_(array.path),
      file_(std::move(file)),
      begin_(begin),
      checksum_(checksum),
      count_(array.shape[0]),
      height_(static_cast<int>(array.shape[1])),
      width_(static_cast<int>(array.shape[2])),
      channels_(array.shape.size() == 4 ? static_cast<int>(array.shape[3]) : 1) {}

absl::Status NpyDataset::Get(int64_t index, Sample* sample) const {
  Image* image = &sample->view(0).image;
  auto* pixels = reinterpret_cast<char*>(image->Allocate(height_, width_, channels_));
  const int64_t bytes = image->size_bytes();
  return file_->ReadAt(begin_ + index * bytes, absl::MakeSpan(pixels, static_cast<size_t>(bytes)));
}

std::string NpyDataset::SampleIdentity(int64_t index) const {
  const absl::string_view path = path_;
  return absl::StrCat(path.substr(path.rfind('/') + 1), ": image ", index, " of ", count_, ", ", height_, " x ", width_,
                      " x ", channels_, ", pixels ", absl::Hex(checksum_, absl::kZeroPad8));
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeNpyImages(const ConfigNode& data_split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  const std::vector<std::string> below = split.split == "test"
                                             ? std::vector<std::string>{"val_images.npy", "test_images.npy"}
                                             : std::vector<std::string>{"train_images.npy"};
  SSL_ASSIGN_OR_RETURN(const std::string path,
                       FindDatasetPath("DATA_PATHS", split.data_paths, below, split, data_split, context));
  const std::string place = SplitKey(data_split, context.config, "DATA_PATHS");
  if (context.file_system.IsDirectory(path) || absl::EndsWith(path, ".tar")) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", path, " is no .npy file, expected an array of images",
                                                   AdviseSource(path, data_split, context)));
  }
  absl::StatusOr<std::unique_ptr<NpyDataset>> dataset = NpyDataset::Open(context.file_system, path);
  if (!dataset.ok()) return Annotate(dataset.status(), place);
  return *std::move(dataset);
}

}  // namespace ssl
