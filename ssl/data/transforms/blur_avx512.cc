// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/blur_avx512.h"

#include <algorithm>

#include "ssl/data/image/pixel_avx512.h"

namespace ssl {

#ifdef SSL_PIXEL_AVX512
namespace {

constexpr int kFractionBits = 24;
// A weight is high * 2^kLowBits + low: two factors of 16 bits, which the processor multiplies and adds in pairs.
constexpr int kLowBits = 12;
constexpr uint32_t kHalf = 1u << (kFractionBits - 1);

SSL_PIXEL_AVX512 inline __m512i Load(const uint8_t* bytes) { return _mm512_loadu_si512(bytes); }

// The first or the second eight of each 16 bytes, added up.
SSL_PIXEL_AVX512 inline __m512i AddFront(__m512i a, __m512i b) {
  return _mm512_maddubs_epi16(_mm512_unpacklo_epi8(a, b), _mm512_set1_epi8(1));
}
SSL_PIXEL_AVX512 inline __m512i AddBack(__m512i a, __m512i b) {
  return _mm512_maddubs_epi16(_mm512_unpackhi_epi8(a, b), _mm512_set1_epi8(1));
}

// pixels: of each of 16 results the sum of the inner ones and that of the outer ones; as many of either part of the
// weights.
SSL_PIXEL_AVX512 inline __m512i Rounded(__m512i pixels, __m512i high, __m512i low) {
  const __m512i sum = _mm512_slli_epi32(_mm512_madd_epi16(pixels, high), kLowBits);
  const __m512i rest = _mm512_dpwssd_epi32(_mm512_set1_epi32(kHalf), pixels, low);
  return _mm512_srli_epi32(_mm512_add_epi32(sum, rest), kFractionBits);
}

// Of as many results as there are sums.
SSL_PIXEL_AVX512 inline __m512i RoundedWords(__m512i inner, __m512i edges, __m512i high, __m512i low) {
  return _mm512_packs_epi32(Rounded(_mm512_unpacklo_epi16(inner, edges), high, low),
                            Rounded(_mm512_unpackhi_epi16(inner, edges), high, low));
}

template <int kRadius>
SSL_PIXEL_AVX512 void BlendFewTaps(uint32_t weight, uint32_t edge_weight, const uint8_t* const* taps, int64_t size,
                                   uint8_t* output) {
  constexpr int kLast = 2 * kRadius + 2;
  constexpr uint32_t kLowMask = (1u << kLowBits) - 1;
  const __m512i high = _mm512_set1_epi32(weight >> kLowBits | edge_weight >> kLowBits << 16);
  const __m512i low = _mm512_set1_epi32((weight & kLowMask) | (edge_weight & kLowMask) << 16);
  for (int64_t i = 0; i < size; i += kVectorBytes) {
    // The last vector overlaps the one before it.
    const int64_t begin = std::min(i, size - kVectorBytes);
    const __m512i before = Load(taps[0] + begin), after = Load(taps[kLast] + begin);
    const __m512i middle = Load(taps[kRadius + 1] + begin);
    __m512i front = AddFront(middle, _mm512_setzero_si512()), back = AddBack(middle, _mm512_setzero_si512());
    for (int t = 1; t <= kRadius; ++t) {
      const __m512i left = Load(taps[t] + begin), right = Load(taps[kLast - t] + begin);
      front = _mm512_add_epi16(front, AddFront(left, right));
      back = _mm512_add_epi16(back, AddBack(left, right));
    }
    _mm512_storeu_si512(output + begin, _mm512_packus_epi16(RoundedWords(front, AddFront(before, after), high, low),
                                                            RoundedWords(back, AddBack(before, after), high, low)));
  }
}

}  // namespace

bool BlendTapsByAvx512(int radius, uint32_t weight, uint32_t edge_weight, const uint8_t* const* taps, int64_t size,
                       uint8_t* output) {
  if (!HasPixelAvx512() || size < kVectorBytes || radius > 1) return false;
  if (radius == 0) {
    BlendFewTaps<0>(weight, edge_weight, taps, size, output);
  } else {
    BlendFewTaps<1>(weight, edge_weight, taps, size, output);
  }
  return true;
}

#else

bool BlendTapsByAvx512(int, uint32_t, uint32_t, const uint8_t* const*, int64_t, uint8_t*) { return false; }

#endif

}  // namespace ssl
