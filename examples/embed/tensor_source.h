// SPDX-License-Identifier: Apache-2.0
//
// What the examples of this folder share: batches that a program makes itself, and a hook of its own.
#ifndef EXAMPLES_EMBED_TENSOR_SOURCE_H_
#define EXAMPLES_EMBED_TENSOR_SOURCE_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>

#include <cstdint>
#include <cstdio>

#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"

constexpr int64_t kSteps = 20;
constexpr int64_t kBatchSize = 32;

// Whatever your program has: here, random images and a noisy copy of each as the second view.
class TensorSource : public ssl::BatchSource {
 public:
  int64_t batches_per_epoch() const override { return kSteps; }
  int64_t dataset_size() const override { return kSteps * kBatchSize; }

  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    next_ = first_batch;
    return absl::OkStatus();
  }

  absl::StatusOr<const ssl::Batch*> Next() override {
    if (next_ == kSteps) return nullptr;
    ++next_;
    const at::Tensor images = at::randn({kBatchSize, 3, 16, 16});
    batch_.views = {images, images.add(at::randn_like(images), 0.1)};
    batch_.indices = at::arange(kBatchSize, at::kLong);
    return &batch_;
  }

 private:
  int64_t next_ = 0;
  ssl::Batch batch_;
};

// A hook is one class: it sees the step, never the trainer.
class LossPrinter : public ssl::Hook {
 public:
  absl::string_view name() const override { return "loss_printer"; }
  ssl::HookStage stage() const override { return ssl::HookStage::kReport; }
  absl::Status OnStep(ssl::StepContext& context) override {
    std::printf("step %2ld of %ld  loss %.4f\n", static_cast<long>(context.state.iteration),
                static_cast<long>(context.state.max_iterations), context.loss.item<double>());
    return absl::OkStatus();
  }
};

#endif  // EXAMPLES_EMBED_TENSOR_SOURCE_H_
