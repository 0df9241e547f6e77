// SPDX-License-Identifier: Apache-2.0
//
// The restricted unpickler of torch_file.h: bytes to a tree of plain data and tensors. Private to ssl/io.
//
// Pickle is a stack machine whose instruction REDUCE calls any function of any module. This one calls the few of
// torch_objects.h; for everything else it puts an object that has a name and nothing more. Limits: 16 MiB for each
// pickle, and 400,000 instructions for all of a file, each of which makes at most one value. Not thread-safe.

#ifndef SSL_IO_TORCH_PICKLE_H_
#define SSL_IO_TORCH_PICKLE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/io/torch_objects.h"
#include "ssl/io/torch_value.h"

namespace ssl {

// Takes one pickle off the front of `bytes`, up to its STOP. The tree is one that CheckTorchTree accepts; texts are
// views of `bytes`; tensors get their bytes from BindTorchTensors. Errors (kDataLoss, kUnimplemented) name no file.
absl::StatusOr<const TorchValue*> TakePickle(absl::string_view* bytes, TorchObjects* objects);

}  // namespace ssl

#endif  // SSL_IO_TORCH_PICKLE_H_
