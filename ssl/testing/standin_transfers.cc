// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_transfers.h"

#include <mutex>

namespace ssl {
namespace {

// Of the process, as LibTorch's devices are.
struct Transfers {
  std::mutex mutex;
  TransferCounts reads;
  TransferCounts uploads;
};

Transfers& Process() {
  static auto& transfers = *new Transfers;
  return transfers;
}

TransferCounts Copy(const TransferCounts& counts) {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  return counts;
}

TransferCounts Since(const TransferCounts& before, const TransferCounts& counts) {
  TransferCounts since;
  for (const auto& [what, count] : Copy(counts)) {
    const auto found = before.find(what);
    const int64_t more = count - (found != before.end() ? found->second : 0);
    if (more > 0) since[what] = more;
  }
  return since;
}

void Count(const std::string& what, TransferCounts* counts) {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  ++(*counts)[what];
}

}  // namespace

TransferLog::TransferLog() : reads_before_(Copy(Process().reads)), uploads_before_(Copy(Process().uploads)) {}

TransferCounts TransferLog::reads() const { return Since(reads_before_, Process().reads); }
TransferCounts TransferLog::uploads() const { return Since(uploads_before_, Process().uploads); }

void CountRead(const std::string& what) { Count(what, &Process().reads); }
void CountUpload(const std::string& what) { Count(what, &Process().uploads); }

}  // namespace ssl
