// SPDX-License-Identifier: Apache-2.0
//
// SSL_HOST_DEVICE before a function makes it a part of what calls it, on the host and in a kernel: the arithmetic of a
// kernel stands once, and the host's tests run it.
#ifndef SSL_KERNELS_HOST_DEVICE_H_
#define SSL_KERNELS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define SSL_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SSL_HOST_DEVICE [[gnu::always_inline]] inline
#endif

#endif  // SSL_KERNELS_HOST_DEVICE_H_
