// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/image_cache.h"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/captured_log.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

FileStamp Stamp(int64_t modified_ns) { return {1, 2, 100, modified_ns}; }

TEST(ImageCache, KeepsWhatComesFirstUpToItsBound) {
  ImageCache cache({CacheContent::kRaw, 100}, 40, "images");
  const std::vector<uint8_t> half(50, 7), more(51, 8);
  EXPECT_EQ(cache.Find(0, Stamp(1)), nullptr);
  cache.Add(0, Stamp(1), half, 0, 0);
  EXPECT_FALSE(cache.full());
  for (int64_t i = 0; i < ImageCache::kMostMisfits; ++i) {
    EXPECT_FALSE(cache.full());
    cache.Add(10 + i, Stamp(1), more, 0, 0);
  }
  EXPECT_TRUE(cache.full());
  cache.Add(2, Stamp(1), half, 0, 0);
  const CachedImage* image = cache.Find(0, Stamp(1));
  ASSERT_NE(image, nullptr);
  EXPECT_TRUE(std::equal(half.begin(), half.end(), image->bytes().begin(), image->bytes().end()));
  EXPECT_EQ(cache.Find(1, Stamp(1)), nullptr);
  EXPECT_EQ(cache.Find(2, Stamp(1)), nullptr);
  EXPECT_EQ(cache.Summary(), "1 images (raw, 0.0 MB of at most 0.0 MB) served 1 of 4 reads");
}

TEST(ImageCache, OneHugeImage_DoesNotKeepOthersOut) {
  ImageCache cache({CacheContent::kRaw, 100}, 4, "images");
  cache.Add(0, Stamp(1), std::vector<uint8_t>(101, 1), 0, 0);
  EXPECT_FALSE(cache.full());
  cache.Add(1, Stamp(1), std::vector<uint8_t>(60, 2), 0, 0);
  cache.Add(2, Stamp(1), std::vector<uint8_t>(60, 3), 0, 0);
  cache.Add(3, Stamp(1), std::vector<uint8_t>(40, 4), 0, 0);
  EXPECT_EQ(cache.Find(0, Stamp(1)), nullptr);
  EXPECT_NE(cache.Find(1, Stamp(1)), nullptr);
  EXPECT_EQ(cache.Find(2, Stamp(1)), nullptr);
  EXPECT_NE(cache.Find(3, Stamp(1)), nullptr);
}

TEST(ImageCache, DoesNotServeWhatHasChanged) {
  ImageCache cache({CacheContent::kDecoded, 100}, 1, "images");
  cache.Add(0, Stamp(1), std::vector<uint8_t>(12, 7), 2, 2);
  EXPECT_EQ(cache.Find(0, Stamp(2)), nullptr);
  EXPECT_NE(cache.Find(0, Stamp(1)), nullptr);
  EXPECT_THAT(cache.Summary(), HasSubstr("served 1 of 2 reads; 1 reads found a changed file"));
}

TEST(ImageCache, OfManyThreads_KeepsEachImageOnceAndCountsItsBytesOnce) {
  constexpr int64_t kImages = 50, kBytes = 100000;
  ImageCache cache({CacheContent::kRaw, 4 * kImages * kBytes}, kImages, "images");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache] {
      for (int64_t i = 0; i < kImages; ++i) {
        const CachedImage* image = cache.Find(i, Stamp(i));
        if (image == nullptr) cache.Add(i, Stamp(i), std::vector<uint8_t>(kBytes, static_cast<uint8_t>(i)), 0, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int64_t i = 0; i < kImages; ++i) {
    const CachedImage* image = cache.Find(i, Stamp(i));
    ASSERT_NE(image, nullptr);
    EXPECT_EQ(image->bytes().size(), static_cast<size_t>(kBytes));
    EXPECT_EQ(image->bytes()[kBytes - 1], static_cast<uint8_t>(i));
  }
  EXPECT_THAT(cache.Summary(), HasSubstr("50 images (raw, 5.0 MB of at most 20.0 MB)"));
}

TEST(ImageCache, TellsOnceWhenItIsFullAndAtItsEndWhatItDid) {
  CapturedLog log;
  {
    ImageCache cache({CacheContent::kRaw, 10}, 30, "folder/of/images");
    for (int64_t i = 0; i < 30; ++i) {
      EXPECT_EQ(cache.Find(i, Stamp(1)), nullptr);
      cache.Add(i, Stamp(1), std::vector<uint8_t>(11, 7), 0, 0);
    }
  }
  ASSERT_EQ(log.lines.size(), 2u);
  EXPECT_THAT(log.lines[0], HasSubstr("cache of folder/of/images is full"));
  EXPECT_THAT(log.lines[1], HasSubstr("cache of folder/of/images: 0 images (raw, 0.0 MB of at most 0.0 MB) served 0 of "
                                      "30 reads"));
}

}  // namespace
}  // namespace ssl
