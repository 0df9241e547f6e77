// SPDX-License-Identifier: Apache-2.0
//
// Images that are decoded when they are asked for, whatever holds their bytes: a file each (disk_dataset.h), or tar
// shards (tar_dataset.h).
//
// An image that cannot be read does not end a run, unless it is asked to: as in VISSL, a grey one (128 everywhere)
// takes its place under the same label, and Sample::fault says so; who reads knows what else may stand there
// (Replacement of loader/pipeline.h). Too many broken images are an error: broken_images.h.
#ifndef SSL_DATA_DATASETS_ENCODED_IMAGE_DATASET_H_
#define SSL_DATA_DATASETS_ENCODED_IMAGE_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/datasets/counts_broken.h"
#include "ssl/data/datasets/image_cache.h"
#include "ssl/data/image/byte_buffer.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/decode_mode.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/needed_region.h"
#include "ssl/io/file_stamp.h"
#include "ssl/io/file_system.h"
#include "ssl/io/folder_root.h"
#include "ssl/io/read_file.h"

namespace ssl {

struct EncodedImageOptions {
  std::string description;               // for messages: the folder or the list
  std::vector<std::string> class_names;  // by label; empty: labels are numbers only
  std::vector<std::string> passed_over;  // Dataset::PassedOver
  int grey_side = 224;                   // pixels, of the image that replaces a broken one
  std::string refuses_broken;            // the key that makes a broken image an error; empty: it is replaced
  double max_broken_fraction = 0.1;
  std::string max_broken_place;  // the key that says so
  std::string reader;            // "rank 1 of 2", for messages; empty: there is one rank
  std::string split;             // "config.DATA.TRAIN", for messages; empty: they do not say
  bool turns_upright = false;    // by the orientation that EXIF gives
  DecodeMode decode_mode = DecodeMode::kExact;
  Grey16 grey16 = Grey16::kScale;
  DecodeLimits limits;
  FileSystem* file_system = &PosixFileSystem();  // images are read through it; outlives the data set
  std::shared_ptr<const FolderRoot> root;        // instead of it: nothing is opened elsewhere; null: anywhere
};

// As a DATA.<SPLIT> node has them; the rest is for the caller. Errors name PATHS_BELOW.
absl::StatusOr<EncodedImageOptions> ReadEncodedImageOptions(const DataSplitOptions& split, const ConfigNode& data_split,
                                                            const BuildContext& context);

// As the options say where files may be opened.
absl::StatusOr<std::unique_ptr<ReadableFile>> OpenImageFile(const EncodedImageOptions& options,
                                                            const std::string& path);

// What tells whether a file is still the one that it was; in a file system that is not the machine's own, its size.
absl::StatusOr<FileStamp> StampOfImageFile(const EncodedImageOptions& options, const std::string& path);

class EncodedImageDataset : public Dataset, public CountsBroken {
 public:
  // labels: one for each of `size` images, or none.
  EncodedImageDataset(int64_t size, std::vector<int64_t> labels, EncodedImageOptions options);

  int64_t size() const final { return size_; }
  bool has_labels() const final { return !labels_.empty(); }
  std::string description() const final { return options_.description; }
  // The image is 8-bit RGB; of a JPEG only what Sample::needed asks for is sure to be there.
  absl::Status Get(int64_t index, Sample* sample) const final;
  // Images that are broken are not kept: they are read, counted and replaced as without. In a file system that is not
  // the machine's own, a file counts as unchanged while its size is the same.
  void KeepInMemory(const DatasetCache& cache) final;
  void WillRead(int64_t samples) final { broken_.WillRead(samples); }
  absl::StatusOr<bool> ReadEncoded(int64_t index, ByteBuffer* bytes) const final;
  std::vector<std::string> PassedOver() const final { return options_.passed_over; }
  int64_t Label(int64_t index) const final { return labels_.empty() ? -1 : labels_[index]; }
  absl::Span<const std::string> ClassNames() const final { return options_.class_names; }

  BrokenImages* broken() const final { return &broken_; }

 private:
  // Where the image lies: sets `path` to the file, and returns the part of it. Called by many threads at once.
  virtual FilePart Locate(int64_t index, std::string* path) const = 0;

  // What the file of an image was when Locate learnt where in it the image lies; null: it is a file of its own.
  virtual const FileStamp* IndexedFile(int64_t index) const { return nullptr; }
  // FailedPrecondition where it is not any more.
  absl::Status CheckIndexed(int64_t index, const std::string& path) const;

  absl::StatusOr<FileStamp> StampOf(const std::string& path) const;
  // The error, which is one of reading or decoding the image, with its name, as one line of text.
  absl::Status Named(int64_t index, const absl::Status& error) const;

  // An error names the image.
  absl::Status Decode(int64_t index, Sample* sample) const;
  // Errors of these need not. path: a buffer.
  absl::Status ReadBytes(int64_t index, std::string* path, ByteBuffer* bytes) const;
  absl::Status ReadPart(const FilePart& part, const std::string& path, ByteBuffer* bytes) const;
  absl::Status DecodeSource(int64_t index, Sample* sample) const;
  absl::Status DecodeCached(int64_t index, Sample* sample) const;
  // Of the bytes, what `needed` tells, into the sample's view.
  absl::Status DecodeBytes(absl::string_view bytes, NeededRegion needed, Sample* sample) const;
  void PutGrey(Sample* sample) const;

  const int64_t size_;
  const std::vector<int64_t> labels_;
  const EncodedImageOptions options_;
  mutable BrokenImages broken_;
  std::unique_ptr<ImageCache> cache_;  // null: nothing is kept
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_ENCODED_IMAGE_DATASET_H_
