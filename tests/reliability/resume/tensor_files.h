// SPDX-License-Identifier: Apache-2.0
//
// What two runs have saved, to be compared.
#ifndef SSL_TESTS_RELIABILITY_RESUME_TENSOR_FILES_H_
#define SSL_TESTS_RELIABILITY_RESUME_TENSOR_FILES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ssl {

// Names and bytes of the tensor files of a run's checkpoint, by name. Fails the test when they cannot be read.
std::vector<std::pair<std::string, std::string>> TensorFiles(const std::string& directory, int64_t step);

}  // namespace ssl

#endif  // SSL_TESTS_RELIABILITY_RESUME_TENSOR_FILES_H_
