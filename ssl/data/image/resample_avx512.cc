// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/resample_avx512.h"

#include <algorithm>
#include <cstddef>

#include "ssl/data/image/pixel_avx512.h"

namespace ssl {

#ifdef SSL_PIXEL_AVX512
namespace {

// A weight is high * 2^kLowBits + low: two factors of 16 bits, which the processor multiplies and adds in pairs.
constexpr int kLowBits = 11;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

constexpr int kMostPairs = 4;
// Values that are filtered along a row at once: their sums fill a vector.
constexpr int kLanes = 16;

int16_t HighPart(int32_t weight) { return static_cast<int16_t>(weight >> kLowBits); }
int16_t LowPart(int32_t weight) { return static_cast<int16_t>(weight & ((1 << kLowBits) - 1)); }

// Two taps for each of kLanes values: the places of the pixels among the bytes from `begin` on, each followed by one
// that does not count, and the weights.
struct LanePair {
  uint8_t places[kVectorBytes];
  int16_t high[2 * kLanes];
  int16_t low[2 * kLanes];
};

// Values value ... value + kLanes - 1 of each row.
struct LaneGroup {
  int value;
  int begin;  // where the bytes begin that they depend on
  int bytes;  // how many there are to be read, of kVectorBytes at most
  LanePair pairs[kMostPairs];
};

// So many groups, a row of 256 pixels in colour, take turns on so many rows, whose bytes stay in the first cache.
constexpr int kMostGroups = 48;
constexpr int kTileRows = 16;

struct PairSums {
  __m512i high, low;
};

SSL_PIXEL_AVX512 inline PairSums NoSums() { return {_mm512_setzero_si512(), _mm512_set1_epi32(kHalf)}; }

// pixels: two to a sum, in 16 bits each; as many of either part of the weights.
SSL_PIXEL_AVX512 inline void AddPair(__m512i pixels, __m512i high, __m512i low, PairSums* sums) {
  sums->high = _mm512_dpwssd_epi32(sums->high, pixels, high);
  sums->low = _mm512_dpwssd_epi32(sums->low, pixels, low);
}

// Rounded, not yet cut to 0 ... 255.
SSL_PIXEL_AVX512 inline __m512i Rounded(const PairSums& sums) {
  return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(sums.high, kLowBits), sums.low), kWeightBits);
}

// The group of the values from `value` on. False: its pixels do not fit a vector.
bool MakeGroup(const FilterTaps& filter, int channels, int value, LaneGroup* group) {
  const int first_x = value / channels, last_x = (value + kLanes - 1) / channels;
  const auto [least, most] = std::minmax_element(filter.first + first_x, filter.first + last_x + 1);
  group->value = value;
  group->begin = *least * channels;
  group->bytes = std::min(filter.in * channels - group->begin, kVectorBytes);
  if ((*most - *least + filter.taps) * channels > kVectorBytes) return false;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int x = (value + lane) / channels, channel = (value + lane) % channels;
    const int32_t* weights = filter.weights + static_cast<int64_t>(x) * filter.taps;
    const int place = (filter.first[x] - *least) * channels + channel;
    for (int t = 0; t < filter.taps + filter.taps % 2; ++t) {
      // An odd one out is paired with a weight of zero.
      const bool counts = t < filter.taps;
      LanePair* pair = group->pairs + t / 2;
      const int i = 2 * lane + t % 2;
      pair->places[2 * i] = static_cast<uint8_t>(place + (counts ? t * channels : 0));
      pair->high[i] = counts ? HighPart(weights[t]) : int16_t{0};
      pair->low[i] = counts ? LowPart(weights[t]) : int16_t{0};
    }
  }
  return true;
}

// rows: of a tile, those of the next one behind them.
template <int kPairs>
SSL_PIXEL_AVX512 inline void FilterGroup(PixelRows rows, int height, const LaneGroup& group, int64_t out_size,
                                         uint8_t* result) {
  constexpr __mmask64 kEvenBytes = 0x5555555555555555;
  const __mmask64 readable = ~__mmask64{0} >> (kVectorBytes - group.bytes);
  __m512i places[kPairs], high[kPairs], low[kPairs];
  for (int p = 0; p < kPairs; ++p) {
    places[p] = _mm512_loadu_si512(group.pairs[p].places);
    high[p] = _mm512_loadu_si512(group.pairs[p].high);
    low[p] = _mm512_loadu_si512(group.pairs[p].low);
  }
  const uint8_t* input = rows.first + group.begin;
  uint8_t* output = result + group.value;
  for (int y = 0; y < height; ++y, input += rows.stride, output += out_size) {
    // Rows lie too far apart for the processor to see what comes; an image from memory is in no cache.
    _mm_prefetch(reinterpret_cast<const char*>(input + kTileRows * rows.stride), _MM_HINT_T1);
    const __m512i bytes = _mm512_maskz_loadu_epi8(readable, input);
    PairSums sums = NoSums();
    for (int p = 0; p < kPairs; ++p) {
      AddPair(_mm512_maskz_permutexvar_epi8(kEvenBytes, places[p], bytes), high[p], low[p], &sums);
    }
    const __m512i positive = _mm512_max_epi32(Rounded(sums), _mm512_setzero_si512());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(output), _mm512_cvtusepi32_epi8(positive));
  }
}

