// SPDX-License-Identifier: Apache-2.0
//
// SSL_VECTORIZE before a function with loops over pixels compiles it once more for AVX2 and for AVX-512, chosen when
// the program starts. Without effect under sanitizers, which do not survive that choice. All versions give the same
// results: no multiplication is fused with an addition.
//
// SSL_PIXEL_FUNCTION before a function that such loops call makes it a part of each version.
#ifndef SSL_DATA_IMAGE_VECTORIZE_H_
#define SSL_DATA_IMAGE_VECTORIZE_H_

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SSL_VECTORIZE \
  __attribute__((optimize("O3", "fp-contract=off"), target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define SSL_VECTORIZE
#endif

#define SSL_PIXEL_FUNCTION [[gnu::always_inline]] inline

#endif  // SSL_DATA_IMAGE_VECTORIZE_H_
