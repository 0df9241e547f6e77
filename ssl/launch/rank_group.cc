// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/rank_group.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/clock.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

// What poll is to wait at most until `time`, rounded up so that it does not wake just before.
int MillisecondsUntil(absl::Time time) {
  if (time == absl::InfiniteFuture()) return -1;
  const int64_t left = absl::ToInt64Milliseconds(time - Clock::Real().Now()) + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, std::numeric_limits<int>::max()));
}

// Whether any is ready; their revents hold only then.
absl::StatusOr<bool> Poll(std::vector<pollfd>* fds, int milliseconds) {
  const int ready = poll(fds->data(), fds->size(), milliseconds);
  if (ready >= 0 || errno == EINTR) return ready > 0;
  return absl::InternalError(absl::StrCat("waiting for ranks: ", std::strerror(errno)));
}

}  // namespace

bool IsFailure(const RankEnd& end, int stopped_code) {
  if (end.signal != 0) return !end.was_asked;
  return end.exit_code != 0 && end.exit_code != stopped_code;
}

std::string DescribeEnd(const RankEnd& end) {
  const std::string who = absl::StrCat("rank ", end.rank, " (pid ", end.pid, ")");
  if (end.did_hang) return absl::StrCat(who, " did not answer the others, and was killed");
  if (end.signal == 0) return absl::StrCat(who, " exited with code ", end.exit_code);
  const char* name = sigabbrev_np(end.signal);
  return absl::StrCat(who, " was ended by ", name == nullptr ? "signal " : "SIG",
                      name == nullptr ? std::to_string(end.signal) : name);
}

RankGroup::~RankGroup() {
  for (const auto& rank : ranks_) {
    if (!rank->has_ended) KillRank(rank->pid);
  }
}

absl::Status RankGroup::Start(int64_t rank, const std::string& prefix, const RankCommand& command) {
  for (const int number : context_.signals->Take()) OnSignal(number);
  if (user_stopped()) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(RankProcess process, StartRank(command));
  ranks_.push_back(std::unique_ptr<Rank>(
      new Rank{rank,
               process.pid,
               {std::move(process.output), LineSplitter(rank == 0 ? "" : prefix), context_.output},
               {std::move(process.error), LineSplitter(prefix), context_.error},
               {}}));
  return absl::OkStatus();
}

absl::Status RankGroup::Run() {
  while (AnyRuns()) {
    SSL_RETURN_IF_ERROR(Wait());
    for (const int number : context_.signals->Take()) OnSignal(number);
    Reap();
    if (Clock::Real().Now() < kill_at_) continue;
    kill_at_ = absl::InfiniteFuture();
    SendAll(SIGKILL);
  }
  return Flush();
}

bool RankGroup::AnyRuns() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->has_ended; });
}

std::vector<RankGroup::Stream*> RankGroup::OpenStreams() {
  std::vector<Stream*> streams;
  for (const auto& rank : ranks_) {
    for (Stream* stream : {&rank->output, &rank->error}) {
      if (stream->pipe.read_fd() >= 0) streams.push_back(stream);
    }
  }
  return streams;
}

std::vector<OutputStream*> RankGroup::PendingOutputs() const {
  std::vector<OutputStream*> outputs;
  if (!context_.output->is_empty()) outputs.push_back(context_.output);
  if (!context_.error->is_empty() && context_.error != context_.output) outputs.push_back(context_.error);
  return outputs;
}

// For a signal, something to read or write, or the time to kill; reads and writes what is ready.
absl::Status RankGroup::Wait() {
  std::vector<pollfd> fds = {{context_.signals->fd(), POLLIN, 0}};
  std::vector<Stream*> streams = OpenStreams();
  // A rank whose lines nobody takes waits in its own write.
  streams.erase(std::remove_if(streams.begin(), streams.end(), [](Stream* stream) { return stream->out->is_full(); }),
                streams.end());
  for (const Stream* stream : streams) fds.push_back({stream->pipe.read_fd(), POLLIN, 0});
  const std::vector<OutputStream*> outputs = PendingOutputs();
  for (const OutputStream* output : outputs) fds.push_back({output->fd(), POLLOUT, 0});

  SSL_ASSIGN_OR_RETURN(const bool any_ready, Poll(&fds, MillisecondsUntil(kill_at_)));
  if (!any_ready) return absl::OkStatus();
  bool has_read = false;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (fds[1 + i].revents == 0) continue;
    ReadFrom(streams[i]);
    has_read = true;
  }
  for (const auto& rank : ranks_) {
    if (has_read && !rank->has_ended && context_.on_output != nullptr) context_.on_output(rank->rank, rank->pid);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (fds[1 + streams.size() + i].revents != 0) outputs[i]->WriteSome();
  }
  return absl::OkStatus();
}

// Once: a rank that prints without end is one of several.
void RankGroup::ReadFrom(Stream* stream) {
  char bytes[16 << 10];
  const ssize_t count = read(stream->pipe.read_fd(), bytes, sizeof(bytes));
  if (count > 0) {
    stream->lines.Append(absl::string_view(bytes, static_cast<size_t>(count)), stream->out->pending());
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    stream->lines.Finish(stream->out->pending());
    stream->pipe.CloseRead();
  }
}

