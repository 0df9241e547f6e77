// SPDX-License-Identifier: Apache-2.0
//
// Gradients that weight decay is added to and that are scaled by a rate for each parameter, as LARC and LARS do, in few
// launches: LibTorch multiplies tensors by numbers that lie on a device one by one.
#ifndef SSL_KERNELS_SCALE_GRADIENTS_H_
#define SSL_KERNELS_SCALE_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace ssl {

// gradients[i] = (gradients[i] + weight_decay * parameters[i]) * rates[i], in place and without a graph.
// parameters: parallel to the gradients; not read where weight_decay is 0. rates: [number of gradients], on their
// device. Nothing waits for the device; throws LibTorch exceptions.
void ScaleGradients(const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
                    double weight_decay, const at::Tensor& rates);

}  // namespace ssl

#endif  // SSL_KERNELS_SCALE_GRADIENTS_H_
