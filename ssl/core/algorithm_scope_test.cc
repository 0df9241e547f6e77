// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/algorithm_scope.h"

#include <ATen/Context.h>
#include <stdlib.h>

#include <array>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::StartsWith;

std::array<bool, 5> Flags() {
  const at::Context& torch = at::globalContext();
  return {torch.benchmarkCuDNN(), torch.deterministicCuDNN(), torch.deterministicAlgorithms(),
          torch.deterministicAlgorithmsWarnOnly(), torch.deterministicFillUninitializedMemory()};
}

class AlgorithmScopeTest : public ::testing::Test {
 protected:
  AlgorithmScopeTest() { unsetenv("CUBLAS_WORKSPACE_CONFIG"); }

  void AskForDeterministic(const char* device) {
    options_.machine.device = device;
    options_.reproducibility.deterministic_convolutions = true;
  }

  TaskOptions options_;
  const ConfigNode config_ = *ParseYaml("REPRODUCIBILITY:\n  CUDDN_DETERMINISTIC: True", "run.yaml", nullptr);
};

TEST_F(AlgorithmScopeTest, TheFlagsOfAHost_AreBackAtItsEnd) {
  const std::array<bool, 5> fresh = {false, false, false, false, true};
  EXPECT_EQ(Flags(), fresh);
  {
    const AlgorithmScope fastest(/*deterministic=*/false);
    EXPECT_EQ(Flags(), (std::array<bool, 5>{true, false, false, false, false}));
    const AlgorithmScope deterministic(/*deterministic=*/true);
    EXPECT_EQ(Flags(), (std::array<bool, 5>{false, true, true, false, false}));
  }
  EXPECT_EQ(Flags(), fresh);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  { const AlgorithmScope fastest(/*deterministic=*/false); }
  EXPECT_EQ(Flags(), (std::array<bool, 5>{false, false, true, true, true})) << "a host's own";
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST_F(AlgorithmScopeTest, ConvolutionsAreIeee_WhileTheScopeLives) {
  at::Context& torch = at::globalContext();
  EXPECT_FALSE(HasIeeeConvolutions());
  {
    const IeeeConvolutionScope ieee;
    EXPECT_TRUE(HasIeeeConvolutions());
    EXPECT_EQ(torch.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV), at::Float32Precision::IEEE);
  }
  EXPECT_FALSE(HasIeeeConvolutions());
  EXPECT_EQ(torch.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV), at::Float32Precision::TF32);
  // A host's choice for all operations stays the choice for convolutions.
  torch.setFloat32Precision(at::Float32Backend::GENERIC, at::Float32Op::ALL, at::Float32Precision::IEEE);
  { const IeeeConvolutionScope ieee; }
  EXPECT_TRUE(HasIeeeConvolutions());
  torch.setFloat32Precision(at::Float32Backend::GENERIC, at::Float32Op::ALL, at::Float32Precision::NONE);
  EXPECT_FALSE(HasIeeeConvolutions());
}

TEST_F(AlgorithmScopeTest, CublasGetsItsWorkspaceFromTheEnvironment) {
  { const AlgorithmScope fastest(/*deterministic=*/false); }
  EXPECT_EQ(getenv("CUBLAS_WORKSPACE_CONFIG"), nullptr);
  { const AlgorithmScope deterministic(/*deterministic=*/true); }
  EXPECT_STREQ(getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", /*replace=*/1);
  { const AlgorithmScope deterministic(/*deterministic=*/true); }
  EXPECT_STREQ(getenv("CUBLAS_WORKSPACE_CONFIG"), ":16:8") << "which the user has chosen";
}

TEST_F(AlgorithmScopeTest, AnotherWorkspace_IsRefusedByTheKey) {
  AskForDeterministic("gpu");
  for (const char* workspace : {":16:8", ":4096:8"}) {
    setenv("CUBLAS_WORKSPACE_CONFIG", workspace, /*replace=*/1);
    EXPECT_OK(CheckCublasWorkspace(options_, config_));
  }
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2", /*replace=*/1);
  EXPECT_THAT(
      CheckCublasWorkspace(options_, config_),
      StatusIs(absl::StatusCode::kInvalidArgument,
               StartsWith("run.yaml:2: config.REPRODUCIBILITY.CUDDN_DETERMINISTIC is 'True', and the environment's "
                          "CUBLAS_WORKSPACE_CONFIG is ':4096:2', expected :4096:8, :16:8 or none")));
  AskForDeterministic("cpu");
  EXPECT_OK(CheckCublasWorkspace(options_, config_));
}

}  // namespace
}  // namespace ssl