// All that an ended rank has left, which is what a pipe holds at most. Its end of file may never come: a process that
// has left the rank's group may have the other end, and may even go on printing.
void RankGroup::ReadAll(Stream* stream) {
  const int fd = stream->pipe.read_fd();
  if (fd < 0) return;  // its end has been read
  std::string bytes(static_cast<size_t>(fcntl(fd, F_GETPIPE_SZ)), ' ');
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(0, read(fd, bytes.data(), bytes.size()))));
  stream->lines.Append(bytes, stream->out->pending());
  stream->lines.Finish(stream->out->pending());
  stream->pipe.CloseRead();
}

void RankGroup::OnSignal(int number) {
  if (number == SIGCHLD) return;                    // woke poll
  if (number == SIGXCPU && asked_to_stop_) return;  // the kernel repeats it: no wish of the user's
  if (IsStop(number)) {
    ++user_stops_;
    if (asked_to_stop_ && user_stops_ == 1) return;
  }
  SendAll(number);
  if (IsStop(number) && user_stops_ > 1) EndStopped();
}

// A rank that stands still (SIGSTOP) hears of no stop until it goes on, as under systemd; a second stop waits for
// nobody.
void RankGroup::EndStopped() {
  SendAll(SIGCONT);
  kill_at_ = std::min(kill_at_, Clock::Real().Now() + context_.grace);
}

void RankGroup::SendAll(int number) {
  for (const auto& rank : ranks_) {
    if (rank->has_ended) continue;
    // Of two ranks that end together, the one that lost the other may be seen first: what is sent then comes too late
    // to be what the other has ended for.
    if (!IsExiting(rank->pid)) rank->sent.insert(number);
    SignalRank(rank->pid, number);
  }
}

// All that have ended before any of them is looked at: what follows from one end must not be taken for the reason of
// another that was there before.
void RankGroup::Reap() {
  std::vector<RankEnd> found;
  for (const auto& rank : ranks_) {
    if (rank->has_ended) continue;
    const std::optional<ProcessEnd> end = TakeEnd(rank->pid);
    if (!end.has_value()) continue;
    rank->has_ended = true;
    for (Stream* stream : {&rank->output, &rank->error}) ReadAll(stream);
    const bool was_asked = end->signal != 0 && rank->sent.count(end->signal) > 0;
    found.push_back({rank->rank, rank->pid, end->exit_code, end->signal, was_asked,
                     rank->hangs && end->signal == SIGKILL, !rank->sent.empty()});
  }
  for (const RankEnd& end : found) OnEnd(end);
}

void RankGroup::OnEnd(const RankEnd& end) {
  ends_.push_back(end);
  KillThoseItWaitedFor(end);
  if (end.signal == 0 && end.exit_code == context_.stopped_code) AskToStop();
  if (has_failed_ || !IsFailure(end, context_.stopped_code)) return;
  has_failed_ = true;
  kill_at_ = Clock::Real().Now() + context_.grace;
  if (!AnyRuns()) return;
  SSL_LOG(WARNING) << DescribeEnd(end) << "; stopping the others, within " << absl::FormatDuration(context_.grace);
  AskToStop();
}

void RankGroup::AskToStop() {
  if (user_stops_ > 0) SendAll(SIGCONT);          // one that stands still would not hear of the stop
  if (user_stops_ > 0 || asked_to_stop_) return;  // they are stopping; a second signal would keep them from saving
  asked_to_stop_ = true;
  SendAll(SIGTERM);
}

// It has waited for as long as an operation may take: no grace is left to give.
void RankGroup::KillThoseItWaitedFor(const RankEnd& end) {
  if (context_.waited_in_vain == nullptr) return;
  for (const auto& rank : ranks_) {
    if (rank->has_ended || rank->hangs || !context_.waited_in_vain(end, rank->pid)) continue;
    SSL_LOG(WARNING) << "rank " << rank->rank << " (pid " << rank->pid << ") does not answer rank " << end.rank
                     << ": killing it";
    rank->hangs = true;
    SignalRank(rank->pid, SIGKILL);
  }
}

// What is still to be written. A stop signal gives up on a reader who does not take it.
absl::Status RankGroup::Flush() {
  for (std::vector<OutputStream*> outputs; !(outputs = PendingOutputs()).empty();) {
    std::vector<pollfd> fds = {{context_.signals->fd(), POLLIN, 0}};
    for (const OutputStream* output : outputs) fds.push_back({output->fd(), POLLOUT, 0});
    SSL_ASSIGN_OR_RETURN(const bool any_ready, Poll(&fds, -1));
    for (const int number : context_.signals->Take()) {
      if (!IsStop(number)) continue;
      ++user_stops_;
      for (OutputStream* output : outputs) output->Drop();
    }
    for (size_t i = 0; any_ready && i < outputs.size(); ++i) {
      if (fds[1 + i].revents != 0) outputs[i]->WriteSome();
    }
  }
  return absl::OkStatus();
}

}  // namespace ssl
