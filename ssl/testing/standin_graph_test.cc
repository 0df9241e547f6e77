// SPDX-License-Identifier: Apache-2.0
//
// A recording of the stand-in device does again what a GPU's would, and no more: what the host decided is baked in.
#include "ssl/testing/standin_graph.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/node.h"
#include "ssl/core/device_graph.h"
#include "ssl/core/registries.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Tensors = std::vector<at::Tensor>;

at::Tensor OnDevice(const at::Tensor& tensor) { return tensor.to(StandinDevice::device()); }

at::TensorOptions Options() { return at::TensorOptions().device(StandinDevice::device()).dtype(at::kFloat); }

void Seed(uint64_t seed) {
  for (const at::Device device : {at::Device(at::kCPU), StandinDevice::device()}) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(seed);
  }
}

bool Equal(const at::Tensor& one, const at::Tensor& other) { return one.to(at::kCPU).equal(other.to(at::kCPU)); }

// Convolution, batch norm and a classifier, with SGD and momentum, on the device.
class Network {
 public:
  Network() {
    Seed(3);
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{8, 3, 3, 3}, {5, 8}, {5}, {8}, {8}}) {
      parameters_.push_back(OnDevice(at::randn(sizes).mul(0.3)).requires_grad_());
      momenta_.push_back(at::zeros(sizes, Options()));
    }
    mean_ = at::zeros({8}, Options());
    variance_ = at::ones({8}, Options());
  }

  // One update; returns the loss, without its graph. images: [N, 3, H, W]; labels: [N]; rate: a number of the host or a
  // tensor of the device.
  template <class Rate>
  at::Tensor Update(const at::Tensor& images, const at::Tensor& labels, const Rate& rate) {
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    const at::Tensor loss = Loss(images, labels);
    loss.backward();
    Tensors gradients;
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    const at::NoGradGuard no_grad;
    at::_fused_sgd_(parameters_, gradients, momenta_, /*weight_decay=*/1e-4, /*momentum=*/0.9, rate, /*dampening=*/0,
                    /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false);
    return loss.detach();
  }

  at::Tensor Loss(const at::Tensor& images, const at::Tensor& labels) {
    at::Tensor map = at::conv2d(images, parameters_[0], {}, 2, 1);
    map = at::batch_norm(map, parameters_[3], parameters_[4], mean_, variance_, true, 0.1, 1e-5, false).relu();
    const at::Tensor scores = at::linear(map.mean({2, 3}), parameters_[1], parameters_[2]);
    return at::nll_loss(at::log_softmax(scores, 1), labels);
  }

  Tensors State() const {
    Tensors state = parameters_;
    state.insert(state.end(), momenta_.begin(), momenta_.end());
    state.insert(state.end(), {mean_, variance_});
    return state;
  }

 private:
  Tensors parameters_;
  Tensors momenta_;
  at::Tensor mean_;
  at::Tensor variance_;
};

class StandinGraphTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { InstallTensorMemory(); }

  void SetUp() override {
    ASSERT_OK(RegisterStandinGraph(&registries_));
    graph_ = MakeGraph();
    Seed(7);
  }

  std::unique_ptr<DeviceGraph> MakeGraph() {
    const ConfigNode params = ConfigNode::Map();
    const BuildContext context{params, registries_, *communicator_};
    absl::StatusOr<std::unique_ptr<DeviceGraph>> graph = registries_.device_graphs.Make("standin", params, context);
    EXPECT_OK(graph);
    return *std::move(graph);
  }

  absl::Status Record(const std::function<void()>& work) { return Record(graph_.get(), work); }

  static absl::Status Record(DeviceGraph* graph, const std::function<void()>& work) {
    return graph->Record([&] {
      work();
      return absl::OkStatus();
    });
  }

  Registries registries_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  std::unique_ptr<DeviceGraph> graph_;
};

