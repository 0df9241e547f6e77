// SPDX-License-Identifier: Apache-2.0
//
// Tensors in the safetensors format of Hugging Face (huggingface/safetensors), which Python
// reads with `safetensors.torch.load_file`. No code is ever executed from a file; what a file
// claims is checked against its size before memory is allocated. Functions are thread-safe;
// the tensors may not be changed by others while they are written.
//
//   SSL_ASSIGN_OR_RETURN(FileDigest digest,
//                        WriteSafetensors(file_system, path, {{"queue", queue}}, {}));
//   SSL_ASSIGN_OR_RETURN(SafetensorsContent content, ReadSafetensors(path));

#ifndef SSL_IO_SAFETENSORS_H_
#define SSL_IO_SAFETENSORS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Of a whole file, as MANIFEST.json stores it.
struct FileDigest {
  int64_t size = 0;  // bytes
  uint32_t crc32c = 0;
};

struct SafetensorsContent {
  std::vector<NamedTensor> tensors;  // on the CPU, contiguous, in the order of the header
  std::map<std::string, std::string> metadata;
};

// Writes, fsyncs and closes `path` (not atomically; the directory is not synced). Tensors of
// any device, strides and of the ten dtypes of safetensors_header.h are written bit by bit in
// row-major logical order, streamed: beside them, at most one non-contiguous or device tensor
// is copied at a time. The header keeps the given order; the data places wider dtypes first,
// so that each tensor is aligned to its value size. Equal input gives equal bytes.
// InvalidArgument names the tensor that is undefined, sparse or of another dtype.
absl::StatusOr<FileDigest> WriteSafetensors(FileSystem& file_system, const std::string& path,
                                            const std::vector<NamedTensor>& tensors,
                                            const std::map<std::string, std::string>& metadata);

// Reads a file. kDataLoss, naming the file and the tensor, for
// a file that breaks the format in any way; then nothing larger than its header was
// allocated. The format has no checksum of values: VerifyManifest finds flipped bits.
absl::StatusOr<SafetensorsContent> ReadSafetensors(FileSystem& file_system, const std::string& path);
// Of the machine's file system.
absl::StatusOr<SafetensorsContent> ReadSafetensors(const std::string& path);

}  // namespace ssl

#endif  // SSL_IO_SAFETENSORS_H_
