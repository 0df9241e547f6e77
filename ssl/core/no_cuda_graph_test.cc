// SPDX-License-Identifier: Apache-2.0
//
// Of a build without CUDA.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/cuda_graph.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(NoCudaGraphTest, NothingIsRegistered) {
  Registries registries;
  EXPECT_OK(RegisterCudaGraph(&registries));
  EXPECT_THAT(registries.device_graphs.Names(), testing::IsEmpty());
}

}  // namespace
}  // namespace ssl