TEST_F(StandinGraphTest, HasTheNameOfItsDevice) {
  EXPECT_THAT(registries_.device_graphs.Names(),
              ElementsAre(c10::DeviceTypeName(StandinDevice::device().type(), true)));
  EXPECT_THAT(RegisterStandinGraph(&registries_), HasCode(absl::StatusCode::kAlreadyExists));
}

TEST_F(StandinGraphTest, UpdatesAreThoseWithoutARecording) {
  Network eager;
  Network recorded;
  const at::Tensor images = at::empty({6, 3, 12, 12}, Options());
  const at::Tensor labels = at::empty({6}, Options().dtype(at::kLong));
  const at::Tensor rate = at::empty({}, Options());
  at::Tensor loss;
  for (int update = 0; update < 5; ++update) {
    images.copy_(at::randn(images.sizes()));
    labels.copy_(at::randint(5, {6}, at::kLong));
    rate.fill_(0.1 / (update + 1));
    const at::Tensor expected = eager.Update(images, labels, rate);
    const TransferLog log;
    if (update == 0) {
      ASSERT_OK(Record([&] { loss = recorded.Update(images, labels, rate); }));
    } else {
      graph_->Replay();
    }
    EXPECT_THAT(log.reads(), IsEmpty());
    EXPECT_TRUE(Equal(loss, expected)) << "update " << update;
    const Tensors states = recorded.State();
    const Tensors expected_states = eager.State();
    for (size_t i = 0; i < states.size(); ++i) EXPECT_TRUE(Equal(states[i], expected_states[i])) << update << " " << i;
  }
  EXPECT_FALSE(Equal(recorded.State().back(), at::ones({8}))) << "running variances did not move";
}

TEST_F(StandinGraphTest, ReplaysFollowTheGenerator) {
  const at::Tensor values = at::ones({64}, Options());
  at::Generator own = at::globalContext().getAcceleratorHooksInterface(values.device().type()).getNewGenerator(0);
  at::Tensor dropped;
  at::Tensor drawn;
  const auto draw = [&] {
    dropped = at::dropout(values, 0.5, true);
    drawn = at::bernoulli(values.mul(0.5), own);
  };
  own.set_current_seed(1);
  Seed(11);
  draw();
  const Tensors expected = {dropped, drawn};
  draw();
  const Tensors next = {dropped, drawn};

  ASSERT_OK(Record(draw));
  own.set_current_seed(1);
  Seed(11);
  for (const Tensors& numbers : {expected, next}) {
    graph_->Replay();
    EXPECT_TRUE(Equal(dropped, numbers[0]));
    EXPECT_TRUE(Equal(drawn, numbers[1]));
  }
  EXPECT_FALSE(Equal(expected[0], next[0]));
  EXPECT_FALSE(Equal(expected[1], next[1]));
}

TEST_F(StandinGraphTest, NumbersOfTheHostAreBakedIn) {
  Network eager;
  Network recorded;
  const at::Tensor images = OnDevice(at::randn({6, 3, 12, 12}));
  const at::Tensor labels = OnDevice(at::arange(6).remainder(5));
  double rate = 0.1;
  at::Tensor loss;
  ASSERT_OK(Record([&] { loss = recorded.Update(images, labels, rate); }));
  (void)eager.Update(images, labels, rate);
  rate = 0.5;
  graph_->Replay();
  EXPECT_TRUE(Equal(loss, eager.Update(images, labels, rate))) << "the update before had the rate";
  graph_->Replay();
  EXPECT_FALSE(Equal(loss, eager.Update(images, labels, rate)));
}

