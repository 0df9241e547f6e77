// SPDX-License-Identifier: Apache-2.0
//
// A small run that trains by SimCLR, with the real parts: 3 updates an epoch, 20 epochs.
#ifndef SSL_ENGINES_TESTING_SIMCLR_RUN_H_
#define SSL_ENGINES_TESTING_SIMCLR_RUN_H_

#include <string>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/session.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/full_tune_run.h"
#include "ssl/methods/simclr/simclr.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {

class SimclrRun : public FullTuneRun {
 protected:
  void SetUp() override {
    FullTuneRun::SetUp();
    ASSERT_OK(RegisterSimclr(&registries_));
    Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "16");
    Set("DATA.TRAIN.TRANSFORMS",
        "[{name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [2], size_crops: [16], crop_scales: [[0.5, 1]]}, "
        "{name: ToTensor}]");
    Set("LOSS",
        "{name: multicrop_simclr_info_nce_loss, multicrop_simclr_info_nce_loss: {buffer_params: "
        "{embedding_dim: 16}}}");
    Set("OPTIMIZER.num_epochs", "20");
    Set("OPTIMIZER.param_schedulers", "{lr: {name: constant, value: 0.01}}");
    Set("CHECKPOINT.DIR", directory_);
    ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  }

  void Set(const std::string& path, const std::string& yaml) {
    config_.SetPath(path, ParseYaml(yaml, "override.yaml", nullptr).value());
  }

  absl::StatusOr<EngineReport> RunEngine(const std::string& name) {
    const BuildContext build{config_, registries_, *communicator_, 0, directory_, 0};
    SSL_ASSIGN_OR_RETURN(const auto engine, registries_.engines.Make(name, config_, build));
    EngineContext context = Context();
    return engine->Run(context);
  }
};

}  // namespace ssl

#endif  // SSL_ENGINES_TESTING_SIMCLR_RUN_H_