using GroupFunction = void (*)(PixelRows rows, int height, const LaneGroup& group, int64_t out_size, uint8_t* result);
constexpr GroupFunction kGroupFilters[kMostPairs] = {FilterGroup<1>, FilterGroup<2>, FilterGroup<3>, FilterGroup<4>};

SSL_PIXEL_AVX512 inline __m512i LoadBytes(const uint8_t* bytes) { return _mm512_loadu_si512(bytes); }

// Adds a pair of rows, kVectorBytes of each. Within each 16 of them, sums[i] are those of bytes 4 * i ... 4 * i + 3.
SSL_PIXEL_AVX512 inline void AddRows(__m512i first, __m512i second, __m512i high, __m512i low, PairSums* sums) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i front = _mm512_unpacklo_epi8(first, second), back = _mm512_unpackhi_epi8(first, second);
  AddPair(_mm512_unpacklo_epi8(front, zero), high, low, sums);
  AddPair(_mm512_unpackhi_epi8(front, zero), high, low, sums + 1);
  AddPair(_mm512_unpacklo_epi8(back, zero), high, low, sums + 2);
  AddPair(_mm512_unpackhi_epi8(back, zero), high, low, sums + 3);
}

// Either part of two weights, in each lane.
SSL_PIXEL_AVX512 inline __m512i BothWeights(int16_t first, int16_t second) {
  return _mm512_set1_epi32(static_cast<int32_t>(static_cast<uint16_t>(first) | static_cast<uint32_t>(second) << 16));
}

template <int kTaps>
SSL_PIXEL_AVX512 inline void BlendRows(PixelRows rows, const int32_t* weights, int64_t size, uint8_t* output) {
  constexpr int kPairs = (kTaps + 1) / 2;
  __m512i high[kPairs], low[kPairs];
  for (int p = 0; p < kPairs; ++p) {
    const int32_t second = 2 * p + 1 < kTaps ? weights[2 * p + 1] : 0;
    high[p] = BothWeights(HighPart(weights[2 * p]), HighPart(second));
    low[p] = BothWeights(LowPart(weights[2 * p]), LowPart(second));
  }
  for (int64_t i = 0; i < size; i += kVectorBytes) {
    // The last vector overlaps the one before it.
    const int64_t begin = std::min(i, size - kVectorBytes);
    const uint8_t* input = rows.first + begin;
    PairSums sums[4] = {NoSums(), NoSums(), NoSums(), NoSums()};
    for (int p = 0; p < kPairs; ++p, input += 2 * rows.stride) {
      const __m512i first = LoadBytes(input);
      AddRows(first, 2 * p + 1 < kTaps ? LoadBytes(input + rows.stride) : first, high[p], low[p], sums);
    }
    const __m512i front = _mm512_packs_epi32(Rounded(sums[0]), Rounded(sums[1]));
    const __m512i back = _mm512_packs_epi32(Rounded(sums[2]), Rounded(sums[3]));
    _mm512_storeu_si512(output + begin, _mm512_packus_epi16(front, back));
  }
}

using BlendFunction = void (*)(PixelRows rows, const int32_t* weights, int64_t size, uint8_t* output);
constexpr BlendFunction kBlends[2 * kMostPairs] = {BlendRows<1>, BlendRows<2>, BlendRows<3>, BlendRows<4>,
                                                   BlendRows<5>, BlendRows<6>, BlendRows<7>, BlendRows<8>};

}  // namespace

bool FilterWidthByAvx512(PixelRows source, int height, int channels, const FilterTaps& filter, uint8_t* result) {
  const int out_size = filter.out * channels;
  const int num_pairs = (filter.taps + 1) / 2;
  if (!HasPixelAvx512() || num_pairs > kMostPairs || out_size < kLanes) return false;
  LaneGroup groups[kMostGroups];
  for (int value = 0; value < out_size;) {
    int num_groups = 0;
    for (; num_groups < kMostGroups && value < out_size; value += kLanes) {
      // The last group overlaps the one before it.
      if (!MakeGroup(filter, channels, std::min(value, out_size - kLanes), &groups[num_groups++])) return false;
    }
    for (int y = 0; y < height; y += kTileRows) {
      const PixelRows rows = {source.first + y * source.stride, source.stride};
      for (int i = 0; i < num_groups; ++i) {
        kGroupFilters[num_pairs - 1](rows, std::min(height - y, kTileRows), groups[i], out_size,
                                     result + static_cast<int64_t>(y) * out_size);
      }
    }
  }
  return true;
}

bool FilterHeightByAvx512(PixelRows source, int64_t row_size, const FilterTaps& filter, uint8_t* result) {
  if (!HasPixelAvx512() || filter.taps > 2 * kMostPairs || row_size < kVectorBytes) return false;
  const BlendFunction blend = kBlends[filter.taps - 1];
  for (int y = 0; y < filter.out; ++y) {
    blend({source.first + filter.first[y] * source.stride, source.stride},
          filter.weights + static_cast<int64_t>(y) * filter.taps, row_size, result + y * row_size);
  }
  return true;
}

#else

bool FilterWidthByAvx512(PixelRows, int, int, const FilterTaps&, uint8_t*) { return false; }
bool FilterHeightByAvx512(PixelRows, int64_t, const FilterTaps&, uint8_t*) { return false; }

#endif

}  // namespace ssl