TEST_F(StandinGraphTest, ValuesBranchesAndOtherTensorsOfTheHostAreBakedIn) {
  const at::Tensor factor = at::full({}, 2.0);
  at::Tensor values = at::ones({3}, Options());
  bool negate = false;
  at::Tensor result;
  ASSERT_OK(Record([&] {
    result = values.mul(factor);
    if (negate) result = result.neg();
  }));
  const at::Tensor recorded_values = values;
  factor.fill_(5);
  negate = true;
  values = at::full({3}, 7, Options());
  graph_->Replay();
  EXPECT_TRUE(Equal(result, at::full({3}, 2.0)));
  recorded_values.fill_(3);
  graph_->Replay();
  EXPECT_TRUE(Equal(result, at::full({3}, 6.0)));
}

// Each with the layout that the kernel of the CPU gives it.
Tensors EachKindOfResult(const at::Tensor& image, const at::Tensor& matrix, at::Tensor grown, const at::Tensor& tall) {
  at::Tensor filled = at::empty({0}, Options());
  at::mm_out(filled, matrix, matrix);
  grown.copy_(matrix).resize_({6, 4});
  tall.select(0, 1).add_(matrix.select(0, 0));
  Tensors results = at::_foreach_norm({image, matrix}, 2);
  results.insert(results.end(), {filled, grown.slice(0, 0, 4), tall, matrix.slice(0, 0, 0).mul(2),
                                 image.contiguous(at::MemoryFormat::ChannelsLast).relu(), matrix.t().exp(),
                                 at::cat({matrix, tall}), matrix.to(at::kBFloat16), matrix.sum()});
  return results;
}

TEST_F(StandinGraphTest, EachKindOfResultIsMadeAgain) {
  const at::Tensor image = OnDevice(at::randn({2, 3, 4, 4}));
  const at::Tensor matrix = OnDevice(at::randn({4, 4}));
  const at::Tensor grown = matrix.clone();
  const at::Tensor tall = at::zeros({2, 4}, Options());
  Tensors results;
  ASSERT_OK(Record([&] { results = EachKindOfResult(image, matrix, grown, tall); }));
  image.copy_(at::randn({2, 3, 4, 4}));
  matrix.copy_(at::randn({4, 4}));
  tall.fill_(4);
  const Tensors expected = EachKindOfResult(image, matrix, results[3].clone(), tall.clone());
  graph_->Replay();
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(results[i].sizes(), expected[i].sizes()) << i;
    EXPECT_EQ(results[i].strides(), expected[i].strides()) << i;
    EXPECT_TRUE(Equal(results[i], expected[i])) << i;
  }
}

