// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/nccl_communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isnan.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/env.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/exchange_steps.h"
#include "ssl/distributed/reduce_rows.h"
#include "ssl/distributed/rendezvous.h"

namespace ssl {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;
using Operation = c10::intrusive_ptr<c10d::Work>;

// c10d's defaults end the process, from a thread of its own, when an operation fails or takes too long.
void KeepProcessAlive() {
  constexpr char kAbortConnectionsOnly[] = "2";
  c10::utils::set_env("TORCH_NCCL_ASYNC_ERROR_HANDLING", kAbortConnectionsOnly, /*overwrite=*/false);
  c10::utils::set_env("TORCH_NCCL_RETHROW_CUDA_ERRORS", "0", /*overwrite=*/false);
  c10::utils::set_env("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/false);
  c10::utils::set_env("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", /*overwrite=*/false);
  // A quarter of the time that c10d leaves for dumps before it aborts connections, and ranks stop waiting.
  c10::utils::set_env("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "0", /*overwrite=*/false);
}

// The groups of a communicator, its duplicates and its parts: when one has failed, all are out of use. Thread-safe.
class Groups {
 public:
  void Add(const Group& group) {
    const std::lock_guard<std::mutex> lock(mutex_);
    groups_.push_back(group);
  }

  // Returns Check().
  absl::Status Remove(const Group& group) {
    absl::Status status = Check();
    const std::lock_guard<std::mutex> lock(mutex_);
    groups_.erase(std::remove(groups_.begin(), groups_.end(), group), groups_.end());
    return status;
  }

  // What c10d's watchdog has found.
  absl::Status Check() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Group& group : groups_) {
      if (failure_.ok()) failure_ = FailureOf(*group);
    }
    return failure_;
  }

 private:
  static absl::Status FailureOf(c10d::ProcessGroupNCCL& group) {
    const c10d::ErrorType error = group.getError();
    if (error == c10d::ErrorType::SUCCESS) return absl::OkStatus();
    const bool late = error == c10d::ErrorType::TIMEOUT;
    const absl::Status status(
        late ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable,
        absl::StrCat("an operation over NCCL on rank ", group.getRank(), " of ", group.getSize(),
                     late ? absl::StrCat(" did not finish within ", group.getOptions()->timeout.count() / 1000, "s")
                          : " lost a connection",
                     ": NCCL_DEBUG=INFO in the environment of all ranks tells more"));
    return WithDetail(status, kDetailCause, kCausePeer);
  }

  std::mutex mutex_;
  std::vector<Group> groups_;
  absl::Status failure_;  // the first one
};

// An all-reduce that was given to a stream.
struct Reduction {
  at::Tensor tensor;
  at::Tensor flat;  // what is exchanged
  at::Tensor nan;   // for a maximum: where `flat` has one
  ReduceOp op = ReduceOp::kSum;
  std::vector<Operation> operations = {};
};

// None where an operation is on the current stream anyway.
void WaitOnStream(const Operation& operation) {
  if (operation != nullptr) operation->wait();
}

void Finish(Reduction& reduction, int64_t size) {
  for (const Operation& operation : reduction.operations) WaitOnStream(operation);
  if (reduction.nan.defined()) {
    reduction.flat.masked_fill_(reduction.nan.to(at::kBool), std::numeric_limits<double>::quiet_NaN());
  }
  Conclude(reduction.flat, reduction.op, size, reduction.tensor);
}

class StartedReduction : public Work {
 public:
  // begun: whether `reduction` was.
  StartedReduction(absl::Status begun, Reduction reduction, int64_t size, std::shared_ptr<Groups> groups)
      : begun_(std::move(begun)), reduction_(std::move(reduction)), size_(size), groups_(std::move(groups)) {}

  absl::Status Wait() override {
    SSL_RETURN_IF_ERROR(begun_);
    SSL_RETURN_IF_ERROR(GuardTorch(NameOf(reduction_.op), [this] {
      Finish(reduction_, size_);
      return absl::OkStatus();
    }));
    return groups_->Check();
  }

 private:
  const absl::Status begun_;
  Reduction reduction_;
  const int64_t size_;
  const std::shared_ptr<Groups> groups_;
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Rendezvous> rendezvous, std::unique_ptr<Communicator> control,
                   absl::Duration timeout, std::shared_ptr<Groups> groups)
      : rendezvous_(std::move(rendezvous)),
        control_(std::move(control)),
        timeout_(timeout),
        groups_(std::move(groups)) {}
  ~NcclCommunicator() override;

