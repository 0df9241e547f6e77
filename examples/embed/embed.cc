// SPDX-License-Identifier: Apache-2.0
//
// SwAV inside another program: its own tensors, its own hook, 20 steps, no files.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/methods/swav/swav.h"

namespace {

constexpr int64_t kSteps = 20;
constexpr int64_t kBatchSize = 32;

// Whatever your program has: here, random pictures and a noisy copy of each as the second view.
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

// The same keys as in a configuration file; what is not set keeps its default.
ssl::ConfigNode Config() {
  ssl::ConfigNode head_arguments = ssl::ConfigNode::Map();
  head_arguments.Set("dims", ssl::ConfigNode::FromInts({64, 64, 32}));
  head_arguments.Set("num_clusters", ssl::ConfigNode::FromInts({16}));
  ssl::ConfigNode head = ssl::ConfigNode::List();
  head.Append(ssl::ConfigNode::FromString("swav_head"));
  head.Append(head_arguments);
  ssl::ConfigNode heads = ssl::ConfigNode::List();
  heads.Append(head);

  ssl::ConfigNode config = ssl::ConfigNode::Map();
  config.SetPath("CHECKPOINT.DIR", ssl::ConfigNode::FromString(""));
  config.SetPath("TEST_MODEL", ssl::ConfigNode::FromBool(false));
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", ssl::ConfigNode::FromInt(kBatchSize));
  config.SetPath("LOSS.name", ssl::ConfigNode::FromString("swav_loss"));
  config.SetPath("MODEL.HEAD.PARAMS", heads);
  config.SetPath("MODEL.TRUNK.RESNETS.DEPTH", ssl::ConfigNode::FromInt(18));
  config.SetPath("MODEL.TRUNK.RESNETS.STEM", ssl::ConfigNode::FromString("small"));
  config.SetPath("MODEL.TRUNK.RESNETS.WIDTH_MULTIPLIER", ssl::ConfigNode::FromDouble(0.125));
  config.SetPath("OPTIMIZER.num_epochs", ssl::ConfigNode::FromInt(1));
  config.SetPath("OPTIMIZER.param_schedulers.lr.name", ssl::ConfigNode::FromString("cosine"));
  config.SetPath("OPTIMIZER.param_schedulers.lr.start_value", ssl::ConfigNode::FromDouble(0.1));
  return config;
}

absl::Status Run() {
  ssl::Registries registries;
  SSL_RETURN_IF_ERROR(ssl::RegisterSwav(&registries));
  ssl::SessionOptions options;
  options.train_source = std::make_unique<TensorSource>();
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ssl::Session> session,
                       ssl::Session::Create(Config(), registries, std::move(options)));
  SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<LossPrinter>()));
  return session->Train().status();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
