// SPDX-License-Identifier: Apache-2.0
//
// Of a build with CUDA, where no GPU is seen.
#include "ssl/core/cuda_graph.h"

#include <c10/util/Exception.h>

#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/core/device_graph.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(CudaGraphTest, HasTheNameOfItsDevice) {
  Registries registries;
  EXPECT_OK(RegisterCudaGraph(&registries));
  EXPECT_THAT(registries.device_graphs.Names(), testing::ElementsAre("cuda"));
  EXPECT_THAT(RegisterCudaGraph(&registries), HasCode(absl::StatusCode::kAlreadyExists));
}

TEST(CudaGraphTest, WithoutAGpu_IsMadeAndRecordsNothing) {
  Registries registries;
  ASSERT_OK(RegisterCudaGraph(&registries));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const ConfigNode params = ConfigNode::Map();
  const BuildContext context{params, registries, *communicator};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DeviceGraph> graph,
                       registries.device_graphs.Make("cuda", params, context));
  bool called = false;
  EXPECT_THAT(graph->Record([&] {
    called = true;
    return absl::OkStatus();
  }),
              StatusIs(absl::StatusCode::kInternal, testing::HasSubstr("CUDA graph: ")));
  EXPECT_FALSE(called);
  EXPECT_THROW(graph->Replay(), c10::Error);
}

}  // namespace
}  // namespace ssl