  int64_t rank() const override { return control_->rank(); }
  int64_t size() const override { return control_->size(); }

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override;
  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> ReduceScatter(const at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override;
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override;
  absl::Status Barrier() override;
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override;
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override;
  // Ranks of this host may learn of it by their timeout only: NCCL tells nobody who reads its memory.
  void Abort(const absl::Status& why) override;

 private:
  // This communicator's failure, or that of another one with the same groups.
  absl::Status Check();
  // Makes the group for the device of the first tensor.
  void Connect(at::Device device);
  // Gives an operation on `tensor` to the stream.
  absl::Status Run(absl::string_view name, const at::Tensor& tensor, absl::FunctionRef<void()> body);
  // own_stream: beside what the current stream does.
  Reduction Begin(at::Tensor& tensor, ReduceOp op, bool own_stream);
  Operation Exchange(const at::Tensor& flat, c10d::ReduceOp::RedOpType op, bool own_stream);
  absl::StatusOr<std::unique_ptr<Communicator>> MakeChild(const std::string& name,
                                                          std::unique_ptr<Communicator> control) const;

  const std::unique_ptr<Rendezvous> rendezvous_;  // of NCCL's
  const std::unique_ptr<Communicator> control_;
  const absl::Duration timeout_;
  const std::shared_ptr<Groups> groups_;
  Group group_;  // none before the first tensor of a GPU
  std::optional<at::Device> device_;
  absl::Status failure_;  // after Abort
  int64_t children_ = 0;
};

// The other ranks need what is still on the stream, so it ends first; c10d's watchdog limits that.
NcclCommunicator::~NcclCommunicator() {
  if (group_ == nullptr) return;
  const bool works = groups_->Remove(group_).ok();
  const absl::Status unused = GuardTorch("NCCL", [&] {
    const c10::cuda::CUDAGuard guard(*device_);
    if (works) c10::cuda::device_synchronize();
    group_->abort();  // never waits for other ranks, as shutdown() would
    return absl::OkStatus();
  });
}

void NcclCommunicator::Connect(at::Device device) {
  if (group_ != nullptr) return;
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = absl::ToChronoMilliseconds(timeout_);
  group_ =
      c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>("nccl", rendezvous_->store()),
                                                  static_cast<int>(rank()), static_cast<int>(size()), options);
  device_ = device;
  groups_->Add(group_);
}

absl::Status NcclCommunicator::Run(absl::string_view name, const at::Tensor& tensor, absl::FunctionRef<void()> body) {
  const std::string what = absl::StrCat(name, TypeAndShape(tensor), " over NCCL on rank ", rank(), " of ", size());
  const absl::Status status = GuardTorch(what, [&] {
    Connect(tensor.device());
    body();
    return absl::OkStatus();
  });
  // No memory before the operation was given to the stream: the others' is under way, and would meet the next one here.
  if (DetailOf(status, kDetailCause) == kCauseMemory) Abort(status);
  return status;
}

absl::Status NcclCommunicator::Check() {
  SSL_RETURN_IF_ERROR(failure_);
  return groups_->Check();
}

void NcclCommunicator::Abort(const absl::Status& why) {
  if (!failure_.ok()) return;
  failure_ = why;
  control_->Abort(why);
  if (group_ == nullptr) return;
  groups_->Remove(group_).IgnoreError();
  GuardTorch("NCCL", [&] {
    const c10::cuda::CUDAGuard guard(*device_);
    group_->abort();
    return absl::OkStatus();
  }).IgnoreError();
  group_.reset();
}

Operation NcclCommunicator::Exchange(const at::Tensor& flat, c10d::ReduceOp::RedOpType op, bool own_stream) {
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  options.asyncOp = own_stream;
  std::vector<at::Tensor> tensors = {flat};
  return group_->allreduce(tensors, options);
}

Reduction NcclCommunicator::Begin(at::Tensor& tensor, ReduceOp op, bool own_stream) {
  Reduction reduction{tensor, Flat(tensor, ReducedType(tensor.scalar_type()), tensor.device()), {}, op};
  const at::Tensor& flat = reduction.flat;
  if (flat.numel() == 0) return reduction;
  if (op != ReduceOp::kMax) {
    reduction.operations.push_back(Exchange(flat, c10d::ReduceOp::SUM, own_stream));
    return reduction;
  }
  if (flat.is_floating_point()) {
    // NCCL's maximum drops a NaN; at::amax keeps it.
    reduction.nan = flat.isnan().to(at::kByte);
    reduction.operations.push_back(Exchange(reduction.nan, c10d::ReduceOp::MAX, own_stream));
  }
  reduction.operations.push_back(Exchange(flat, c10d::ReduceOp::MAX, own_stream));
  return reduction;
}

absl::Status NcclCommunicator::AllReduce(at::Tensor& tensor, ReduceOp op) {
  SSL_RETURN_IF_ERROR(Check());
  if (!tensor.is_cuda()) return control_->AllReduce(tensor, op);
  return Run(NameOf(op), tensor, [&] {
    Reduction reduction = Begin(tensor, op, /*own_stream=*/false);
    Finish(reduction, size());
  });
}

