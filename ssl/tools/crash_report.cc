// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/crash_report.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "ssl/tools/exit_codes.h"

namespace ssl {
namespace {

constexpr size_t kBufferBytes = 4096;
constexpr size_t kMaxMessageBytes = 1024;
constexpr char kBuilding[] = "building";  // the first phase of a RunProgress
// What the shell reports for a process that a signal ended.
constexpr int kExitOfSignals = 128;

// All that the handler needs, filled in advance: it may neither allocate nor lock.
struct Prepared {
  const ReportFile* file;
  char fields[kBufferBytes];
  char checkpoints[kBufferBytes];
};

Prepared prepared;
std::atomic<const RunProgress*> armed{nullptr};

// The thread that writes the report; none is 0.
std::atomic<pid_t> writer{0};

// Where several threads crash together, the one that ends the process may not be faster than the one that writes. False
// for a later one, when the report is written, and for a crash of the writer itself.
bool BeginWriting() {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  pid_t other = 0;
  if (writer.compare_exchange_strong(other, self)) return true;
  constexpr timespec kMillisecond = {0, 1'000'000};
  while (other != self && writer.load() != 0) nanosleep(&kMillisecond, nullptr);
  return false;
}

// Text of bounded length without any allocation.
class FixedText {
 public:
  void Add(absl::string_view text) {
    const size_t count = std::min(text.size(), sizeof(bytes_) - size_);
    std::memcpy(bytes_ + size_, text.data(), count);
    size_ += count;
  }

  void AddInt(int64_t value) {
    char digits[24];
    size_t begin = sizeof(digits);
    // In the range of unsigned numbers, where the smallest integer has a negative, too.
    uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    do {
      digits[--begin] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest > 0);
    if (value < 0) digits[--begin] = '-';
    Add({digits + begin, sizeof(digits) - begin});
  }

  // Bytes that would end or break a JSON string become spaces.
  void AddPlain(absl::string_view text) {
    for (const char byte : text) {
      const bool is_plain = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
      Add(absl::string_view(is_plain ? &byte : " ", 1));
    }
  }

  void AddQuoted(absl::string_view text) {
    Add("\"");
    AddPlain(text.substr(0, kMaxMessageBytes));
    Add("\"");
  }

  void AddMember(absl::string_view key, int64_t value) {
    Add(",\n  \"");
    Add(key);
    Add("\": ");
    AddInt(value);
  }

  absl::string_view text() const { return {bytes_, size_}; }

 private:
  char bytes_[4 * kBufferBytes];
  size_t size_ = 0;
};

bool Fill(absl::string_view text, char* buffer) {
  if (text.size() >= kBufferBytes) return false;
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return true;
}

// signal_number: 0 where memory is exhausted.
FixedText ReportText(const char* message, int signal_number, const RunProgress& progress) {
  FixedText text;
  text.Add("{\n  \"code\": ");
  text.AddQuoted(signal_number == 0 ? "RESOURCE_EXHAUSTED" : "SIGNAL");
  text.Add(",\n  \"message\": ");
  text.AddQuoted(message);
  if (signal_number != 0) text.AddMember("signal", signal_number);
  text.AddMember("exit_code", signal_number == 0 ? kExitMemory : kExitOfSignals + signal_number);
  text.AddMember("unix_time", static_cast<int64_t>(time(nullptr)));
  text.Add(",\n  \"phase\": ");
  text.AddQuoted(progress.phase);
  text.AddMember("step", progress.iteration);
  text.AddMember("epoch", progress.epoch);
  if (progress.last_checkpoint >= 0) {
    text.Add(",\n  \"last_checkpoint\": {\n    \"directory\": \"");
    text.AddPlain(prepared.checkpoints);
    text.Add("/step_");
    text.AddInt(progress.last_checkpoint);
    text.Add("\"");
    text.AddMember("step", progress.last_checkpoint);
    text.Add("\n  }");
  }
  text.Add(",\n  ");
  text.Add(prepared.fields);
  text.Add("\n}\n");
  return text;
}

}  // namespace

CrashReportScope::CrashReportScope(const ReportFile& file, const std::string& fields, const std::string& checkpoints,
                                   const RunProgress& progress) {
  prepared.file = &file;
  if (Fill(fields, prepared.fields) && Fill(checkpoints, prepared.checkpoints)) armed.store(&progress);
}

CrashReportScope::~CrashReportScope() { armed.store(nullptr); }

bool RunIsBuilding() noexcept {
  const RunProgress* progress = armed.load();
  return progress != nullptr && progress->phase == kBuilding;
}

void WriteMemoryReport(const char* message) noexcept { WriteCrashReport(message, 0); }

void WriteCrashReport(const char* message, int signal_number) noexcept {
  if (!BeginWriting()) return;
  if (const RunProgress* progress = armed.exchange(nullptr); progress != nullptr) {
    prepared.file->Replace(ReportText(message, signal_number, *progress).text());
  }
  writer.store(0);
}

}  // namespace ssl
