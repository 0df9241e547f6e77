// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/algorithm_scope.h"

#include <c10/util/env.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

constexpr char kWorkspace[] = "CUBLAS_WORKSPACE_CONFIG";
// LibTorch knows these two for deterministic. The first is what it takes itself on an H100.
constexpr char kEightOfFourMib[] = ":4096:8";
constexpr char kEightOfSixteenKib[] = ":16:8";

at::Float32Precision ConvolutionPrecision(at::Float32Backend backend) {
  return at::globalContext().float32Precision(backend, at::Float32Op::CONV);
}

void SetConvolutionPrecision(at::Float32Backend backend, at::Float32Precision precision) {
  at::globalContext().setFloat32Precision(backend, at::Float32Op::CONV, precision);
}

// Returns the flag before: NONE where it gave way to the one of all operations, or of all backends.
at::Float32Precision ExchangeForIeee(at::Float32Backend backend) {
  const at::Float32Precision was = ConvolutionPrecision(backend);
  SetConvolutionPrecision(backend, at::Float32Precision::NONE);
  const bool is_inherited = ConvolutionPrecision(backend) == was;
  SetConvolutionPrecision(backend, at::Float32Precision::IEEE);
  return is_inherited ? at::Float32Precision::NONE : was;
}

}  // namespace

AlgorithmScope::Flags AlgorithmScope::Get() {
  const at::Context& torch = at::globalContext();
  return {torch.benchmarkCuDNN(), torch.deterministicCuDNN(), torch.deterministicAlgorithms(),
          torch.deterministicAlgorithmsWarnOnly(), torch.deterministicFillUninitializedMemory()};
}

void AlgorithmScope::Set(const Flags& flags) {
  at::Context& torch = at::globalContext();
  torch.setBenchmarkCuDNN(flags.searches);
  torch.setDeterministicCuDNN(flags.deterministic);
  torch.setDeterministicAlgorithms(flags.deterministic_operations, flags.only_warns);
  torch.setDeterministicFillUninitializedMemory(flags.fills_new_memory);
}

AlgorithmScope::AlgorithmScope(bool deterministic) : were_(Get()) {
  Flags flags;
  flags.searches = !deterministic;
  flags.deterministic = deterministic;
  flags.deterministic_operations = deterministic;
  // Nothing reads memory that nothing has written: filling it would only cost time.
  flags.fills_new_memory = false;
  if (deterministic) c10::utils::set_env(kWorkspace, kEightOfFourMib, /*overwrite=*/false);
  Set(flags);
}

AlgorithmScope::~AlgorithmScope() { Set(were_); }

IeeeConvolutionScope::IeeeConvolutionScope()
    : cpu_was_(ExchangeForIeee(at::Float32Backend::MKLDNN)), cuda_was_(ExchangeForIeee(at::Float32Backend::CUDA)) {}

IeeeConvolutionScope::~IeeeConvolutionScope() {
  SetConvolutionPrecision(at::Float32Backend::MKLDNN, cpu_was_);
  SetConvolutionPrecision(at::Float32Backend::CUDA, cuda_was_);
}

bool HasIeeeConvolutions() { return ConvolutionPrecision(at::Float32Backend::MKLDNN) == at::Float32Precision::IEEE; }

absl::Status CheckCublasWorkspace(const TaskOptions& options, const ConfigNode& config) {
  if (options.machine.device == "cpu" || !options.reproducibility.deterministic_convolutions) return absl::OkStatus();
  const std::optional<std::string> workspace = c10::utils::get_env(kWorkspace);
  if (!workspace.has_value() || *workspace == kEightOfFourMib || *workspace == kEightOfSixteenKib) {
    return absl::OkStatus();
  }
  const ConfigNode& key = *config.FindPath("REPRODUCIBILITY.CUDDN_DETERMINISTIC");
  return absl::InvalidArgumentError(
      absl::StrCat(key.location().ToString(), ": config.REPRODUCIBILITY.CUDDN_DETERMINISTIC is ", key.Describe(),
                   ", and the environment's ", kWorkspace, " is '", *workspace, "', expected ", kEightOfFourMib, ", ",
                   kEightOfSixteenKib, " or none: cuBLAS adds up in any order with another workspace"));
}

}  // namespace ssl
