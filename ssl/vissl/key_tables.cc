// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/key_tables.h"

#include <iterator>
#include <utility>

namespace ssl {

std::vector<CompatibilityKey> AllVisslKeys() {
  std::vector<CompatibilityKey> all;
  for (const auto table : {BenchmarkKeys, DataKeys, DistillationKeys, LossKeys, ModelKeys, RunKeys, TrunkKeys}) {
    std::vector<CompatibilityKey> keys = table();
    std::move(keys.begin(), keys.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace ssl
