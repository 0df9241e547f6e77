// SPDX-License-Identifier: Apache-2.0
//
// SSL_PIXEL_AVX512 before a function lets it use the instructions of AVX-512 by name, those on bytes and for dot
// products included, which Intel's Ice Lake, AMD's Zen 4 and later processors have. It is called where HasPixelAvx512()
// only; beside it stands one that every processor runs, with the same results. Where the compiler knows no such
// instructions, SSL_PIXEL_AVX512 is not defined and HasPixelAvx512() is false.
#ifndef SSL_DATA_IMAGE_PIXEL_AVX512_H_
#define SSL_DATA_IMAGE_PIXEL_AVX512_H_

#if defined(__x86_64__) && defined(__GNUC__)

#ifndef __clang__
// GCC's own header makes values that are not set, on purpose; what is made a part of a function is warned of there.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#ifdef __clang__
#define SSL_PIXEL_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))
#else
// Short loops over vectors are unrolled, so that these stay in registers.
#define SSL_PIXEL_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni"), optimize("O3", "fp-contract=off")))
#endif

namespace ssl {

inline bool HasPixelAvx512() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}

// Bytes of a vector.
constexpr int kVectorBytes = 64;

}  // namespace ssl

#else

namespace ssl {

inline bool HasPixelAvx512() { return false; }

}  // namespace ssl

#endif

#endif  // SSL_DATA_IMAGE_PIXEL_AVX512_H_
