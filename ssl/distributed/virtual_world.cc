// SPDX-License-Identifier: Apache-2.0
//
// Next stop for a reader: virtual_meeting.cc, where the ranks of one process take turns and exchange what they have.
#include "ssl/distributed/virtual_world.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/default_generators.h"
#include "ssl/base/start_thread.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/exchange_steps.h"
#include "ssl/distributed/reduce_rows.h"
#include "ssl/distributed/virtual_meeting.h"

namespace ssl {
namespace {

// Of one rank's share of a reduction that is gathered at a time: bounds the memory, which holds all ranks' shares.
constexpr int64_t kElementsAtOnce = int64_t{1} << 20;

// Of what each process's ranks have deposited, what all ranks have, in their order: [size, ...].
absl::StatusOr<at::Tensor> GatherAll(const Meeting::Deposits& deposits, Meeting& meeting) {
  const std::vector<int64_t>& members = meeting.members();
  const int64_t most = *std::max_element(members.begin(), members.end());
  Meeting::Deposits padded = deposits;
  while (static_cast<int64_t>(padded.size()) < most) padded.push_back(at::zeros_like(deposits[0]));
  SSL_ASSIGN_OR_RETURN(const at::Tensor gathered, meeting.processes().AllGather(at::stack(padded)));
  const at::Tensor rows = gathered.flatten(0, 1);
  if (rows.size(0) == meeting.size()) return rows;
  std::vector<int64_t> kept;
  for (size_t process = 0; process < members.size(); ++process) {
    for (int64_t i = 0; i < members[process]; ++i) kept.push_back(static_cast<int64_t>(process) * most + i);
  }
  return rows.index_select(0, at::tensor(kept, at::kLong));
}

absl::StatusOr<at::Tensor> ReduceAll(const Meeting::Deposits& deposits, ReduceOp op, Meeting& meeting) {
  Meeting::Deposits flat;
  for (const at::Tensor& deposit : deposits) flat.push_back(deposit.reshape({-1}));
  at::Tensor reduced = at::empty_like(flat[0]);
  for (int64_t begin = 0; begin < reduced.numel(); begin += kElementsAtOnce) {
    const int64_t count = std::min(kElementsAtOnce, reduced.numel() - begin);
    Meeting::Deposits parts;
    for (const at::Tensor& deposit : flat) parts.push_back(deposit.narrow(0, begin, count));
    SSL_ASSIGN_OR_RETURN(const at::Tensor rows, GatherAll(parts, meeting));
    reduced.narrow(0, begin, count).copy_(ReduceRows(rows, op));
  }
  return reduced.view(deposits[0].sizes());
}

// Which process has a rank, and which of its ranks it is.
struct Owner {
  int64_t process = 0;
  int64_t place = 0;
};

Owner OwnerOf(int64_t rank, const Meeting& meeting) {
  Owner owner{0, rank};
  while (owner.place >= meeting.members()[owner.process]) owner.place -= meeting.members()[owner.process++];
  return owner;
}

absl::StatusOr<at::Tensor> BroadcastAll(const Meeting::Deposits& deposits, int64_t root, Meeting& meeting) {
  const Owner owner = OwnerOf(root, meeting);
  const bool is_here = owner.process == meeting.processes().rank();
  at::Tensor value = is_here ? deposits[owner.place].clone() : at::empty_like(deposits[0]);
  SSL_RETURN_IF_ERROR(meeting.processes().Broadcast(value, owner.process));
  return value;
}

// The meeting of those ranks whose color is `color`; the processes that have none take part in the split as well.
absl::StatusOr<std::shared_ptr<Meeting>> SplitOff(int64_t color, const std::vector<int64_t>& colors, Meeting& meeting) {
  std::vector<int64_t> members;
  std::vector<int64_t> locals;
  const int64_t first = meeting.first_rank();
  int64_t rank = 0;
  for (size_t process = 0; process < meeting.members().size(); ++process) {
    int64_t count = 0;
    for (int64_t i = 0; i < meeting.members()[process]; ++i, ++rank) {
      if (colors[rank] != color) continue;
      ++count;
      if (static_cast<int64_t>(process) == meeting.processes().rank()) locals.push_back(meeting.locals()[rank - first]);
    }
    if (count > 0) members.push_back(count);
  }
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> processes, meeting.processes().Split(locals.empty() ? 0 : 1));
  if (locals.empty()) return std::shared_ptr<Meeting>();
  return std::make_shared<Meeting>(meeting.turns(), std::move(locals), std::move(members), std::move(processes));
}

class VirtualRank : public Communicator {
 public:
  // place: which of meeting->locals() this is.
  VirtualRank(int64_t place, std::shared_ptr<Meeting> meeting) : place_(place), meeting_(std::move(meeting)) {}

