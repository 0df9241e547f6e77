// SPDX-License-Identifier: Apache-2.0
//
// Writes a state dict that Python opens with `torch.load(path)`, also with weights_only=True: a plain dict of tensors
// in the zip format of torch.save, each tensor contiguous, stored without compression and aligned to 64 bytes.
// Thread-safe; the tensors may not be changed by others meanwhile.
//
//   SSL_RETURN_IF_ERROR(WriteTorchFile(PosixFileSystem(), "resnet50.pth", {{"conv1.weight", weight}, ...}));

#ifndef SSL_IO_TORCH_WRITER_H_
#define SSL_IO_TORCH_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/io/file_system.h"
#include "ssl/io/safetensors.h"

namespace ssl {

// A reader or a crash sees the old file or the new: PATH.tmp-<pid>, fsync, rename, fsync of the directory. Values are
// streamed: beside the tensors, at most one copy of a non-contiguous or device tensor lives at a time. Equal input
// gives equal bytes. InvalidArgument names a tensor that is undefined, sparse, of a dtype outside the ten of
// torch_value.h, or named twice, and refuses files of 4 GiB and more (safetensors has no such limit).
absl::Status WriteTorchFile(FileSystem& file_system, const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace ssl

#endif  // SSL_IO_TORCH_WRITER_H_
