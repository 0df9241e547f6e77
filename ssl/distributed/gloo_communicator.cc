// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/gloo_communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/record_function.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <functional>
#include <future>
#include <limits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/exchange_steps.h"
#include "ssl/distributed/network.h"
#include "ssl/distributed/operation_queue.h"
#include "ssl/distributed/reduce_rows.h"

namespace ssl {
namespace {

using Device = std::shared_ptr<gloo::transport::Device>;
using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

// For how long a rank whose operation has failed listens to what the others say, at most.
constexpr absl::Duration kLongestHearing = absl::Seconds(2);
constexpr absl::Duration kLongestTimeout = absl::Hours(7 * 24);
constexpr int64_t kOwnDescriptors = 8;  // of a communicator, beside a connection to each rank

// The exchange runs on the thread of the queue; the rest is for the thread that waits, which has the cores that
// LibTorch works with.
class StartedAllReduce : public Work {
 public:
  StartedAllReduce(std::future<absl::Status> exchange, at::Tensor flat, ReduceOp op, int64_t size, at::Tensor tensor)
      : exchange_(std::move(exchange)), flat_(std::move(flat)), op_(op), size_(size), tensor_(std::move(tensor)) {}

  absl::Status Wait() override {
    SSL_RETURN_IF_ERROR(exchange_.get());
    return GuardTorch(NameOf(op_), [this] {
      Conclude(flat_, op_, size_, tensor_);
      return absl::OkStatus();
    });
  }

 private:
  std::future<absl::Status> exchange_;
  const at::Tensor flat_;
  const ReduceOp op_;
  const int64_t size_;
  at::Tensor tensor_;
};

struct Operation {
  std::string text;   // for messages: name, ordinal number, type and shape
  std::string range;  // for profilers: without the number, so that it is the same in each step
};

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(std::unique_ptr<Rendezvous> rendezvous, GlooOptions options, Device device)
      : rendezvous_(std::move(rendezvous)), options_(std::move(options)), device_(std::move(device)) {}

  // Opens the connections. Collective.
  absl::Status Connect();