  int64_t rank() const override { return meeting_->first_rank() + place_; }
  int64_t size() const override { return meeting_->size(); }

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override { return StartAllReduce(tensor, op)->Wait(); }

  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override {
    const auto reduce = [op, meeting = meeting_.get()](const Meeting::Deposits& deposits) {
      return ReduceAll(deposits, op, *meeting);
    };
    const std::string operation = absl::StrCat(NameOf(op), TypeAndShape(tensor));
    const int64_t number = meeting_->Deposit(place_, operation, tensor.detach(), reduce);
    return std::make_unique<StartedAllReduce>(place_, meeting_, number, tensor);
  }

  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override {
    SSL_ASSIGN_OR_RETURN(const at::Tensor shared, Gather(absl::StrCat("all-gather", TypeAndShape(tensor)), tensor));
    return shared.clone();  // of which every rank may make what it likes
  }

  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override {
    if (root < 0 || root >= size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("broadcast root is ", root, ", expected 0 to ", size() - 1, " in a world of ", size()));
    }
    const auto broadcast = [root, this](const Meeting::Deposits& deposits) {
      return BroadcastAll(deposits, root, *meeting_);
    };
    SSL_ASSIGN_OR_RETURN(const at::Tensor value, Exchange(absl::StrCat("broadcast from ", root, TypeAndShape(tensor)),
                                                          tensor.detach(), broadcast));
    tensor.detach().copy_(value);
    return absl::OkStatus();
  }

  absl::Status Barrier() override {
    const auto barrier = [this](const Meeting::Deposits&) -> absl::StatusOr<at::Tensor> {
      SSL_RETURN_IF_ERROR(meeting_->processes().Barrier());
      return at::Tensor();
    };
    return Exchange("barrier", at::Tensor(), barrier).status();
  }

