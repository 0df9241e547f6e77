// SPDX-License-Identifier: Apache-2.0
//
// Images of a data set in memory, decoded or as the bytes of their files, shared by all threads. What comes first is
// kept until the end, up to a bound: an epoch visits every image once, so that making room for a new one would throw
// away what the next epoch asks for. Takes 8 bytes for each image of the data set besides.
//
// An image counts as kept only while its source is unchanged (file_stamp.h); one that has changed is read anew each
// time. Thread-safe.
#ifndef SSL_DATA_DATASETS_IMAGE_CACHE_H_
#define SSL_DATA_DATASETS_IMAGE_CACHE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ssl/data/dataset.h"
#include "ssl/io/file_stamp.h"

namespace ssl {

struct CachedImage {
  FileStamp source;
  int height = 0;  // of decoded pixels, RGB
  int width = 0;
  std::unique_ptr<uint8_t[]> memory;
  int64_t size = 0;

  absl::Span<const uint8_t> bytes() const { return absl::MakeConstSpan(memory.get(), static_cast<size_t>(size)); }
};

class ImageCache {
 public:
  // dataset_size: images. description: of the data set, for messages.
  ImageCache(const DatasetCache& options, int64_t dataset_size, std::string description);
  // Logs Summary.
  ~ImageCache();
  ImageCache(const ImageCache&) = delete;
  ImageCache& operator=(const ImageCache&) = delete;

  CacheContent content() const { return options_.content; }

  // Image `index`, for as long as the cache lives; null where it is not kept, or its source was another one.
  const CachedImage* Find(int64_t index, const FileStamp& source);

  // Whether there is no room any more: nothing needs to be prepared for Add. One large image does not say so, for which
  // there may be no room while there is for others: kMostMisfits in a row do.
  static constexpr int64_t kMostMisfits = 16;
  bool full() const { return full_.load(std::memory_order_relaxed); }

  // Keeps a copy where there is room for it and nothing is kept for `index` yet. height, width: of decoded pixels.
  void Add(int64_t index, const FileStamp& source, absl::Span<const uint8_t> bytes, int height, int width);

  // "555 images (decoded, 312.2 MB of at most 1073.7 MB) served 4995 of 5550 reads; 3 reads found a changed file"
  std::string Summary() const;

 private:
  void NoteMisfit();

  const DatasetCache options_;
  const std::string description_;
  std::vector<std::atomic<const CachedImage*>> images_;  // owned
  std::atomic<int64_t> used_bytes_{0};
  std::atomic<int64_t> kept_{0};
  std::atomic<int64_t> misfits_in_a_row_{0};
  std::atomic<bool> full_{false};
  std::atomic<int64_t> reads_{0};
  std::atomic<int64_t> hits_{0};
  std::atomic<int64_t> changed_{0};
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_IMAGE_CACHE_H_
