// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/disk_dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/datasets/image_folder.h"
#include "ssl/data/datasets/string_list.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/sample.h"

namespace ssl {
namespace {

constexpr uint8_t kGrey = 128;
// How many neighbours of a broken image are tried before a grey one is taken.
constexpr int64_t kMaxNeighbours = 16;

absl::Status DecodeFile(FileSystem& file_system, const std::string& path, const DecodeLimits& limits, Sample* sample) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, file_system.OpenRead(path));
  absl::Status status = CheckFileSize(file->size(), limits);
  if (status.ok()) {
    const auto size = static_cast<size_t>(file->size());
    const std::unique_ptr<char[]> bytes(new char[size]);  // unlike a string, not filled with zeros first
    SSL_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(bytes.get(), size)));
    const absl::string_view encoded(bytes.get(), size);
    Image* image = &sample->view(0).image;
    status = sample->needed == nullptr ? DecodeImage(encoded, limits, image)
                                       : DecodeImageRegion(encoded, limits, *sample->needed, image);
  }
  return status.ok() ? status : Annotate(status, path);
}

DiskDatasetOptions OptionsOf(const DataSplitOptions& split, const ConfigNode& data_split, const BuildContext& context,
                             std::string description) {
  DiskDatasetOptions options;
  options.file_system = &context.file_system;
  options.description = std::move(description);
  options.grey_side = static_cast<int>(split.default_gray_img_size);
  options.use_neighbour = split.enable_queue_dataset;
  if (split.broken_images == "error") {
    options.refuses_broken = absl::StrCat(SplitKey(data_split, context.config, "BROKEN_IMAGES"), " is error");
  }
  options.max_broken_fraction = split.max_broken_fraction;
  options.max_broken_place = SplitKey(data_split, context.config, "MAX_BROKEN_FRACTION");
  return options;
}

bool IsTest(const DataSplitOptions& split) { return split.split == "test"; }

}  // namespace

DiskDataset::DiskDataset(PathList paths, std::vector<int64_t> labels, DiskDatasetOptions options)
    : paths_(std::move(paths)),
      labels_(std::move(labels)),
      options_(std::move(options)),
      broken_(paths_.size(), options_.max_broken_fraction, options_.max_broken_place) {}

absl::Status DiskDataset::Decode(int64_t index, Sample* sample) const {
  return DecodeFile(*options_.file_system, paths_[index], options_.limits, sample);
}

absl::Status DiskDataset::Get(int64_t index, Sample* sample) const {
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

void DiskDataset::Replace(int64_t index, Sample* sample) const {
  const int64_t neighbours = options_.use_neighbour ? std::min(kMaxNeighbours, size() - 1) : 0;
  for (int64_t i = 1; i <= neighbours; ++i) {
    if (Decode((index + i) % size(), sample).ok()) return;
  }
  Image* image = &sample->view(0).image;
  uint8_t* pixels = image->Allocate(options_.grey_side, options_.grey_side, 3);
  std::fill_n(pixels, image->size_bytes(), kGrey);
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeDiskFolder(const ConfigNode& data_split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  const std::vector<std::string> below =
      IsTest(split) ? std::vector<std::string>{"val", "test"} : std::vector<std::string>{"train"};
  SSL_ASSIGN_OR_RETURN(const std::string folder,
                       FindDatasetPath("DATA_PATHS", split.data_paths, below, split, data_split, context));
  if (context.file_system.Exists(folder) && !context.file_system.IsDirectory(folder)) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, "DATA_PATHS"), ": ", folder,
                                                   " is a file, expected a folder that holds one for each class; "
                                                   "DATA_SOURCES [disk_filelist] reads a list of paths"));
  }
  absl::StatusOr<ImageFolder> scanned = ScanImageFolder(folder, {&context.file_system, context.stop});
  if (!scanned.ok()) return Annotate(scanned.status(), SplitKey(data_split, context.config, "DATA_PATHS"));
  for (const std::string& what : scanned->passed_over) SSL_LOG(WARNING) << folder << ": passed over: " << what;
  DiskDatasetOptions options = OptionsOf(split, data_split, context, folder);
  options.class_names = std::move(scanned->classes);
  return std::make_unique<DiskDataset>(std::move(scanned->paths), std::move(scanned->labels), std::move(options));
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeDiskFilelist(const ConfigNode& data_split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  const std::vector<std::string> below = IsTest(split) ? std::vector<std::string>{"val_images.npy", "test_images.npy"}
                                                       : std::vector<std::string>{"train_images.npy"};
  SSL_ASSIGN_OR_RETURN(const std::string list,
                       FindDatasetPath("DATA_PATHS", split.data_paths, below, split, data_split, context));
  absl::StatusOr<std::vector<std::string>> lines = ReadStringList(context.file_system, list);
  if (!lines.ok()) return Annotate(lines.status(), SplitKey(data_split, context.config, "DATA_PATHS"));
  if (lines->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(SplitKey(data_split, context.config, "DATA_PATHS"), ": ", list, " lists no images"));
  }
  PathList paths;
  for (const std::string& line : *lines) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, split.remove_img_path_prefix)) {
      paths.Add(absl::StrCat(split.new_img_path_prefix, rest));
    } else {
      paths.Add(line);
    }
  }
  return std::make_unique<DiskDataset>(std::move(paths), std::vector<int64_t>(),
                                       OptionsOf(split, data_split, context, list));
}

}  // namespace ssl