  void LetOthersGoOn(absl::FunctionRef<void()> wait) override { meeting_->LetOthersGoOn(place_, wait); }

  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    const int64_t number = children_++;
    const auto duplicate = [number, this](const Meeting::Deposits&) -> absl::StatusOr<at::Tensor> {
      SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> processes, meeting_->processes().Duplicate());
      meeting_->AddChild(
          number, 0,
          std::make_shared<Meeting>(meeting_->turns(), meeting_->locals(), meeting_->members(), std::move(processes)));
      return at::Tensor();
    };
    SSL_RETURN_IF_ERROR(Exchange("duplicate", at::Tensor(), duplicate).status());
    return std::make_unique<VirtualRank>(place_, meeting_->Child(number, 0));
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override {
    SSL_ASSIGN_OR_RETURN(const at::Tensor gathered, Gather("colors", at::full({}, color, at::kLong)));  // [size]
    const int64_t* values = gathered.const_data_ptr<int64_t>();
    const std::vector<int64_t> colors(values, values + gathered.numel());
    const int64_t number = children_++;
    const auto split = [&](const Meeting::Deposits&) -> absl::StatusOr<at::Tensor> {
      for (const int64_t each : std::set<int64_t>(colors.begin(), colors.end())) {
        SSL_ASSIGN_OR_RETURN(std::shared_ptr<Meeting> child, SplitOff(each, colors, *meeting_));
        if (child != nullptr) meeting_->AddChild(number, each, std::move(child));
      }
      return at::Tensor();
    };
    SSL_RETURN_IF_ERROR(Exchange("split", at::Tensor(), split).status());
    const auto before = colors.begin() + meeting_->first_rank();
    const int64_t place = std::count(before, before + place_, color);
    return std::make_unique<VirtualRank>(place, meeting_->Child(number, color));
  }

  void Abort(const absl::Status& why) override { meeting_->Leave(place_, why); }

 private:
  class StartedAllReduce : public Work {
   public:
    StartedAllReduce(int64_t place, std::shared_ptr<Meeting> meeting, int64_t number, at::Tensor tensor)
        : place_(place), meeting_(std::move(meeting)), number_(number), tensor_(std::move(tensor)) {}
    absl::Status Wait() override {
      SSL_ASSIGN_OR_RETURN(const at::Tensor reduced, meeting_->Collect(place_, number_));
      tensor_.detach().copy_(reduced);
      return absl::OkStatus();
    }

   private:
    const int64_t place_;
    const std::shared_ptr<Meeting> meeting_;
    const int64_t number_;
    const at::Tensor tensor_;
  };

  absl::StatusOr<at::Tensor> Exchange(const std::string& operation, at::Tensor tensor,
                                      const Meeting::Conclusion& conclude) {
    return meeting_->Collect(place_, meeting_->Deposit(place_, operation, std::move(tensor), conclude));
  }

  absl::StatusOr<at::Tensor> Gather(const std::string& operation, const at::Tensor& tensor) {
    return Exchange(operation, tensor.detach(),
                    [this](const Meeting::Deposits& deposits) { return GatherAll(deposits, *meeting_); });
  }

  const int64_t place_;
  const std::shared_ptr<Meeting> meeting_;
  int64_t children_ = 0;
};

}  // namespace

absl::Status VirtualWorld::Run(const std::function<absl::Status(Communicator&)>& rank_main) const {
  const int64_t processes = processes_.size();
  if (virtual_ranks_ < processes || virtual_ranks_ % processes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(virtual_ranks_, " virtual ranks on ", processes,
                                                   " processes, expected a number of processes that divides them"));
  }
  const int64_t here = virtual_ranks_ / processes;
  std::vector<int64_t> locals(here);
  std::iota(locals.begin(), locals.end(), int64_t{0});
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> own, processes_.Duplicate());
  const at::Tensor drawn_from = GeneratorState();
  Turns turns(here);
  const auto meeting = std::make_shared<Meeting>(turns, locals, std::vector<int64_t>(processes, here), std::move(own));
  const int compute_threads = at::get_num_threads();
  std::vector<std::thread> threads(here);
  const std::optional<c10::Device> accelerator = CurrentAccelerator();
  const auto run = [&](int64_t local) {
    VirtualRank rank(local, meeting);
    turns.End(local, GuardTorch(absl::StrCat("virtual rank ", rank.rank()), [&] {
                // A thread of its own begins with LibTorch's defaults. The states of generators are those of this
                // accelerator.
                const c10::OptionalDeviceGuard device(accelerator);
                at::set_num_threads(compute_threads);
                // Else the backward passes of a GPU would run on one thread of LibTorch's, where ranks cannot take
                // turns.
                c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
                turns.Begin(local);
                return rank_main(rank);
              }));
  };
  for (const int64_t local : locals) {
    const std::string what = absl::StrCat("virtual rank ", meeting->first_rank() + local);
    const absl::Status started = StartThread(
        what, [&run, local] { run(local); }, &threads[local]);
    if (!started.ok()) turns.End(local, started);
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  SetGeneratorState(drawn_from);
  return turns.first_error();
}

}  // namespace ssl
