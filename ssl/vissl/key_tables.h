// SPDX-License-Identifier: Apache-2.0
//
// The keys of VISSL's configurations (facebookresearch/vissl, 09270ed2) that no options struct reads, by section: those
// of its default configuration, those that its files use beside them, and the typos in its files. A key leaves its
// table when a struct declares it: //ssl/tools:vissl_coverage_test fails until then.
//
// The defaults are VISSL's.
#ifndef SSL_VISSL_KEY_TABLES_H_
#define SSL_VISSL_KEY_TABLES_H_

#include <vector>

#include "ssl/config/compatibility_keys.h"

namespace ssl {

// All of the tables below.
std::vector<CompatibilityKey> AllVisslKeys();

std::vector<CompatibilityKey> BenchmarkKeys();
std::vector<CompatibilityKey> DataKeys();
std::vector<CompatibilityKey> DistillationKeys();
std::vector<CompatibilityKey> LossKeys();
std::vector<CompatibilityKey> ModelKeys();
std::vector<CompatibilityKey> RunKeys();
std::vector<CompatibilityKey> TrunkKeys();

}  // namespace ssl

#endif  // SSL_VISSL_KEY_TABLES_H_
