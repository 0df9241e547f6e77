// SPDX-License-Identifier: Apache-2.0
//
// The keys of DATA.TRAIN that choose a sampler: samplers have no names. Where none is set, it is DistributedSampler.
#ifndef SSL_DATA_SAMPLERS_SAMPLER_KEYS_H_
#define SSL_DATA_SAMPLERS_SAMPLER_KEYS_H_

#include <string>
#include <vector>

namespace ssl {

// Sorted.
std::vector<std::string> SamplerKeys();

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_SAMPLER_KEYS_H_
