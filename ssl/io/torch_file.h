// SPDX-License-Identifier: Apache-2.0
//
// Files of Python's torch.save, zip (since torch 1.6) and legacy: state dicts and checkpoints of other programs.
//
// They are pickles, programs that may call anything. This reader runs none: it knows plain data (None, bool, int,
// float, str, bytes, tuple, list, dict, OrderedDict, defaultdict, torch.Size), tensors and parameters. Of any other
// function or class, such as argparse.Namespace beside the weights, and of what it makes, it keeps the name and nothing
// more; a class like dict or list keeps its items. Tensors of other kinds (sparse, quantized) are refused. Values are
// limited in number and nesting, and every size is compared with the file before memory is allocated: a hostile file
// costs less than 64 MiB and a fraction of a second.
//
// The file is mapped and tensors are views of it, so that unused ones cost nothing but the check of their CRC-32
// (zip only: the legacy format has no checksums). It must not shrink meanwhile (ssl/io/mapped_file.h). Little endian
// only. Thread-safe; no LibTorch.
//
//   SSL_ASSIGN_OR_RETURN(const TorchFile file, ReadTorchFile("resnet50.pth"));
//   const TorchValue* weight = file.root->Find("conv1.weight");

#ifndef SSL_IO_TORCH_FILE_H_
#define SSL_IO_TORCH_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/io/file_system.h"
#include "ssl/io/torch_value.h"

namespace ssl {

// A read file. Copies are cheap and share `owner`, which keeps the tree and all bytes valid.
struct TorchFile {
  const TorchValue* root = nullptr;
  std::shared_ptr<const void> owner;
  std::vector<std::string> unknown;  // "module.name" of the functions and classes that are known by name alone
};

// kDataLoss for a damaged file, kUnimplemented, by name, for what is refused, file system errors as they are. Messages
// name the file and the place in it: "file a.pth: data.pkl: refuses global 'torch._utils._rebuild_qtensor'".
absl::StatusOr<TorchFile> ReadTorchFile(FileSystem& file_system, const std::string& path);
// Of the machine's file system.
absl::StatusOr<TorchFile> ReadTorchFile(const std::string& path);

}  // namespace ssl

#endif  // SSL_IO_TORCH_FILE_H_
