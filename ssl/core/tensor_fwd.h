// SPDX-License-Identifier: Apache-2.0
//
// Names of LibTorch types for headers that only pass them on.
#ifndef SSL_CORE_TENSOR_FWD_H_
#define SSL_CORE_TENSOR_FWD_H_

namespace at {
class Tensor;
}  // namespace at

namespace torch::nn {
class Module;
}  // namespace torch::nn

#endif  // SSL_CORE_TENSOR_FWD_H_
