// SPDX-License-Identifier: Apache-2.0
//
// Small files of torch.save, and a walk over what was read from one, for fuzz targets.
#ifndef SSL_TESTS_FUZZ_TORCH_SAMPLES_H_
#define SSL_TESTS_FUZZ_TORCH_SAMPLES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl::fuzz {

// Pickles of state dicts, as an archive's data.pkl holds them; tensors lie in storage "0" of kStorageBytes bytes.
std::vector<std::string> SamplePickles();

inline constexpr size_t kStorageBytes = 64;

// An archive with that pickle and storage "0". Its checksums are 0, which match everything.
std::string ArchiveOf(absl::string_view pickle);

// Reads `file` as ReadTorchFile does and looks at every value and every byte of every tensor.
void ReadTorchBytes(absl::string_view file);

}  // namespace ssl::fuzz

#endif  // SSL_TESTS_FUZZ_TORCH_SAMPLES_H_
