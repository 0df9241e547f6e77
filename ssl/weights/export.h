// SPDX-License-Identifier: Apache-2.0
//
// Writes a model's weights for other programs: as safetensors, or as a .pth that `torch.load` opens.
//
//   native        our names: trunk.layer1.0.conv1.weight, heads.0.clf.0.weight; everything is written
//   torchvision   layer1.0.conv1.weight: torchvision.models.resnet50().load_state_dict(...)
//   timm          timm.create_model("resnet50", checkpoint_path=...); equals torchvision's names for ResNets, and those
//                 of timm's vision transformers
//
// In torchvision's and timm's names, a model whose heads are one linear layer (an mlp with two dims) has it as
// fc.weight and fc.bias, of a vision transformer head.weight and head.bias; other heads have no place there and are
// left out, which the result says.

#ifndef SSL_WEIGHTS_EXPORT_H_
#define SSL_WEIGHTS_EXPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/model.h"
#include "ssl/io/file_system.h"
#include "ssl/io/safetensors.h"

namespace ssl {

struct ExportOptions {
  std::string format = "torchvision";  // torchvision, timm or native
  // Written in this order; existing ones are replaced. *.safetensors, or *.pth, *.pt and *.torch for torch.save's
  // format.
  std::vector<std::string> files;
};

struct ExportedFile {
  std::string path;
  int64_t tensors = 0;
  int64_t bytes = 0;  // of the file
};

struct ExportResult {
  std::vector<ExportedFile> files;
  std::vector<std::string> left_out;  // our names of what the format has no place for
};

// The model's tensors under the names of `format`: live ones, not copies; `left_out` gets the rest. InvalidArgument for
// an unknown format or a trunk that the format has no names for, with what is known.
absl::StatusOr<std::vector<NamedTensor>> ExportedTensors(Model& model, const std::string& format,
                                                         std::vector<std::string>* left_out);

// InvalidArgument for the name of a file with another suffix than those.
absl::Status CheckExportName(const std::string& file);

// Each file is replaced as a whole or stays as it was. InvalidArgument for another suffix, before anything is written.
absl::StatusOr<ExportResult> ExportWeights(FileSystem& file_system, Model& model, const ExportOptions& options);

}  // namespace ssl

#endif  // SSL_WEIGHTS_EXPORT_H_
