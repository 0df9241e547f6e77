// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/look_up_bytes.h"

#include "ssl/data/image/pixel_avx512.h"

namespace ssl {
namespace {

#ifdef SSL_PIXEL_AVX512
// Of whole vectors. Returns how many bytes they were.
SSL_PIXEL_AVX512
int64_t LookUpVectors(const uint8_t* table, uint8_t* bytes, int64_t count) {
  const __m512i first = _mm512_loadu_si512(table), second = _mm512_loadu_si512(table + kVectorBytes);
  const __m512i third = _mm512_loadu_si512(table + 2 * kVectorBytes);
  const __m512i fourth = _mm512_loadu_si512(table + 3 * kVectorBytes);
  int64_t i = 0;
  for (; i + kVectorBytes <= count; i += kVectorBytes) {
    const __m512i value = _mm512_loadu_si512(bytes + i);
    // The highest bit of a byte chooses the half of the table.
    const __m512i low = _mm512_permutex2var_epi8(first, value, second);
    const __m512i high = _mm512_permutex2var_epi8(third, value, fourth);
    _mm512_storeu_si512(bytes + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(value), low, high));
  }
  return i;
}
#else
int64_t LookUpVectors(const uint8_t*, uint8_t*, int64_t) { return 0; }
#endif

}  // namespace

void LookUpBytes(const uint8_t* table, uint8_t* bytes, int64_t count) {
  for (int64_t i = HasPixelAvx512() ? LookUpVectors(table, bytes, count) : 0; i < count; ++i) {
    bytes[i] = table[bytes[i]];
  }
}

}  // namespace ssl