  int64_t rank() const override { return options_.rendezvous.rank; }
  int64_t size() const override { return options_.rendezvous.size; }

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override;
  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> ReduceScatter(const at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override;
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override;
  absl::Status Barrier() override;
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override;
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override;
  void Abort(const absl::Status& why) override;

 private:
  Operation NextOperation(absl::string_view name, const at::Tensor& tensor);
  // Runs the next operation on this thread, behind those that were started.
  absl::Status Run(absl::string_view name, const at::Tensor& tensor, absl::FunctionRef<void()> body);
  // Checks the operation, runs it, and puts an exception into words.
  absl::Status RunChecked(const Operation& operation, absl::FunctionRef<void()> body);
  absl::Status Run(const std::string& operation, absl::Duration timeout, absl::FunctionRef<absl::Status()> body);
  absl::Status CheckAgreement(const std::string& operation);
  // Ends the use of this communicator; returns failure_.
  absl::Status Leave(const std::string& operation, absl::StatusCode code, absl::string_view what,
                     absl::string_view why);

  // How long the others may take to tell what they were doing.
  absl::Duration Patience() const { return std::min(options_.timeout, kLongestHearing); }

  void Reduce(at::Tensor flat, c10d::ReduceOp::RedOpType op);
  void ReduceMax(at::Tensor flat);
  // Sum or maximum; the mean is a sum still.
  void Exchange(const at::Tensor& flat, ReduceOp op);
  absl::StatusOr<std::unique_ptr<Communicator>> MakeGroup(const std::string& name, int64_t rank, int64_t size) const;

  const std::unique_ptr<Rendezvous> rendezvous_;
  const GlooOptions options_;
  const Device device_;
  Group group_;           // none when an operation has failed, or after Abort
  absl::Status failure_;  // of that operation, or why
  int64_t operations_ = 0;
  int64_t children_ = 0;
  OperationQueue queue_;  // its thread uses the group and the failure while it has something to do
};

absl::Status GlooCommunicator::Connect() {
  SSL_RETURN_IF_ERROR(CheckDescriptors(size() + kOwnDescriptors));  // Gloo would wait for the timeout
  const absl::Duration timeout = options_.rendezvous.connect_timeout;
  return Run("connecting", timeout, [&] {
    auto options = c10d::ProcessGroupGloo::Options::create(absl::ToChronoMilliseconds(timeout));
    options->devices.push_back(device_);
    const SigpipeBlock for_threads_of_gloo;
    options->threads = 1;  // calls wait for their operation, so there is never a second one to run
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", rendezvous_->store()), static_cast<int>(rank()),
        static_cast<int>(size()), options);
    // No rank may close its connections while another one is still opening them.
    group_->barrier()->wait();
    return absl::OkStatus();
  });
}

absl::Status GlooCommunicator::Leave(const std::string& operation, absl::StatusCode code, absl::string_view what,
                                     absl::string_view why) {
  // Closed first: ranks that wait for this one learn of the failure now, and can answer the next call.
  group_.reset();
  const PeerReport known = rendezvous_->ExplainFailure(operation, Patience());
  const std::string event = absl::StrCat(operation, " on rank ", rank(), " of ", size(), " ", what);
  // Who is to blame comes first, and the words of Gloo last.
  failure_ = absl::Status(
      code, why.empty() ? absl::StrCat(event, ": ", known.text) : absl::StrCat(known.text, ": ", event, why));
  // After a connection broke, others may just be busy: nobody has waited for them long enough.
  if (absl::IsDeadlineExceeded(failure_)) failure_ = WithDetail(std::move(failure_), kDetailSilent, known.silent);
  return failure_;
}

absl::Status GlooCommunicator::Run(const std::string& operation, absl::Duration timeout,
                                   absl::FunctionRef<absl::Status()> body) {
  if (!failure_.ok()) return failure_;
  const absl::Time begin = absl::Now();
  const absl::Status status = GuardTorch("Gloo", body);
  // What is thrown while connecting or waiting is about other ranks: of Gloo's own types, or c10d's. Other errors of
  // LibTorch are about this rank's tensors.
  // No memory in the middle of an operation: the others wait in it, and cannot be met there any more.
  if (failure_.ok() && DetailOf(status, kDetailCause) == kCauseMemory) {
    group_.reset();
    failure_ = status;
  }
  const bool of_peers = group_ == nullptr || absl::StartsWith(DetailOf(status, kDetailException), "gloo::") ||
                        DetailOf(status, kDetailCause) == kCausePeer;
  if (status.ok() || !failure_.ok() || !of_peers) return status;
  const bool late = absl::Now() - begin >= timeout;
  failure_ = WithDetail(
      Leave(operation, late ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable,
            late ? absl::StrCat("did not finish within ", absl::FormatDuration(timeout)) : "lost a connection",
            absl::StrCat(" (", status.message(), ")")),
      kDetailCause, kCausePeer);
  return failure_;
}

Operation GlooCommunicator::NextOperation(absl::string_view name, const at::Tensor& tensor) {
  const std::string of_tensor = tensor.defined() ? TypeAndShape(tensor) : "";
  return {absl::StrCat(name, " ", operations_++, of_tensor), absl::StrCat(name, of_tensor)};
}

absl::Status GlooCommunicator::RunChecked(const Operation& operation, absl::FunctionRef<void()> body) {
  RECORD_USER_SCOPE(operation.range);
  return Run(operation.text, options_.timeout, [&] {
    if (options_.check_operations) SSL_RETURN_IF_ERROR(CheckAgreement(operation.text));
    body();
    return absl::OkStatus();
  });
}

absl::Status GlooCommunicator::Run(absl::string_view name, const at::Tensor& tensor, absl::FunctionRef<void()> body) {
  queue_.Drain();
  return RunChecked(NextOperation(name, tensor), body);
}

// The largest and, as the complement, the smallest hash of all ranks: equal when all ranks call the same.
absl::Status GlooCommunicator::CheckAgreement(const std::string& operation) {
  const auto hash = static_cast<int64_t>(std::hash<std::string>()(operation));
  at::Tensor bounds = at::full({2}, hash, at::kLong);
  int64_t* bound = bounds.mutable_data_ptr<int64_t>();
  bound[1] = ~hash;
  Reduce(bounds, c10d::ReduceOp::MAX);
  if (bound[0] == ~bound[1]) return absl::OkStatus();
  return Leave(operation, absl::StatusCode::kInternal, "met other operations on other ranks", "");
}

void GlooCommunicator::Reduce(at::Tensor flat, c10d::ReduceOp::RedOpType op) {
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  options.timeout = absl::ToChronoMilliseconds(options_.timeout);
  std::vector<at::Tensor> tensors = {std::move(flat)};
  group_->allreduce(tensors, options)->wait();
}

void GlooCommunicator::ReduceMax(at::Tensor flat) {
  if (!flat.is_floating_point()) return Reduce(flat, c10d::ReduceOp::MAX);
  // Gloo's maximum keeps or drops a NaN by the order of the ranks; at::amax always keeps it.
  const at::Tensor nan = flat.isnan().to(at::kByte);
  Reduce(nan, c10d::ReduceOp::MAX);
  Reduce(flat, c10d::ReduceOp::MAX);
  flat.masked_fill_(nan.to(at::kBool), std::numeric_limits<double>::quiet_NaN());
}

void GlooCommunicator::Exchange(const at::Tensor& flat, ReduceOp op) {
  if (flat.numel() == 0) return;
  op == ReduceOp::kMax ? ReduceMax(flat) : Reduce(flat, c10d::ReduceOp::SUM);
}

absl::Status GlooCommunicator::AllReduce(at::Tensor& tensor, ReduceOp op) {
  return Run(NameOf(op), tensor, [&] {
    const at::Tensor flat = Flat(tensor, ReducedType(tensor.scalar_type()), at::kCPU);
    Exchange(flat, op);
    Conclude(flat, op, size(), tensor);
  });
}

std::unique_ptr<Work> GlooCommunicator::StartAllReduce(at::Tensor& tensor, ReduceOp op) {
  at::Tensor flat;
  const absl::Status prepared = GuardTorch(NameOf(op), [&] {
    flat = Flat(tensor, ReducedType(tensor.scalar_type()), at::kCPU);
    return absl::OkStatus();
  });
  const SigpipeBlock for_the_thread_of_the_queue;
  std::future<absl::Status> exchange =
      queue_.Post([this, operation = NextOperation(NameOf(op), tensor), prepared, flat, op] {
        if (prepared.ok()) return RunChecked(operation, [&] { Exchange(flat, op); });
        return Run(operation.text, options_.timeout, [&] { return prepared; });
      });
  return std::make_unique<StartedAllReduce>(std::move(exchange), std::move(flat), op, size(), tensor);
}

// Each rank gets the rows that are its own and adds them itself: half of an all-reduce's traffic, and in the order of
// the ranks.
absl::StatusOr<at::Tensor> GlooCommunicator::ReduceScatter(const at::Tensor& tensor, ReduceOp op) {
  SSL_RETURN_IF_ERROR(CheckRows(tensor));
  at::Tensor reduced;
  SSL_RETURN_IF_ERROR(Run(absl::StrCat("reduce-scatter as ", NameOf(op)), tensor, [&] {
    at::Tensor rows = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).requires_grad(false));
    if (rows.numel() > 0) {
      c10d::AllToAllOptions options;
      options.timeout = absl::ToChronoMilliseconds(options_.timeout);
      at::Tensor input = FlatBytes(tensor, at::kCPU);
      at::Tensor output = FlatBytes(rows, at::kCPU);
      std::vector<int64_t> equal_parts;
      group_->alltoall_base(output, input, equal_parts, equal_parts, options)->wait();
    }
    reduced = ReduceRows(rows, op).to(tensor.device());
  }));
  return reduced;
}

