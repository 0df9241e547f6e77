// SPDX-License-Identifier: Apache-2.0
//
// A small one of each registered trunk and head, for tests that go over all of them: a new trunk or head needs a line
// in small_parts.cc, and is in all of these tests then.
//
//   for (const std::string& name : registries.trunks.Names()) {
//     ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk, MakeSmallTrunk(registries, name, /*seed=*/1));
//   }
#ifndef SSL_MODELS_TESTING_SMALL_PARTS_H_
#define SSL_MODELS_TESTING_SMALL_PARTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/core/registries.h"
#include "ssl/models/head.h"
#include "ssl/models/trunk.h"

namespace ssl {

constexpr int64_t kSmallHeadChannels = 6;

// For images of 64x64 and 32x32 pixels, without random numbers. NotFound, with what to do, for a trunk that has no
// parameters here.
absl::StatusOr<std::unique_ptr<Trunk>> MakeSmallTrunk(const Registries& registries, const std::string& name,
                                                      int64_t seed);

// For maps [N, kSmallHeadChannels, 1, 1], with batch norm if it can have some; otherwise as MakeSmallTrunk.
absl::StatusOr<std::unique_ptr<Head>> MakeSmallHead(const Registries& registries, const std::string& name,
                                                    int64_t seed);

// Of other parameters: MODEL.TRUNK or the head's arguments, a map in YAML.
absl::StatusOr<std::unique_ptr<Trunk>> MakeTrunk(const Registries& registries, const std::string& name,
                                                 const std::string& section, int64_t seed);
absl::StatusOr<std::unique_ptr<Head>> MakeHead(const Registries& registries, const std::string& name,
                                               const std::string& arguments, int64_t seed);

}  // namespace ssl

#endif  // SSL_MODELS_TESTING_SMALL_PARTS_H_
