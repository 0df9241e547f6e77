// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/hue_avx512.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "ssl/data/image/pixel_avx512.h"

namespace ssl {

#ifdef SSL_PIXEL_AVX512
namespace {

using ByteTable = std::array<uint8_t, 256>;

// For each hue, how far it is from the part of the wheel where a channel is full, whose middle lies at `middle`: 0 ...
// 255 times 6, 255 to a sector; distance 255 and more is that of a channel at its least.
constexpr ByteTable Distances(int middle, bool from_full) {
  ByteTable table = {};
  for (int hue = 0; hue < 256; ++hue) {
    const int offset = 6 * hue < middle ? middle - 6 * hue : 6 * hue - middle;
    table[hue] = static_cast<uint8_t>(std::clamp(from_full ? 510 - offset : offset - 255, 0, 255));
  }
  return table;
}

constexpr ByteTable kRedDistances = Distances(765, true);
constexpr ByteTable kGreenDistances = Distances(510, false);
constexpr ByteTable kBlueDistances = Distances(1020, false);

// The halves of the sectors, by number: `centre` for those where the hue falls from the edge, `centre` + kRises for
// those where it rises; the centres are 0, 2 and 4.
constexpr int kRises = 10;
alignas(64) constexpr float kEdges[16] = {-1, 0, 1, 0, 3, 0, 0, 0, 0, 0, 1, 0, 3, 0, 5, 0};
alignas(64) constexpr float kSigns[16] = {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1};
alignas(64) constexpr float kLaps[16] = {1};

SSL_PIXEL_AVX512 inline __m512i Load(const uint8_t* bytes) { return _mm512_loadu_si512(bytes); }
SSL_PIXEL_AVX512 inline void Store(__m512i value, uint8_t* bytes) { _mm512_storeu_si512(bytes, value); }

// 64 numbers of 32 bits, in an order of their own, from bytes and back.
struct Numbers {
  __m512i parts[4];
};

SSL_PIXEL_AVX512 inline Numbers Widen(__m512i bytes) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i front = _mm512_unpacklo_epi8(bytes, zero), back = _mm512_unpackhi_epi8(bytes, zero);
  return {{_mm512_unpacklo_epi16(front, zero), _mm512_unpackhi_epi16(front, zero), _mm512_unpacklo_epi16(back, zero),
           _mm512_unpackhi_epi16(back, zero)}};
}

SSL_PIXEL_AVX512 inline __m512i Narrow(const Numbers& numbers) {
  return _mm512_packus_epi16(_mm512_packs_epi32(numbers.parts[0], numbers.parts[1]),
                             _mm512_packs_epi32(numbers.parts[2], numbers.parts[3]));
}

// a / b, rounded as a division does for the numbers here; b: at least 1. Much faster than one.
SSL_PIXEL_AVX512 inline __m512 Quotient(__m512 a, __m512 b) {
  __m512 inverse = _mm512_rcp14_ps(b);
  inverse = _mm512_fmadd_ps(_mm512_fnmadd_ps(b, inverse, _mm512_set1_ps(1.0f)), inverse, inverse);
  const __m512 quotient = _mm512_mul_ps(a, inverse);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(quotient, b, a), inverse, quotient);
}

// The same of a constant.
SSL_PIXEL_AVX512 inline __m512 Sixth(__m512 a) {
  constexpr double kSixth = 1.0 / 6.0;
  constexpr auto kHigh = static_cast<float>(kSixth);
  constexpr auto kLow = static_cast<float>(kSixth - static_cast<double>(kHigh));
  return _mm512_fmadd_ps(a, _mm512_set1_ps(kHigh), _mm512_mul_ps(a, _mm512_set1_ps(kLow)));
}

SSL_PIXEL_AVX512 inline __m512 AtLeastOne(__m512 a) { return _mm512_max_ps(a, _mm512_set1_ps(1.0f)); }

// The hue, 0 ... 255; from_edge: of half a sector, times chroma.
SSL_PIXEL_AVX512 inline __m512i HueOf(__m512i half_sector, __m512i from_edge, __m512 chroma) {
  const __m512 part = Quotient(_mm512_cvtepi32_ps(from_edge), AtLeastOne(chroma));
  const __m512 place = _mm512_fmadd_ps(_mm512_permutexvar_ps(half_sector, _mm512_load_ps(kSigns)), part,
                                       _mm512_permutexvar_ps(half_sector, _mm512_load_ps(kEdges)));
  const __m512 turn = _mm512_add_ps(Sixth(place), _mm512_permutexvar_ps(half_sector, _mm512_load_ps(kLaps)));
  return _mm512_cvttps_epi32(_mm512_mul_ps(turn, _mm512_set1_ps(255.0f)));
}

