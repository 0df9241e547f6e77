// SPDX-License-Identifier: Apache-2.0
//
// A CUDA graph against the same operations one by one, on the first GPU.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/core/cuda_graph.h"
#include "ssl/core/device_graph.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

const at::Device kGpu(at::kCUDA, 0);

at::TensorOptions Options() { return at::TensorOptions().device(kGpu).dtype(at::kFloat); }

void Seed(uint64_t seed) {
  for (const at::Device device : {at::Device(at::kCPU), kGpu}) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(seed);
  }
}

bool Close(const at::Tensor& one, const at::Tensor& other) {
  return one.cpu().allclose(other.cpu(), /*rtol=*/1e-4, /*atol=*/1e-5);
}

bool Equal(const at::Tensor& one, const at::Tensor& other) { return one.cpu().equal(other.cpu()); }

// Two layers, with SGD and momentum.
class Network {
 public:
  Network() {
    Seed(3);
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{16, 12}, {16}, {5, 16}, {5}}) {
      parameters_.push_back(at::randn(sizes).mul(0.3).to(kGpu).requires_grad_());
      momenta_.push_back(at::zeros(sizes, Options()));
    }
  }

  // One update; returns the loss. inputs: [N, 12]; labels: [N]; rate: [].
  at::Tensor Update(const at::Tensor& inputs, const at::Tensor& labels, const at::Tensor& rate) {
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    const at::Tensor hidden = at::linear(inputs, parameters_[0], parameters_[1]).relu();
    const at::Tensor scores = at::linear(hidden, parameters_[2], parameters_[3]);
    const at::Tensor loss = at::nll_loss(at::log_softmax(scores, 1), labels);
    loss.backward();
    Tensors gradients;
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    const at::NoGradGuard no_grad;
    at::_fused_sgd_(parameters_, gradients, momenta_, /*weight_decay=*/1e-4, /*momentum=*/0.9, rate, /*dampening=*/0,
                    /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false);
    return loss.detach();
  }

  const Tensors& parameters() const { return parameters_; }

 private:
  Tensors parameters_;
  Tensors momenta_;
};

class CudaGraphTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(RegisterCudaGraph(&registries_));
    graph_ = MakeGraph();
    Seed(7);
  }

  std::unique_ptr<DeviceGraph> MakeGraph() {
    const ConfigNode params = ConfigNode::Map();
    const BuildContext context{params, registries_, *communicator_};
    absl::StatusOr<std::unique_ptr<DeviceGraph>> graph = registries_.device_graphs.Make("cuda", params, context);
    EXPECT_OK(graph);
    return *std::move(graph);
  }

  absl::Status Record(const std::function<void()>& work) {
    return graph_->Record([&] {
      work();
      return absl::OkStatus();
    });
  }

  void ExpectRecordsAndReplays() {
    const at::Tensor values = at::zeros({2}, Options());
    ASSERT_OK(Record([&] { values.add_(at::dropout(at::ones({2}, Options()), 0.0, true)); }));
    graph_->Replay();
    EXPECT_TRUE(Equal(values, at::full({2}, 2.0)));
  }

  Registries registries_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  std::unique_ptr<DeviceGraph> graph_;
};

TEST_F(CudaGraphTest, UpdatesAreThoseWithoutARecording) {
  Network eager;
  Network recorded;
  const at::Tensor inputs = at::empty({6, 12}, Options());
  const at::Tensor labels = at::empty({6}, Options().dtype(at::kLong));
  const at::Tensor rate = at::empty({}, Options());
  at::Tensor loss;
  for (int update = 0; update < 6; ++update) {
    inputs.copy_(at::randn({6, 12}));
    labels.copy_(at::randint(5, {6}, at::kLong));
    rate.fill_(0.1 / (update + 1));
    const at::Tensor expected = eager.Update(inputs, labels, rate);
    if (update == 0) {
      loss = recorded.Update(inputs, labels, rate);
    } else if (update == 1) {
      ASSERT_OK(Record([&] { loss = recorded.Update(inputs, labels, rate); }));
    } else {
      graph_->Replay();
    }
    EXPECT_TRUE(Close(loss, expected)) << "update " << update;
    for (size_t i = 0; i < recorded.parameters().size(); ++i) {
      EXPECT_TRUE(Close(recorded.parameters()[i].detach(), eager.parameters()[i].detach())) << update << " " << i;
    }
  }
}

TEST_F(CudaGraphTest, ReplaysFollowTheSeed) {
  const at::Tensor values = at::ones({1000}, Options());
  at::Tensor dropped;
  const auto drop = [&] { dropped = at::dropout(values, 0.5, true); };
  Seed(11);
  drop();
  const at::Tensor first = dropped.cpu();
  drop();
  const at::Tensor second = dropped.cpu();
  EXPECT_FALSE(first.equal(second));

  ASSERT_OK(Record(drop));
  for (int time = 0; time < 2; ++time) {
    Seed(11);
    graph_->Replay();
    EXPECT_TRUE(Equal(dropped, first));
    graph_->Replay();
    EXPECT_TRUE(Equal(dropped, second));
  }
}

TEST_F(CudaGraphTest, ReadIsRefused_AndTheGpuIsUsableAfterwards) {
  const at::Tensor values = at::ones({3}, Options());
  EXPECT_THAT(Record([&] { (void)values.sum().item<float>(); }),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("recorded work: "), HasSubstr("cannot be part of a CUDA graph"))));
  EXPECT_THROW(graph_->Replay(), c10::Error) << "nothing is recorded";
  EXPECT_EQ(values.sum().item<float>(), 3);
  EXPECT_NE(at::dropout(at::ones({1000}, Options()), 0.5, true).sum().item<float>(), 1000);
  ExpectRecordsAndReplays();
}

TEST_F(CudaGraphTest, ErrorsOfTheWorkEndTheRecording) {
  const at::Tensor values = at::zeros({2}, Options());
  EXPECT_THAT(Record([&] { (void)values.mm(values); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("must be a matrix")));
  EXPECT_THAT(graph_->Record([] { return absl::AbortedError("stopped"); }),
              StatusIs(absl::StatusCode::kAborted, "stopped"));
  EXPECT_THROW(graph_->Replay(), c10::Error) << "nothing is recorded";
  ExpectRecordsAndReplays();
}

TEST_F(CudaGraphTest, OtherThreadsMayWaitForTheGpuMeanwhile) {
  const at::Tensor values = at::zeros({2}, Options());
  float read = 0;
  ASSERT_OK(Record([&] {
    std::thread([&] { read = at::full({1000}, 2.0, Options()).sum().item<float>(); }).join();
    values.add_(1);
  }));
  EXPECT_EQ(read, 2000);
  graph_->Replay();
  EXPECT_TRUE(Equal(values, at::full({2}, 2.0)));
}

TEST_F(CudaGraphTest, RecordingsDoNotNest) {
  const std::unique_ptr<DeviceGraph> other = MakeGraph();
  const at::Tensor values = at::zeros({2}, Options());
  EXPECT_OK(Record([&] {
    EXPECT_THAT(other->Record([] { return absl::OkStatus(); }),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another recording")));
    values.add_(1);
  }));
  EXPECT_TRUE(Equal(values, at::ones({2})));
}

}  // namespace
}  // namespace ssl
