// SPDX-License-Identifier: Apache-2.0
//
// Weights from files of this and of other programs, as named tensors:
//
//   *.safetensors                    torchvision, timm, Hugging Face, our own export
//   *.pth *.pt *.torch *.tar ...     torch.save, zip or legacy, of VISSL and others (ssl/io/torch_file.h: no code runs)
//   a directory                      our checkpoint: step_<N>, or a run directory or its checkpoints/ (the newest
//   intact)
//
// The content decides between the two kinds of files, not the name. A safetensors file beside a checkpoint's manifest
// that lists it is checked against it. Tensors of files are read-only views of the mapped file; copying them into a
// model is the only copy. Those of directories are copies: the run may remove the checkpoint. Thread-safe.
//
//   SSL_ASSIGN_OR_RETURN(const WeightsFile weights, ReadWeightsFile(path, {"state_dict"}));

#ifndef SSL_WEIGHTS_WEIGHTS_FILE_H_
#define SSL_WEIGHTS_WEIGHTS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/io/file_system.h"
#include "ssl/io/safetensors.h"

namespace ssl {

// The key under which VISSL's checkpoints keep the model, the default of STATE_DICT_KEY_NAME.
inline constexpr char kClassyStateDictKey[] = "classy_state_dict";

struct WeightsFile {
  std::string origin;                // the file that was read, with the key inside it
  std::vector<NamedTensor> tensors;  // names are unique
  // "module.name" of functions and classes in the file whose objects are passed over (ssl/io/torch_file.h).
  std::vector<std::string> passed_over = {};
};

// key: where the state dict lies in a file of torch.save, from outside to inside; {} or {""} for the whole file. A part
// such as "a.b" is looked up as it is, then as a and b.
// - {"classy_state_dict"} takes base_model.model.{trunk,heads} below it, as "trunk.<name>" and "heads.<name>". A flat
//   file (name -> tensor) without that key is taken as it is.
// - Otherwise the dict there; dicts and lists inside it give names with dots; values that are no tensors are left out.
// - safetensors files and our checkpoints have no keys: only {}, {""} and the default are accepted.
// "module." (DataParallel) is removed when all names begin with it.
// NotFound for a key that the file does not have, with the keys under which it has tensors; kDataLoss and
// kUnimplemented as the readers say; InvalidArgument for a URL, and for a place without tensors.
absl::StatusOr<WeightsFile> ReadWeightsFile(FileSystem& file_system, const std::string& path,
                                            const std::vector<std::string>& key);
// Of the machine's file system.
absl::StatusOr<WeightsFile> ReadWeightsFile(const std::string& path, const std::vector<std::string>& key);

}  // namespace ssl

#endif  // SSL_WEIGHTS_WEIGHTS_FILE_H_
