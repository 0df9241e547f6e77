// SPDX-License-Identifier: Apache-2.0
//
// scale_chunk.h as a kernel for NVIDIA GPUs.
#ifndef SSL_KERNELS_SCALE_KERNEL_H_
#define SSL_KERNELS_SCALE_KERNEL_H_

#include "ssl/kernels/scale_chunk.h"

struct CUstream_st;

namespace ssl {

// Starts the kernel on the stream; all pointers are of the current device, and there is a chunk. Returns the
// cudaError_t of the launch, 0 when it is well.
int LaunchScale(const ScaleLaunch& launch, CUstream_st* stream);

}  // namespace ssl

#endif  // SSL_KERNELS_SCALE_KERNEL_H_
