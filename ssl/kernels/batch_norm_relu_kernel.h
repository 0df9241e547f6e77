// SPDX-License-Identifier: Apache-2.0
//
// batch_norm_relu_passes.h as kernels for NVIDIA GPUs: three launches for each pass. (One cooperative launch could not
// start while another stream's kernel has a processor.)
#ifndef SSL_KERNELS_BATCH_NORM_RELU_KERNEL_H_
#define SSL_KERNELS_BATCH_NORM_RELU_KERNEL_H_

#include "ssl/kernels/batch_norm_relu_passes.h"
#include "ssl/kernels/map_part.h"

struct CUstream_st;

namespace ssl {

// For both passes, on a GPU with so many multiprocessors.
MapGrid GridFor(const MapShape& shape, int processors);

// Start a pass on the stream; all pointers are of the current device. They return the cudaError_t of the launches, 0
// when all is well.
int LaunchBatchNormRelu(const BatchNormReluLaunch& launch, CUstream_st* stream);
int LaunchBatchNormReluBackward(const BatchNormReluBackwardLaunch& launch, CUstream_st* stream);

}  // namespace ssl

#endif  // SSL_KERNELS_BATCH_NORM_RELU_KERNEL_H_
