// SPDX-License-Identifier: Apache-2.0
//
// Images that look the same though their bytes differ (saved again, scaled, recoloured a little), by the difference
// hash: N. Krawetz, "Kind of Like That", The Hacker Factor Blog, 2013. Its 64 bits alone take many smooth images for
// one another, such as any two skies, so that those that agree are compared by their grey values as well.
#ifndef SSL_DATA_INSPECTION_DIFFERENCE_HASH_H_
#define SSL_DATA_INSPECTION_DIFFERENCE_HASH_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/resample.h"

namespace ssl {

struct DifferenceHash {
  static constexpr int kRows = 8;
  static constexpr int kColumns = 9;
  static constexpr int kBits = 64;

  uint64_t bits = 0;                               // row by row: whether the right neighbour is brighter
  std::array<uint8_t, kRows* kColumns> grey = {};  // the image, scaled down

  bool operator==(const DifferenceHash& other) const { return bits == other.bits && grey == other.grey; }
};

// None for an image that is nearly of one colour: its bits would be noise. Channels 1 or 3.
std::optional<DifferenceHash> ComputeDifferenceHash(const Image& image, Resampler* resampler);

// Whether at most `distance` bits differ and the grey values have a correlation of at least 0.98, which copies of a
// photograph in another size, quality, brightness or contrast exceed, and different ones of the same layout do not.
bool LooksLike(const DifferenceHash& a, const DifferenceHash& b, int distance);

// Groups of two positions or more that look like one another, or like others of the group; each ascending, ordered by
// their first. distance: in [0, 15]. Not every pair is compared: hashes that differ in d bits agree in at least one of
// d + 1 bands, so only those that share a band are (Manku, Jain and Das Sarma, "Detecting Near-Duplicates for Web
// Crawling", WWW 2007). Time: n log n, and the pairs of distinct hashes that share a band, about n / 8000 for each hash
// at a distance of 4. on_progress: called now and then with how much of the work is done, as a share of the hashes: all
// of them in the end. Cancelled when `stop`, which may be null, is requested meanwhile: of many images of one scene
// every pair is compared.
absl::StatusOr<std::vector<std::vector<int64_t>>> GroupLookalikes(
    const std::vector<DifferenceHash>& hashes, int distance, const std::function<void(int64_t done)>& on_progress = {},
    const StopToken* stop = nullptr);

}  // namespace ssl

#endif  // SSL_DATA_INSPECTION_DIFFERENCE_HASH_H_
