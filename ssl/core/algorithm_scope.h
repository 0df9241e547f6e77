// SPDX-License-Identifier: Apache-2.0
//
// LibTorch computes on a GPU by the fastest algorithms, or by deterministic ones, which give the same bits each time
// (REPRODUCIBILITY.CUDDN_DETERMINISTIC). The choice is the process's: no session makes it. The program makes it once
// for all ranks and engines; a host program that sets the key makes it around its sessions.
//
//   const AlgorithmScope algorithms(/*deterministic=*/true);  // before anything computes on the GPU
#ifndef SSL_CORE_ALGORITHM_SCOPE_H_
#define SSL_CORE_ALGORITHM_SCOPE_H_

#include <ATen/Context.h>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/core_options.h"

namespace ssl {

// The choice while the scope lives; then LibTorch's flags are what they were. The CPU's algorithms stay as they are.
class AlgorithmScope {
 public:
  // Of the fastest convolutions, each is searched when its shape first comes. With deterministic algorithms, an
  // operation that has none is an error (ssl/base/torch_guard.h), and cuBLAS gets the workspace that it needs for them
  // from the environment, where that names none.
  explicit AlgorithmScope(bool deterministic);
  ~AlgorithmScope();
  AlgorithmScope(const AlgorithmScope&) = delete;
  AlgorithmScope& operator=(const AlgorithmScope&) = delete;

 private:
  struct Flags {
    bool searches = false;       // of cuDNN
    bool deterministic = false;  // of cuDNN
    bool deterministic_operations = false;
    bool only_warns = false;
    bool fills_new_memory = false;
  };

  static Flags Get();
  static void Set(const Flags& flags);

  const Flags were_;
};

// Convolutions of float32 round as their definition does while the scope lives (REPRODUCIBILITY.IEEE_CONVOLUTIONS):
// LibTorch's flag fp32_precision of convolutions, of the CPU and of CUDA, is "ieee", and no layer of ssl/models goes by
// Winograd's filtering. A host program may set the flag itself instead. Then the flag is what it was.
class IeeeConvolutionScope {
 public:
  IeeeConvolutionScope();
  ~IeeeConvolutionScope();
  IeeeConvolutionScope(const IeeeConvolutionScope&) = delete;
  IeeeConvolutionScope& operator=(const IeeeConvolutionScope&) = delete;

 private:
  const at::Float32Precision cpu_was_;
  const at::Float32Precision cuda_was_;
};

// True where the flag above is set for the CPU.
bool HasIeeeConvolutions();

// InvalidArgument, with the key, where a run on a GPU asks for deterministic algorithms and the
// environment gives cuBLAS another workspace.
absl::Status CheckCublasWorkspace(const TaskOptions& options, const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_CORE_ALGORITHM_SCOPE_H_
