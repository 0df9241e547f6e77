// SPDX-License-Identifier: Apache-2.0
//
// A finite, indexed collection of images. Implementations are immutable: Get is called by many threads at once.
// A host's own data set is one class with the first four functions, registered in Registries::datasets.
#ifndef SSL_DATA_DATASET_H_
#define SSL_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ssl/data/image/byte_buffer.h"

namespace ssl {

class Sample;

// What a data set may keep of its images, so that it need not read them again.
enum class CacheContent {
  kDecoded,  // whole images
  kRaw,      // the bytes of their files
};
struct DatasetCache {
  CacheContent content = CacheContent::kDecoded;
  int64_t max_bytes = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual bool has_labels() const = 0;
  // For messages: where the data comes from, such as a path.
  virtual std::string description() const = 0;

  // Sets the sample's only view to the image at `index` in [0, size()), and its label. A data set that holds
  // decoded pixels lends them (Image::Borrow) for as long as it lives; one that decodes writes into Image::Allocate.
  // sample: has one plain view, and its index is set already. Where sample->needed tells a region of the image, one
  // that decodes may leave the pixels outside it unspecified; the image has its whole size all the same.
  virtual absl::Status Get(int64_t index, Sample* sample) const = 0;

  // Lets the data set keep images in memory: worth it where they are read again and again. Called before the first Get,
  // by one thread. One that decodes nothing has no use for it.
  virtual void KeepInMemory(const DatasetCache& cache) {}

  // Tells that only so many of the samples are ever read, at least 1: which share of them may be broken is counted by
  // these. Called before the first Get, by one thread. One that replaces no images has no use for it.
  virtual void WillRead(int64_t samples) {}

  // Reads the encoded image of a sample, as it lies in its file or shard, for tools that look for what is wrong with
  // it. False, and nothing is read: the data set holds pixels. Errors name the image, and are those of reading, not of
  // the content.
  virtual absl::StatusOr<bool> ReadEncoded(int64_t index, ByteBuffer* bytes) const { return false; }

  // What lies where the samples do and is none, a sentence each, for people: "54 files of kinds that are not
  // read: .heic 54".
  virtual std::vector<std::string> PassedOver() const { return {}; }

  // Where the image of a sample lies, for messages, captions and tools: the path of its file, or that of its shard and
  // its name there, "train-000.tar/0001.jpg"; "" where it has none, such as in arrays.
  virtual std::string ImagePath(int64_t index) const { return ""; }

  // What tells a sample from others wherever the data set lies, labels apart, without reading a file: the path of its
  // file below the data set's folder, or a checksum of pixels that are in memory. Ranks on several hosts compare it
  // (ssl/core/equal_sources.h). "" where there is nothing.
  virtual std::string SampleIdentity(int64_t index) const { return ""; }

  // The class of a sample, told without its image: what DATA_LIMIT_SAMPLING.IS_BALANCED and METERS.model_output_mask
  // need. -1 when there is none.
  virtual int64_t Label(int64_t index) const { return -1; }

  // The same where a sample has several classes: its Sample::label_row. Empty when there is none.
  virtual absl::Span<const int64_t> LabelRow(int64_t index) const { return {}; }

  // The same where several files label a sample: its Sample::label_list. Empty when there is none.
  virtual absl::Span<const int64_t> LabelList(int64_t index) const { return {}; }

  // The names of the classes, by class number, as an image folder has them: what a class of one data set is in another.
  // Empty where classes are numbers only.
  virtual absl::Span<const std::string> ClassNames() const { return {}; }

  // For messages: one sample, by its ImagePath where it has one.
  virtual std::string SampleName(int64_t index) const {
    const std::string path = ImagePath(index);
    return path.empty() ? absl::StrCat("sample ", index, " of ", description()) : path;
  }
};

}  // namespace ssl

#endif  // SSL_DATA_DATASET_H_
