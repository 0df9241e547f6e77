// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint holds, to compare it with another.
#ifndef SSL_TESTING_SAVED_TENSORS_H_
#define SSL_TESTING_SAVED_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ssl {

// The tensors of some files of a checkpoint, by "<file>:<name>".
std::map<std::string, at::Tensor> Saved(const std::string& directory, int64_t step,
                                        const std::vector<std::string>& files = {"model.safetensors",
                                                                                 "optimizer.safetensors"});
// Bit for bit.
void ExpectEqual(const std::map<std::string, at::Tensor>& actual, const std::map<std::string, at::Tensor>& expected);

}  // namespace ssl

#endif  // SSL_TESTING_SAVED_TENSORS_H_
