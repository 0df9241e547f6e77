// SPDX-License-Identifier: Apache-2.0
//
// SSL_VECTORIZE before a function with loops over pixels compiles it once more for AVX2 and for AVX-512, chosen when
// the program starts. Without effect under sanitizers, which do not survive that choice. All versions give the same
// results: no multiplication is fused with an addition.
//
// SSL_VECTORIZE_FUSED is the same for a function that asks for fused multiplications itself. Where FusesFast() is false
// each of them is a call of a function: better take another way.
//
// SSL_PIXEL_FUNCTION before a function that such loops call makes it a part of each version.
#ifndef SSL_DATA_IMAGE_VECTORIZE_H_
#define SSL_DATA_IMAGE_VECTORIZE_H_

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SSL_VECTORIZE \
  __attribute__((optimize("O3", "fp-contract=off"), target_clones("arch=x86-64-v4", "avx2", "default")))
#define SSL_VECTORIZE_FUSED \
  __attribute__((optimize("O3", "fp-contract=off"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
namespace ssl {
inline bool FusesFast() { return __builtin_cpu_supports("x86-64-v3"); }
}  // namespace ssl
#else
#define SSL_VECTORIZE
#define SSL_VECTORIZE_FUSED
namespace ssl {
inline bool FusesFast() { return false; }
}  // namespace ssl
#endif

#define SSL_PIXEL_FUNCTION [[gnu::always_inline]] inline

#endif  // SSL_DATA_IMAGE_VECTORIZE_H_
