// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/image_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ssl/base/log.h"

namespace ssl {
namespace {

constexpr double kBytesPerMegabyte = 1e6;

}  // namespace

ImageCache::ImageCache(const DatasetCache& options, int64_t dataset_size, std::string description)
    : options_(options), description_(std::move(description)), images_(static_cast<size_t>(dataset_size)) {}

ImageCache::~ImageCache() {
  if (reads_.load() > 0) SSL_LOG(INFO) << "cache of " << description_ << ": " << Summary();
  for (const std::atomic<const CachedImage*>& image : images_) delete image.load();
}

const CachedImage* ImageCache::Find(int64_t index, const FileStamp& source) {
  reads_.fetch_add(1, std::memory_order_relaxed);
  const CachedImage* image = images_[index].load(std::memory_order_acquire);
  if (image == nullptr) return nullptr;
  const bool is_same = image->source == source;
  (is_same ? hits_ : changed_).fetch_add(1, std::memory_order_relaxed);
  return is_same ? image : nullptr;
}

void ImageCache::Add(int64_t index, const FileStamp& source, absl::Span<const uint8_t> bytes, int height, int width) {
  if (full() || images_[index].load(std::memory_order_relaxed) != nullptr) return;
  const auto size = static_cast<int64_t>(bytes.size());
  if (used_bytes_.fetch_add(size, std::memory_order_relaxed) + size > options_.max_bytes) {
    used_bytes_.fetch_sub(size, std::memory_order_relaxed);
    NoteMisfit();
    return;
  }
  misfits_in_a_row_.store(0, std::memory_order_relaxed);
  auto image = std::make_unique<CachedImage>();
  image->source = source;
  image->height = height;
  image->width = width;
  image->size = size;
  image->memory.reset(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), image->memory.get());
  const CachedImage* none = nullptr;
  // Two threads may have read the same image.
  if (images_[index].compare_exchange_strong(none, image.get(), std::memory_order_release)) {
    image.release();
    kept_.fetch_add(1, std::memory_order_relaxed);
  } else {
    used_bytes_.fetch_sub(size, std::memory_order_relaxed);
  }
}

void ImageCache::NoteMisfit() {
  if (misfits_in_a_row_.fetch_add(1, std::memory_order_relaxed) + 1 < kMostMisfits || full_.exchange(true)) return;
  SSL_LOG(INFO) << "cache of " << description_ << " is full: the images that it does not hold are read each time";
}

std::string ImageCache::Summary() const {
  const int64_t changed = changed_.load();
  return absl::StrFormat("%d images (%s, %.1f MB of at most %.1f MB) served %d of %d reads%s", kept_.load(),
                         content() == CacheContent::kDecoded ? "decoded" : "raw",
                         static_cast<double>(used_bytes_.load()) / kBytesPerMegabyte,
                         static_cast<double>(options_.max_bytes) / kBytesPerMegabyte, hits_.load(), reads_.load(),
                         changed > 0 ? absl::StrCat("; ", changed, " reads found a changed file") : "");
}

}  // namespace ssl
