// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/cuda_graph.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/DeviceType.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <tuple>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/node.h"
#include "ssl/core/device_graph.h"
#include "ssl/core/registries.h"

namespace ssl {
namespace {

using c10::cuda::CUDAStream;

void WaitFor(const CUDAStream& before, const CUDAStream& after) {
  at::cuda::CUDAEvent event;
  event.record(before);
  event.block(after);
}

// LibTorch keeps what cuBLAS works in, for each stream, until the end of the process. What it has made on that of a
// capture is the graph's memory, which could not be given back as long as anything is kept there.
void ForgetWorkspaces(const CUDAStream& stream) {
  for (at::cuda::WorkspaceMapWithMutex* kept :
       {&at::cuda::cublas_handle_stream_to_workspace(), &at::cuda::cublaslt_handle_stream_to_workspace()}) {
    const std::unique_lock<std::shared_mutex> lock(kept->mutex);
    for (auto entry = kept->map.begin(); entry != kept->map.end();) {
      entry = std::get<1>(entry->first) == stream.stream() ? kept->map.erase(entry) : std::next(entry);
    }
  }
}

// LibTorch's graph, which leaves allocator and generator in the capture when a failed operation has ended it: its
// capture_end throws before it tells them.
class CapturedGraph final : public at::cuda::CUDAGraph {
 public:
  // On the current stream, which is not the default one. What CUDA forbids during a capture, such as waiting, it
  // forbids this thread: the loader's and NCCL's do it all the time. The default generator is registered by LibTorch.
  absl::Status Capture(const std::function<absl::Status()>& work) {
    absl::Status status = Guarded("beginning of the recording", [this] {
      capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    });
    if (status.ok()) status = GuardTorch("recorded work", work);
    if (status.ok()) status = Guarded("end of the recording", [this] { capture_end(); });
    if (!status.ok() && !capture_ended_) Abandon();
    return status;
  }

 private:
  static absl::Status Guarded(absl::string_view what, absl::FunctionRef<void()> call) {
    return GuardTorch(what, [&] {
      call();
      return absl::OkStatus();
    });
  }

  // As capture_end, but for the graph. Errors are those of what ended the capture; a part of this may be done already.
  void Abandon() {
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(capture_stream_, &graph) == cudaSuccess) C10_CUDA_CHECK_WARN(cudaGraphDestroy(graph));
    (void)cudaGetLastError();
    Guarded("", [this] {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(capture_dev_, mempool_id_);
    }).IgnoreError();
    Guarded("", [this] { at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(mempool_id_); }).IgnoreError();
    for (const auto& [state, increment] : captured_generator_states_) state->capturing_ = false;
    capture_ended_ = capture_dev_ != UNDEFINED_DEVICE;  // so that the destructor gives the memory back
  }
};

// That an operation cannot be captured, only CUDA's words say. They lack its name.
absl::Status Explained(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInternal || !absl::StrContains(status.message(), "captur")) return status;
  return absl::FailedPreconditionError(
      absl::StrCat(status.message(), ": something in the work waits for the GPU, or cannot be part of a CUDA graph; ",
                   "the stand-in device of the tests says what (docs/devices.md)"));
}

class CudaGraph final : public DeviceGraph {
 public:
  absl::Status Record(const std::function<absl::Status()>& work) override {
    graph_.reset();
    return Explained(GuardTorch("CUDA graph", [&]() -> absl::Status {
      if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) {
        return absl::FailedPreconditionError("Record inside the work of another recording");
      }
      SSL_ASSIGN_OR_RETURN(graph_, Captured(work));
      graph_->replay();
      return absl::OkStatus();
    }));
  }

  void Replay() override {
    TORCH_CHECK(graph_ != nullptr, "CUDA graph: nothing is recorded");
    graph_->replay();
  }

  // An update in full takes about what the recording has.
  bool HasRoomBeside() const override {
    size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    const Memory memory = MemoryNow();
    return static_cast<int64_t>(free) + memory.reserved - memory.allocated - own_bytes_ >= own_bytes_;
  }

 private:
  absl::StatusOr<std::unique_ptr<CapturedGraph>> Captured(const std::function<absl::Status()>& work) {
    // A graph allocates from memory of its own, and would find none beside what is cached.
    c10::cuda::CUDACachingAllocator::emptyCache();
    const CUDAStream current = c10::cuda::getCurrentCUDAStream();
    // LibTorch hands out its streams in turn. Nobody else takes those of high priority, so that a loader's copies
    // cannot come between.
    if (!stream_.has_value()) stream_ = c10::cuda::getStreamFromPool(/*isHighPriority=*/true);
    auto graph = std::make_unique<CapturedGraph>();
    const int64_t reserved_before = MemoryNow().reserved;
    WaitFor(current, *stream_);
    absl::Status status;
    {
      const c10::cuda::CUDAStreamGuard guard(*stream_);
      status = graph->Capture(work);
    }
    // The generator's state on the GPU is written on that stream as well.
    status.Update(GuardTorch("CUDA graph", [&] {
      WaitFor(*stream_, current);
      return absl::OkStatus();
    }));
    ForgetWorkspaces(*stream_);
    SSL_RETURN_IF_ERROR(status);
    own_bytes_ = MemoryNow().reserved - reserved_before;
    return graph;
  }

  // Of LibTorch's allocator on the current device, in bytes: what it has of the GPU's, and what tensors have of that.
  struct Memory {
    int64_t reserved = 0;
    int64_t allocated = 0;
  };
  static Memory MemoryNow() {
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
    return {stats.reserved_bytes[kAll].current, stats.allocated_bytes[kAll].current};
  }

  std::optional<CUDAStream> stream_;
  int64_t own_bytes_ = 0;  // that the graph has reserved
  std::unique_ptr<CapturedGraph> graph_;
};

}  // namespace

absl::Status RegisterCudaGraph(Registries* registries) {
  return registries->device_graphs.Register(
      c10::DeviceTypeName(c10::DeviceType::CUDA, /*lower_case=*/true),
      [](const ConfigNode&, const BuildContext&) -> absl::StatusOr<std::unique_ptr<DeviceGraph>> {
        return std::make_unique<CudaGraph>();
      });
}

}  // namespace ssl
