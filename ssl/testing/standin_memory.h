// SPDX-License-Identifier: Apache-2.0
//
// Tensors of the stand-in device: one memory under two addresses, of which the host can read one, and the kernels that
// make, copy and view it.
#ifndef SSL_TESTING_STANDIN_MEMORY_H_
#define SSL_TESTING_STANDIN_MEMORY_H_

#include <ATen/core/Tensor.h>

namespace torch {
class Library;
}

namespace ssl {

// Before the first tensor of the device.
void SetStandinAllocator();

// Registers what takes or returns memory: empty, copies, item(), views, resize_, set_.
void RegisterStandinMemory(torch::Library* library);

bool IsOnStandin(const at::Tensor& tensor);

// A tensor of the CPU in the memory of a tensor of the device, which it keeps alive, so that a kernel that changes one
// changes the other. One without elements, which kernels may resize, has its own memory. Others as they are.
at::Tensor HostView(const at::Tensor& tensor);

// A tensor of the device in the memory of one of the CPU, which it keeps alive; undefined for an undefined one.
at::Tensor DeviceView(const at::Tensor& tensor);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_MEMORY_H_
