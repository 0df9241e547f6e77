// SPDX-License-Identifier: Apache-2.0
//
// SwAV inside another program: its own tensors, its own hook, 20 steps, no files.
#include <cstdio>
#include <memory>
#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/core/session.h"
#include "ssl/methods/swav/swav.h"
#include "tensor_source.h"

namespace {

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