// 64 pixels in the terms of hue and saturation.
struct Colors {
  __m512i hue;      // in bytes
  __m512 value[4];  // plus a half, for rounding
  __m512 value_times_saturation[4];
};

SSL_PIXEL_AVX512 inline Colors ColorsOf(__m512i red, __m512i green, __m512i blue) {
  const __m512i larger = _mm512_max_epu8(red, green), smaller = _mm512_min_epu8(red, green);
  const __m512i value = _mm512_max_epu8(larger, blue), least = _mm512_min_epu8(smaller, blue);
  const __m512i middle = _mm512_max_epu8(smaller, _mm512_min_epu8(larger, blue));
  const __mmask64 red_first = _mm512_cmpeq_epi8_mask(red, value);
  const __mmask64 green_first = _mm512_cmpeq_epi8_mask(green, value);
  const auto choose = [&](__m512i of_red, __m512i of_green, __m512i of_blue) SSL_PIXEL_AVX512 {
    return _mm512_mask_blend_epi8(red_first, _mm512_mask_blend_epi8(green_first, of_blue, of_green), of_red);
  };
  const __mmask64 rises = _mm512_cmpge_epu8_mask(choose(green, blue, red), choose(blue, red, green));
  const __m512i centre = choose(_mm512_setzero_si512(), _mm512_set1_epi8(2), _mm512_set1_epi8(4));
  const Numbers halves = Widen(_mm512_mask_add_epi8(centre, rises, centre, _mm512_set1_epi8(kRises)));
  const Numbers from_edge = Widen(_mm512_sub_epi8(value, middle));
  const Numbers chromas = Widen(_mm512_sub_epi8(value, least)), values = Widen(value);
  Colors colors;
  Numbers hues;
  for (int i = 0; i < 4; ++i) {
    const __m512 chroma = _mm512_cvtepi32_ps(chromas.parts[i]), full = _mm512_cvtepi32_ps(values.parts[i]);
    hues.parts[i] = HueOf(halves.parts[i], from_edge.parts[i], chroma);
    const __m512 saturation = Quotient(_mm512_mul_ps(chroma, _mm512_set1_ps(255.0f)), AtLeastOne(full));
    colors.value_times_saturation[i] =
        _mm512_mul_ps(full, _mm512_roundscale_ps(saturation, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
    colors.value[i] = _mm512_add_ps(full, _mm512_set1_ps(0.5f));
  }
  colors.hue = Narrow(hues);
  return colors;
}

// table[byte] of each.
SSL_PIXEL_AVX512 inline __m512i LookUp(const ByteTable& table, __m512i bytes) {
  const uint8_t* entries = table.data();
  const __m512i low = _mm512_permutex2var_epi8(Load(entries), bytes, Load(entries + kVectorBytes));
  const __m512i high =
      _mm512_permutex2var_epi8(Load(entries + 2 * kVectorBytes), bytes, Load(entries + 3 * kVectorBytes));
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), low, high);
}

SSL_PIXEL_AVX512 inline __m512i ChannelOf(const Colors& colors, __m512i hue, const ByteTable& distances) {
  Numbers channel = Widen(LookUp(distances, hue));
  for (int i = 0; i < 4; ++i) {
    const __m512 missing = _mm512_mul_ps(colors.value_times_saturation[i], _mm512_cvtepi32_ps(channel.parts[i]));
    channel.parts[i] = _mm512_cvttps_epi32(_mm512_fnmadd_ps(missing, _mm512_set1_ps(1.0f / 65025.0f), colors.value[i]));
  }
  return Narrow(channel);
}

SSL_PIXEL_AVX512
void TurnAll(int steps, ColorPlanes* planes) {
  for (int i = 0; i < planes->count; i += kVectorBytes) {
    const Colors colors = ColorsOf(Load(planes->red + i), Load(planes->green + i), Load(planes->blue + i));
    const __m512i hue = _mm512_add_epi8(colors.hue, _mm512_set1_epi8(static_cast<char>(steps)));
    Store(ChannelOf(colors, hue, kRedDistances), planes->red + i);
    Store(ChannelOf(colors, hue, kGreenDistances), planes->green + i);
    Store(ChannelOf(colors, hue, kBlueDistances), planes->blue + i);
  }
}

}  // namespace

bool TurnHuesByAvx512(int steps, ColorPlanes* planes) {
  static_assert(ColorPlanes::kPixels % kVectorBytes == 0, "the last vector lies within the planes");
  if (!HasPixelAvx512()) return false;
  TurnAll(steps, planes);
  return true;
}

#else

bool TurnHuesByAvx512(int, ColorPlanes*) { return false; }

#endif

}  // namespace ssl
