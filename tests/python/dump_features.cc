// SPDX-License-Identifier: Apache-2.0
//
// Writes what open_checkpoint.py compares with: features of a run's newest checkpoint for 16 fixed random images.
//
//   dump_features RUN_DIR FEATURES.safetensors
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/builtins.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/core_options.h"
#include "ssl/core/model.h"
#include "ssl/core/session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/io/safetensors.h"

namespace ssl {
namespace {

absl::Status Dump(const std::string& run_directory, const std::string& path) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterBuiltins(&registries));
  FileSystem& file_system = PosixFileSystem();
  const std::string config_path = absl::StrCat(run_directory, "/train_config.yaml");
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system.Read(config_path));
  SSL_ASSIGN_OR_RETURN(const ConfigNode root, ParseYaml(text, config_path, nullptr));
  SSL_ASSIGN_OR_RETURN(const ConfigNode config, ResolveConfig(*root.Find("config"), registries));
  SSL_ASSIGN_OR_RETURN(const TaskOptions options, ReadTaskOptions(config));

  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const BuildContext context{config, registries, *communicator, options.run.seed, run_directory, 0};
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                       registries.models.Make(options.model_name, *config.Find("MODEL"), context));
  SSL_RETURN_IF_ERROR(
      RestoreModel(absl::StrCat(run_directory, "/checkpoints"), file_system, *communicator, *model).status());
  model->SetTraining(false);
  const c10::InferenceMode inference;
  const at::Tensor images = at::randn({16, 3, 28, 28}, at::detail::createCPUGenerator(1), at::kFloat);
  const at::Tensor features = model->Features(images, {{"res5avg", {}, true}})[0].flatten(1);
  return WriteSafetensors(file_system, path, {{"images", images}, {"features", features}}, {}).status();
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: dump_features RUN_DIR FEATURES.safetensors\n";
    return 2;
  }
  const absl::Status status = ssl::GuardTorch("features", [&] { return ssl::Dump(argv[1], argv[2]); });
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 1;
}
