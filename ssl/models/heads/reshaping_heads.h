// SPDX-License-Identifier: Apache-2.0
//
// Heads without parameters.
//
//   identity             the features as they are
//   siamese_concat_view  [N * num_towers, C] -> [N, num_towers * C]: consecutive rows side by side, for the patches of
//                        PIRL (arXiv 1912.01991) and Jigsaw (arXiv 1603.09246)
#ifndef SSL_MODELS_HEADS_RESHAPING_HEADS_H_
#define SSL_MODELS_HEADS_RESHAPING_HEADS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "ssl/models/head.h"

namespace ssl {

struct Registries;

std::unique_ptr<Head> MakeIdentityHead();

// Features may be [N * num_towers, C, 1, 1], too. Rows that are no multiple of num_towers throw c10::ValueError.
std::unique_ptr<Head> MakeSiameseConcatView(int64_t num_towers);

// Adds the heads "identity" and "siamese_concat_view".
absl::Status RegisterReshapingHeads(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_HEADS_RESHAPING_HEADS_H_
