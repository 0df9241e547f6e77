// SPDX-License-Identifier: Apache-2.0
//
// RegNet trunks (arXiv 2003.13678), MODEL.TRUNK.NAME: regnet, as VISSL takes them from ClassyVision: bottleneck blocks
// with grouped 3x3 convolutions and squeeze and excitation (arXiv 1709.01507).
//
// Parameters and buffers have VISSL's names without "_feature_blocks." ("conv1.stem.0.weight",
// "res2.block1-0.f.a.0.weight"). Features: "conv1", "res2" ... one per stage, the last one pooled as "avgpool", which
// "flatten" names too.
#ifndef SSL_MODELS_TRUNKS_REGNET_H_
#define SSL_MODELS_TRUNKS_REGNET_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/models/trunk.h"
#include "ssl/models/trunks/regnet_stages.h"

namespace ssl {

struct Registries;

// Initialised from `seed` alone. InvalidArgument or NotFound as in regnet_stages.h.
absl::StatusOr<std::unique_ptr<Trunk>> MakeRegNet(const RegNetOptions& options, int64_t seed);

// Adds the trunk "regnet", as "regnet_fsdp", too, and the section MODEL.TRUNK.REGNET.
absl::Status RegisterRegNet(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_REGNET_H_