TEST_F(StandinGraphTest, ReadsAndUploadsAreRefusedByName) {
  const at::Tensor values = OnDevice(at::arange(3, at::kFloat));
  const at::Tensor host = at::ones({3});
  const std::vector<std::pair<std::string, std::function<void()>>> cases = {
      {"aten::_local_scalar_dense", [&] { (void)values.sum().item<float>(); }},
      {"copy to the host of Float [3]", [&] { (void)values.to(at::kCPU); }},
      {"aten::nonzero", [&] { (void)values.nonzero(); }},
      {"synchronize device",
       [] { c10::impl::getDeviceGuardImpl(StandinDevice::device().type())->synchronizeDevice(0); }},
      {"aten::equal", [&] { (void)values.equal(values); }},
      {"copy to the device of Float [3]", [&] { (void)OnDevice(host); }},
      {"copy to the device of Float [3]", [&] { values.copy_(host); }}};
  for (const auto& [name, work] : cases) {
    EXPECT_THAT(Record(work), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'" + name + "'")));
    const auto caught = [&work = work] { (void)GuardTorch("work", [&] { return work(), absl::OkStatus(); }); };
    EXPECT_THAT(Record(caught), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'" + name + "'")));
    EXPECT_THROW(graph_->Replay(), c10::Error) << "nothing is recorded";
    work();
  }
}

TEST_F(StandinGraphTest, BackwardIsRecordedFromAutogradsThreads) {
  const at::Tensor values = OnDevice(at::arange(3, at::kFloat)).requires_grad_();
  std::thread::id thread;
  values.register_hook([&](const at::Tensor&) { thread = std::this_thread::get_id(); });
  ASSERT_OK(Record([&] { values.pow(3).sum().backward(); }));
  EXPECT_NE(thread, std::this_thread::get_id()) << "this test is not about threads any more";
  values.detach().fill_(2);
  graph_->Replay();
  EXPECT_TRUE(Equal(values.grad(), at::full({3}, 12.0)));
  EXPECT_THAT(Record([&] {
                const at::Tensor loss = values.pow(2).sum();
                loss.register_hook([](const at::Tensor& gradient) { (void)gradient.item<float>(); });
                loss.backward();
              }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("aten::_local_scalar_dense")));
}

TEST_F(StandinGraphTest, OtherThreadsAreNotRecorded) {
  const at::Tensor values = at::zeros({2}, Options());
  const at::Tensor others = at::zeros({2}, Options()).requires_grad_();
  const auto other = MakeGraph();
  ASSERT_OK(Record([&] {
    std::thread([&] {
      others.detach().copy_(at::ones({2}));
      EXPECT_OK(Record(other.get(), [&] { others.pow(2).sum().backward(); }));
    }).join();
    values.add_(1);
  }));
  graph_->Replay();
  EXPECT_TRUE(Equal(values, at::full({2}, 2.0)));
  others.detach().fill_(5);
  graph_->Replay();
  EXPECT_TRUE(Equal(others.grad(), at::full({2}, 2.0)));
  other->Replay();
  EXPECT_TRUE(Equal(others.grad(), at::full({2}, 10.0)));
}

TEST_F(StandinGraphTest, ErrorsEndTheRecording) {
  const at::Tensor values = at::zeros({2}, Options());
  EXPECT_THAT(Record([&] {
                values.add_(1);
                (void)values.mm(values);
              }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("must be a matrix")));
  EXPECT_THAT(graph_->Record([&] {
    values.add_(1);
    return absl::AbortedError("stopped");
  }),
              StatusIs(absl::StatusCode::kAborted, "stopped"));
  EXPECT_THROW(graph_->Replay(), c10::Error) << "nothing is recorded";
  (void)values.to(at::kCPU);
  ASSERT_OK(Record([&] { values.add_(10); }));
  graph_->Replay();
  EXPECT_TRUE(Equal(values, at::full({2}, 22.0)));
}

TEST_F(StandinGraphTest, RecordingsDoNotNest) {
  const at::Tensor values = at::zeros({2}, Options());
  const auto other = MakeGraph();
  ASSERT_OK(Record(other.get(), [&] { values.add_(1); }));
  EXPECT_THAT(Record([&] { other->Replay(); }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("replay of a recording")));
  EXPECT_OK(Record([&] {
    EXPECT_THAT(Record(other.get(), [] {}),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another recording")));
  }));
}

TEST_F(StandinGraphTest, MemoryIsFreedAndTheAutogradGraphBefore) {
  Network network;
  const at::Tensor images = OnDevice(at::randn({64, 3, 64, 64}));
  const at::Tensor labels = OnDevice(at::arange(64).remainder(5));
  const at::Tensor rate = at::full({}, 0.1, Options());
  (void)network.Update(images, labels, rate);
  const int64_t before = GetTensorMemory().in_use;
  std::optional<c10::weak_intrusive_ptr<c10::TensorImpl>> loss;
  ASSERT_OK(Record([&] {
    (void)network.Update(images, labels, rate);
    const at::Tensor held = network.Loss(images.clone(), labels);
    EXPECT_NE(held.grad_fn(), nullptr);
    loss.emplace(held.getIntrusivePtr());
  }));
  EXPECT_TRUE(loss->expired());
  EXPECT_GT(GetTensorMemory().in_use, before + images.nbytes());
  graph_->Replay();
  graph_.reset();
  EXPECT_EQ(GetTensorMemory().in_use, before);
}

}  // namespace
}  // namespace ssl
