// SPDX-License-Identifier: Apache-2.0
//
// SSL_HOST_DEVICE before a function makes it a part of what calls it, on the host and in a kernel: the arithmetic of a
// kernel stands once, and the host's tests run it.
//
// SSL_TEAM_FUNCTION before a template makes it one that a team of threads runs together (team.h): the threads of a
// block in a .cu, host threads elsewhere.
//
// SSL_UNROLL before a loop keeps arrays that its body indexes in a kernel's registers.
#ifndef SSL_KERNELS_HOST_DEVICE_H_
#define SSL_KERNELS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define SSL_HOST_DEVICE __host__ __device__ __forceinline__
#define SSL_TEAM_FUNCTION __device__ inline
#define SSL_UNROLL _Pragma("unroll")
#else
#define SSL_HOST_DEVICE [[gnu::always_inline]] inline
#define SSL_TEAM_FUNCTION inline
#define SSL_UNROLL
#endif

#endif  // SSL_KERNELS_HOST_DEVICE_H_