std::unique_ptr<Work> NcclCommunicator::StartAllReduce(at::Tensor& tensor, ReduceOp op) {
  absl::Status begun = Check();
  if (begun.ok() && !tensor.is_cuda()) return control_->StartAllReduce(tensor, op);
  Reduction reduction;
  reduction.op = op;
  if (begun.ok()) begun = Run(NameOf(op), tensor, [&] { reduction = Begin(tensor, op, /*own_stream=*/true); });
  return std::make_unique<StartedReduction>(std::move(begun), std::move(reduction), size(), groups_);
}

// As Gloo's: each rank adds the rows that are its own, in the order of the ranks.
absl::StatusOr<at::Tensor> NcclCommunicator::ReduceScatter(const at::Tensor& tensor, ReduceOp op) {
  SSL_RETURN_IF_ERROR(Check());
  if (!tensor.is_cuda()) return control_->ReduceScatter(tensor, op);
  SSL_RETURN_IF_ERROR(CheckRows(tensor));
  at::Tensor reduced;
  SSL_RETURN_IF_ERROR(Run(absl::StrCat("reduce-scatter as ", NameOf(op)), tensor, [&] {
    at::Tensor rows = at::empty(tensor.sizes(), tensor.options().requires_grad(false));
    if (rows.numel() > 0) {
      c10d::AllToAllOptions options;
      options.asyncOp = false;
      at::Tensor input = FlatBytes(tensor, tensor.device());
      at::Tensor output = FlatBytes(rows, tensor.device());
      std::vector<int64_t> equal_parts;
      WaitOnStream(group_->alltoall_base(output, input, equal_parts, equal_parts, options));
    }
    reduced = ReduceRows(rows, op);
  }));
  return reduced;
}

absl::StatusOr<at::Tensor> NcclCommunicator::AllGather(const at::Tensor& tensor) {
  SSL_RETURN_IF_ERROR(Check());
  if (!tensor.is_cuda()) return control_->AllGather(tensor);
  at::Tensor gathered;
  SSL_RETURN_IF_ERROR(Run("all-gather", tensor, [&] {
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape.insert(shape.begin(), size());
    gathered = at::empty(shape, tensor.options().requires_grad(false));
    if (gathered.numel() == 0) return;
    c10d::AllgatherOptions options;
    options.asyncOp = false;
    at::Tensor input = FlatBytes(tensor, tensor.device());
    at::Tensor output = FlatBytes(gathered, tensor.device());
    WaitOnStream(group_->_allgather_base(output, input, options));
  }));
  return gathered;
}

absl::Status NcclCommunicator::Broadcast(at::Tensor& tensor, int64_t root) {
  SSL_RETURN_IF_ERROR(Check());
  if (!tensor.is_cuda()) return control_->Broadcast(tensor, root);
  SSL_RETURN_IF_ERROR(CheckRoot(root, size()));
  return Run(absl::StrCat("broadcast from rank ", root), tensor, [&] {
    if (tensor.numel() == 0) return;
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.asyncOp = false;
    const at::Tensor flat = Flat(tensor, tensor.scalar_type(), tensor.device());
    std::vector<at::Tensor> bytes = {flat.view(at::kByte)};
    WaitOnStream(group_->broadcast(bytes, options));
    CopyBack(flat, tensor);
  });
}

absl::Status NcclCommunicator::Barrier() {
  SSL_RETURN_IF_ERROR(Check());
  return control_->Barrier();
}

absl::StatusOr<std::unique_ptr<Communicator>> NcclCommunicator::MakeChild(const std::string& name,
                                                                          std::unique_ptr<Communicator> control) const {
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Rendezvous> rendezvous,
                       rendezvous_->Child(name, control->rank(), control->size()));
  return std::make_unique<NcclCommunicator>(std::move(rendezvous), std::move(control), timeout_, groups_);
}

absl::StatusOr<std::unique_ptr<Communicator>> NcclCommunicator::Duplicate() {
  SSL_RETURN_IF_ERROR(Check());
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> control, control_->Duplicate());
  return MakeChild(absl::StrCat("nccl/duplicate/", children_++), std::move(control));
}

absl::StatusOr<std::unique_ptr<Communicator>> NcclCommunicator::Split(int64_t color) {
  SSL_RETURN_IF_ERROR(Check());
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> control, control_->Split(color));
  return MakeChild(absl::StrCat("nccl/split/", children_++, "/", color), std::move(control));
}

}  // namespace

bool HasNccl() { return true; }

absl::StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(const GlooOptions& options) {
  KeepProcessAlive();
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Rendezvous> rendezvous, Rendezvous::Open(options.rendezvous));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Rendezvous> for_control,
                       rendezvous->Child("control", options.rendezvous.rank, options.rendezvous.size));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> control, MakeGlooCommunicator(std::move(for_control), options));
  return std::make_unique<NcclCommunicator>(std::move(rendezvous), std::move(control), options.timeout,
                                            std::make_shared<Groups>());
}

}  // namespace ssl