absl::StatusOr<at::Tensor> GlooCommunicator::AllGather(const at::Tensor& tensor) {
  at::Tensor gathered;
  SSL_RETURN_IF_ERROR(Run("all-gather", tensor, [&] {
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape.insert(shape.begin(), size());
    gathered = at::empty(shape, tensor.options().device(at::kCPU).requires_grad(false));
    if (gathered.numel() > 0) {
      c10d::AllgatherOptions options;
      options.timeout = absl::ToChronoMilliseconds(options_.timeout);
      at::Tensor input = FlatBytes(tensor, at::kCPU);
      at::Tensor output = FlatBytes(gathered, at::kCPU);
      group_->_allgather_base(output, input, options)->wait();
    }
    gathered = gathered.to(tensor.device());
  }));
  return gathered;
}

absl::Status GlooCommunicator::Broadcast(at::Tensor& tensor, int64_t root) {
  SSL_RETURN_IF_ERROR(CheckRoot(root, size()));
  return Run(absl::StrCat("broadcast from rank ", root), tensor, [&] {
    if (tensor.numel() == 0) return;
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = absl::ToChronoMilliseconds(options_.timeout);
    const at::Tensor flat = Flat(tensor, tensor.scalar_type(), at::kCPU);
    std::vector<at::Tensor> bytes = {flat.view(at::kByte)};
    group_->broadcast(bytes, options)->wait();
    CopyBack(flat, tensor);
  });
}

