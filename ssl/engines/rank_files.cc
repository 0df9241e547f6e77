// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/rank_files.h"

#include <ATen/ops/zeros.h>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

// Positions in what the ranks add up; the rows of each split follow.
constexpr int64_t kFiles = 0;
constexpr int64_t kBytes = 1;
constexpr int64_t kRows = 2;

// The sums of all ranks.
absl::StatusOr<std::vector<int64_t>> AddUp(const std::vector<int64_t>& own, Communicator& communicator) {
  const auto size = static_cast<int64_t>(own.size());
  at::Tensor sums = at::zeros({size}, at::kLong);
  int64_t* values = sums.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < size; ++i) values[i] = own[i];
  SSL_RETURN_IF_ERROR(communicator.AllReduce(sums, ReduceOp::kSum));
  return std::vector<int64_t>(values, values + size);
}

}  // namespace

absl::StatusOr<std::string> FormatRankFiles(const std::string& directory, const std::vector<WrittenArray>& arrays,
                                            const std::vector<SplitRows>& splits, Communicator& communicator) {
  const int64_t ranks = communicator.size();
  if (ranks == 1) return FormatArrayTable(directory, arrays);
  std::vector<int64_t> own = {static_cast<int64_t>(arrays.size()), 0};
  for (const WrittenArray& array : arrays) own[kBytes] += array.bytes;
  for (const SplitRows& split : splits) own.push_back(split.rows);
  SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> sums, AddUp(own, communicator));
  const std::string sum = absl::StrCat("all ", sums[kFiles], " files of ", ranks, " ranks");
  std::string table = FormatArrayTable(directory, arrays, sum, sums[kBytes] - own[kBytes]);
  for (size_t i = 0; i < splits.size(); ++i) {
    const int64_t rows = sums[kRows + i];
    if (rows == splits[i].samples) continue;
    absl::StrAppend(&table, splits[i].split, ": ", splits[i].samples, " samples in ", rows,
                    " rows; ranks share them equally, and repeat the first ones for it: the _inds files tell which\n");
  }
  return table;
}

}  // namespace ssl
