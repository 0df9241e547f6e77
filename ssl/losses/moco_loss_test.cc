// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/moco_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/core/autocast.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// values[i][j] = sin(a i + b j + c).
at::Tensor Wave(int64_t rows, int64_t columns, double a, double b, double c) {
  const at::Tensor i = at::arange(rows, at::kDouble).unsqueeze(1);
  const at::Tensor j = at::arange(columns, at::kDouble).unsqueeze(0);
  return at::sin(i * a + j * b + c).to(at::kFloat);
}

at::Tensor Unit(const at::Tensor& rows) { return rows / rows.norm(2, 1, /*keepdim=*/true); }

struct Inputs {
  at::Tensor query = Wave(3, 5, 1, 2, 0.5);
  at::Tensor keys = Unit(Wave(3, 5, 1.1, 2.1, 0.4));
  at::Tensor queue = Unit(Wave(7, 5, 0.7, 1.3, 0.2));
};

// The formula of the header, number by number, in float64.
double NaiveLoss(const Inputs& inputs, double temperature) {
  const at::Tensor query = Unit(inputs.query.to(at::kDouble));
  const at::Tensor keys = inputs.keys.to(at::kDouble);
  const at::Tensor queue = inputs.queue.to(at::kDouble);
  const auto dot = [](const at::Tensor& x, const at::Tensor& y) { return (x * y).sum().item<double>(); };
  double loss = 0.0;
  for (int64_t b = 0; b < query.size(0); ++b) {
    const double own = std::exp(dot(query[b], keys[b]) / temperature);
    double all = own;
    for (int64_t j = 0; j < queue.size(0); ++j) all += std::exp(dot(query[b], queue[j]) / temperature);
    loss -= std::log(own / all) / static_cast<double>(query.size(0));
  }
  return loss;
}

TEST(MocoLoss, EqualsTheNaiveLoop) {
  const Inputs inputs;
  for (const double temperature : {0.07, 0.2, 1.0}) {
    ASSERT_OK_AND_ASSIGN(const at::Tensor loss, MocoLoss(inputs.query, inputs.keys, inputs.queue, temperature));
    EXPECT_NEAR(loss.item<double>(), NaiveLoss(inputs, temperature), 1e-5) << temperature;
    EXPECT_EQ(loss.dim(), 0);
  }
}

// Computed by hand in float64.
TEST(MocoLoss, KnownValue) {
  ASSERT_OK_AND_ASSIGN(const at::Tensor loss, MocoLoss(Wave(2, 3, 1, 2, 0.5), Unit(Wave(2, 3, 1.1, 2.1, 0.4)),
                                                       Unit(Wave(4, 3, 0.7, 1.3, 0.2)), 0.2));
  EXPECT_NEAR(loss.item<double>(), 0.853801, 2e-6);
}

TEST(MocoLoss, Gradient_IsTheSlopeOfTheNaiveLoop) {
  Inputs inputs;
  inputs.query.requires_grad_();
  ASSERT_OK_AND_ASSIGN(const at::Tensor loss, MocoLoss(inputs.query, inputs.keys, inputs.queue, 0.2));
  (loss * 3).backward();  // the gradient that arrives counts
  const at::Tensor gradient = inputs.query.grad();
  const at::Tensor query = inputs.query.detach();
  for (int64_t i = 0; i < query.numel(); ++i) {
    constexpr double kStep = 1e-3;
    Inputs moved;
    moved.query = query.clone();
    moved.query.view(-1)[i] += kStep;
    const double above = NaiveLoss(moved, 0.2);
    moved.query.view(-1)[i] -= 2 * kStep;
    const double slope = (above - NaiveLoss(moved, 0.2)) / (2 * kStep);
    EXPECT_NEAR(gradient.view(-1)[i].item<double>(), 3 * slope, 2e-3) << i;
  }
}

TEST(MocoLoss, KeysAndQueueThatChangeBeforeBackward_LeaveTheGradientAlone) {
  std::vector<at::Tensor> gradients;
  for (const bool change : {false, true}) {
    Inputs inputs;
    inputs.query.requires_grad_();
    ASSERT_OK_AND_ASSIGN(const at::Tensor loss, MocoLoss(inputs.query, inputs.keys, inputs.queue, 0.2));
    if (change) {
      inputs.keys.zero_();
      inputs.queue.zero_();
    }
    loss.backward();
    gradients.push_back(inputs.query.grad());
  }
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
}

TEST(MocoLoss, WithoutGradients_IsTheSameNumber) {
  Inputs inputs;
  inputs.query.requires_grad_();
  ASSERT_OK_AND_ASSIGN(const at::Tensor training, MocoLoss(inputs.query, inputs.keys, inputs.queue, 0.2));
  const at::NoGradGuard no_grad;
  ASSERT_OK_AND_ASSIGN(const at::Tensor evaluation, MocoLoss(inputs.query, inputs.keys, inputs.queue, 0.2));
  EXPECT_FALSE(evaluation.requires_grad());
  EXPECT_TRUE(at::equal(training.detach(), evaluation));
}

TEST(MocoLoss, Autocast_ChangesNothing) {
  std::vector<at::Tensor> gradients;
  for (const Autocast autocast : {Autocast::kOff, Autocast::kBFloat16}) {
    Inputs inputs;
    inputs.query.requires_grad_();
    const AutocastScope scope(autocast);
    ASSERT_OK_AND_ASSIGN(const at::Tensor loss, MocoLoss(inputs.query, inputs.keys, inputs.queue, 0.2));
    loss.backward();
    gradients.push_back(inputs.query.grad());
  }
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
}

TEST(MocoLoss, ShortTypes_AreComputedInFloat32) {
  Inputs inputs;
  inputs.query = inputs.query.to(at::kBFloat16).requires_grad_();
  ASSERT_OK_AND_ASSIGN(const at::Tensor loss, MocoLoss(inputs.query, inputs.keys, inputs.queue, 0.2));
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  loss.backward();
  EXPECT_EQ(inputs.query.grad().scalar_type(), at::kBFloat16);
}

TEST(MocoLoss, CertainQuery_HasAlmostNoLoss) {
  Inputs inputs;
  inputs.query = inputs.keys.clone();
  inputs.queue = inputs.keys.neg();
  ASSERT_OK_AND_ASSIGN(const at::Tensor loss, MocoLoss(inputs.query, inputs.keys, inputs.queue, 0.05));
  EXPECT_NEAR(loss.item<double>(), NaiveLoss(inputs, 0.05), 1e-6);
}

TEST(MocoLoss, OtherShapes_AreRefusedWithAllThree) {
  const Inputs inputs;
  const auto expect_refused = [](const at::Tensor& query, const at::Tensor& keys, const at::Tensor& queue,
                                 const char* text) {
    EXPECT_THAT(MocoLoss(query, keys, queue, 0.2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  expect_refused(inputs.query, inputs.keys.narrow(0, 0, 2), inputs.queue,
                 "queries have shape [3, 5], keys [2, 5] and the queue [7, 5], expected [B, D], [B, D], [K, D]");
  expect_refused(inputs.query, inputs.keys, inputs.queue.narrow(1, 0, 4), "the queue [7, 4]");
  expect_refused(inputs.query.view({3, 5, 1}), inputs.keys, inputs.queue, "queries have shape [3, 5, 1]");
  expect_refused(at::zeros({0, 5}), at::zeros({0, 5}), inputs.queue, "queries have shape [0, 5]");
}

}  // namespace
}  // namespace ssl
