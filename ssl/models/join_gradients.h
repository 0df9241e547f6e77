// SPDX-License-Identifier: Apache-2.0
//
// Outputs of a network of which each gets a gradient as soon as one does.
//
// Where layers communicate in backward, a rank whose loss does not read an output would not come to the layers behind
// it, and the other ranks would wait there. With zeros for the outputs that are not read, every rank comes to all
// layers, in one order.
#ifndef SSL_MODELS_JOIN_GRADIENTS_H_
#define SSL_MODELS_JOIN_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace ssl {

// The same values. Those that need no gradient are returned as they are. Neither the outputs nor what is returned may
// be changed in place.
std::vector<at::Tensor> JoinGradients(std::vector<at::Tensor> outputs);

}  // namespace ssl

#endif  // SSL_MODELS_JOIN_GRADIENTS_H_
