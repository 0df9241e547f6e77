// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/saved_tensors.h"

#include <ATen/ops/equal.h>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/io/safetensors.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {

std::map<std::string, at::Tensor> Saved(const std::string& directory, int64_t step,
                                        const std::vector<std::string>& files) {
  std::map<std::string, at::Tensor> tensors;
  for (const std::string& file : files) {
    const auto read = ReadSafetensors(absl::StrCat(directory, "/checkpoints/step_", step, "/", file));
    EXPECT_OK(read.status());
    for (const NamedTensor& entry : read->tensors) tensors[absl::StrCat(file, ":", entry.name)] = entry.tensor;
  }
  return tensors;
}

void ExpectEqual(const std::map<std::string, at::Tensor>& actual, const std::map<std::string, at::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(actual.count(name), 1u) << name;
    EXPECT_TRUE(at::equal(actual.at(name), tensor)) << name;
  }
}

}  // namespace ssl
