// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/source_memory.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/available_memory.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/world_shape.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

constexpr int64_t kBytesPerKilobyte = 1000;
constexpr int64_t kBytesPerMegabyte = 1000000;

std::string MemoryText(int64_t bytes) {
  const bool is_small = bytes < kBytesPerMegabyte;
  const int64_t unit = is_small ? kBytesPerKilobyte : kBytesPerMegabyte;
  return absl::StrCat((bytes + unit / 2) / unit, is_small ? " KB" : " MB");
}

// The bound of a split's CACHE; 0: there is none.
absl::StatusOr<int64_t> CacheBytes(const char* path, const ConfigNode& config) {
  const ConfigNode* node = config.FindPath(path);
  if (node == nullptr) return 0;
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(*node, config));
  return split.cache == "none" ? 0 : split.cache_bytes;
}

// Those of this host, as processes or within one: each has a data set, and so a cache, of its own.
absl::StatusOr<int64_t> RanksOfHost(const ConfigNode& config) {
  SSL_ASSIGN_OR_RETURN(const WorldShape processes, ReadProcesses(config));
  SSL_ASSIGN_OR_RETURN(const int64_t virtual_ranks, ReadVirtualRanks(config));
  return processes.ranks_per_node * std::max<int64_t>(1, virtual_ranks / processes.ranks());
}

std::string OfEach(int64_t ranks) { return ranks == 1 ? "" : absl::StrCat(" for each of ", ranks, " ranks"); }

// "2 batches take", "1 batch takes". of: words between the two.
std::string TakenBy(const BatchMemory& batches, const std::string& of) {
  return absl::StrCat(batches.batches, batches.batches == 1 ? " batch" : " batches", of,
                      batches.batches == 1 ? " takes " : " take ");
}

// caches: bytes, of a rank.
absl::Status CheckFits(const BatchMemory& batches, int64_t caches, const ConfigNode& node,
                       const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const int64_t ranks, RanksOfHost(context.config));
  const int64_t available = AvailableMemoryBytes();
  if (available / ranks - caches >= batches.bytes) return absl::OkStatus();
  const std::string beside = caches == 0 ? "" : absl::StrCat(" beside caches of ", caches, " bytes");
  return absl::InvalidArgumentError(absl::StrCat(SplitKey(node, context.config, "BATCHSIZE_PER_REPLICA"), " is ",
                                                 batches.samples, ": ", TakenBy(batches, ""), batches.bytes, " bytes",
                                                 OfEach(ranks), beside, ", expected that they fit into the ", available,
                                                 " bytes of memory that are free"));
}

}  // namespace

absl::Status AdmitCache(const DataSplitOptions& split, const ConfigNode& node, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const int64_t train_bytes, CacheBytes("DATA.TRAIN", context.config));
  SSL_ASSIGN_OR_RETURN(const int64_t test_bytes, CacheBytes("DATA.TEST", context.config));
  SSL_ASSIGN_OR_RETURN(const int64_t ranks, RanksOfHost(context.config));
  const int64_t available = AvailableMemoryBytes();
  if (available / ranks - train_bytes < test_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(SplitKey(node, context.config, "CACHE_BYTES"), " is ", split.cache_bytes,
                     ", expected that the caches of ", "DATA.TRAIN and DATA.TEST, ", train_bytes, " and ", test_bytes,
                     " bytes", OfEach(ranks), ", fit into the ", available, " bytes of memory that are free"));
  }
  SSL_LOG(INFO) << SplitPath(node, context.config) << ".CACHE: " << split.cache << " images take up to "
                << MemoryText(split.cache_bytes) << " of memory" << OfEach(ranks) << ", of which "
                << MemoryText(available) << " are free";
  return absl::OkStatus();
}

absl::Status AdmitBatches(const BatchMemory& batches, const ConfigNode& node, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const int64_t train_bytes, CacheBytes("DATA.TRAIN", context.config));
  SSL_ASSIGN_OR_RETURN(const int64_t test_bytes, CacheBytes("DATA.TEST", context.config));
  if (!batches.is_estimate) SSL_RETURN_IF_ERROR(CheckFits(batches, train_bytes + test_bytes, node, context));
  if (context.communicator.rank() != 0) return absl::OkStatus();  // all take the same
  SSL_ASSIGN_OR_RETURN(const int64_t ranks, RanksOfHost(context.config));
  SSL_LOG(INFO) << SplitPath(node, context.config) << ": "
                << TakenBy(batches, absl::StrCat(" of ", batches.samples, " samples")) << MemoryText(batches.bytes)
                << " of memory" << OfEach(ranks)
                << (batches.is_estimate ? ", if their images are as large as the first" : "");
  return absl::OkStatus();
}

absl::Status AdmitEvaluationBatches(const BatchMemory& batches, const ConfigNode& node, const BuildContext& context) {
  return CheckFits(batches, 0, node, context);
}

}  // namespace ssl