absl::Status GlooCommunicator::Barrier() {
  return Run("barrier", at::Tensor(), [&] {
    if (options_.check_operations) return;  // all ranks have just answered
    c10d::BarrierOptions options;
    options.timeout = absl::ToChronoMilliseconds(options_.timeout);
    group_->barrier(options)->wait();
  });
}

absl::StatusOr<std::unique_ptr<Communicator>> GlooCommunicator::MakeGroup(const std::string& name, int64_t rank,
                                                                          int64_t size) const {
  GlooOptions options = options_;
  options.rendezvous.rank = rank;
  options.rendezvous.size = size;
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Rendezvous> rendezvous, rendezvous_->Child(name, rank, size));
  auto group = std::make_unique<GlooCommunicator>(std::move(rendezvous), std::move(options), device_);
  SSL_RETURN_IF_ERROR(group->Connect());
  return group;
}

absl::StatusOr<std::unique_ptr<Communicator>> GlooCommunicator::Duplicate() {
  SSL_RETURN_IF_ERROR(Barrier());
  return MakeGroup(absl::StrCat("duplicate/", children_++), rank(), size());
}

absl::StatusOr<std::unique_ptr<Communicator>> GlooCommunicator::Split(int64_t color) {
  SSL_ASSIGN_OR_RETURN(const at::Tensor colors, AllGather(at::full({1}, color, at::kLong)));
  const at::Tensor same = colors.view({-1}).eq(color);  // [size]: who is in the group
  const int64_t rank_in_group = same.slice(0, 0, rank()).sum().item<int64_t>();
  return MakeGroup(absl::StrCat("split/", children_++, "/", color), rank_in_group, same.sum().item<int64_t>());
}

void GlooCommunicator::Abort(const absl::Status& why) {
  queue_.Drain();  // what was started uses the group: for as long as it waits for other ranks, at most the timeout
  if (!failure_.ok()) return;
  group_.reset();
  failure_ = why;
  const std::string reason = absl::StrReplaceAll(why.message(), {{"\t", " "}, {"\n", " "}});  // one field of the record
  rendezvous_->ExplainFailure(absl::StrCat("no operation any more: ", reason), Patience());
}

absl::StatusOr<Device> MakeDevice(const GlooOptions& options) {
  SSL_RETURN_IF_ERROR(CheckDescriptors(options.rendezvous.size + kOwnDescriptors));  // what the store has left
  std::string address;
  if (options.interface.empty() && options.rendezvous.file.empty()) {
    SSL_ASSIGN_OR_RETURN(address, LocalAddressTowards(options.rendezvous.host));
  }
  const SigpipeBlock for_threads_of_gloo;
  Device device;
  SSL_RETURN_IF_ERROR(GuardTorch(absl::StrCat("Gloo at ", options.interface, address), [&] {
    if (!options.interface.empty()) {
      device = c10d::ProcessGroupGloo::createDeviceForInterface(options.interface);
    } else if (!address.empty()) {
      device = c10d::ProcessGroupGloo::createDeviceForHostname(address);
    } else {
      device = c10d::ProcessGroupGloo::createDefaultDevice();
    }
    return absl::OkStatus();
  }));
  return device;
}

absl::Status CheckOptions(const GlooOptions& options) {
  if (options.timeout <= absl::ZeroDuration() || options.timeout > kLongestTimeout) {
    return absl::InvalidArgumentError(absl::StrCat("timeout of collective operations is ",
                                                   absl::FormatDuration(options.timeout),
                                                   ", expected more than 0 and at most a week"));
  }
  return options.interface.empty() ? absl::OkStatus() : CheckInterface(options.interface);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeGlooCommunicator(const GlooOptions& options) {
  SSL_RETURN_IF_ERROR(CheckOptions(options));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Rendezvous> rendezvous, Rendezvous::Open(options.rendezvous));
  return MakeGlooCommunicator(std::move(rendezvous), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> MakeGlooCommunicator(std::unique_ptr<Rendezvous> rendezvous,
                                                                   const GlooOptions& options) {
  SSL_RETURN_IF_ERROR(CheckOptions(options));
  SSL_ASSIGN_OR_RETURN(Device device, MakeDevice(options));
  auto communicator = std::make_unique<GlooCommunicator>(std::move(rendezvous), options, std::move(device));
  SSL_RETURN_IF_ERROR(communicator->Connect());
  return communicator;
}

}  // namespace ssl
