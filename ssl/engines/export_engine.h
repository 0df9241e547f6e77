// SPDX-License-Identifier: Apache-2.0
//
// engine_name=export: writes the trained network's weights for other programs (ssl/weights/export.h tells the formats).
// Results: {"export": {"<file name>": path}}.
#ifndef SSL_ENGINES_EXPORT_ENGINE_H_
#define SSL_ENGINES_EXPORT_ENGINE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/engines/engine.h"

namespace ssl {

// The section EXPORT; all keys are ours.
struct ExportEngineOptions : Options {
  std::string format = "torchvision";
  std::vector<std::string> files = {"model.safetensors", "model.pth"};
  std::string output_dir;  // "": <run directory>/export
  void VisitFields(FieldVisitor& visitor) override;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeExportEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_EXPORT_ENGINE_H_
