// SPDX-License-Identifier: Apache-2.0
//
// The state of a run whose parameters are shared out between ranks (parameter_shards.h), in the form of one whose
// parameters are whole: a checkpoint does not tell the two apart, and either loads it on any number of ranks.
//
// A state tensor is of shards when its name is "<scopes>/<parameter>" with the name of a sharded parameter, and its
// shape that of the shard: the model's own ("model/trunk.conv1.weight"), and what an optimizer keeps for each value
// ("optimizer/momentum/trunk.conv1.weight"). So is a row [n] of the name "<scopes>/averages" that has the elements of
// all float32 parameters one after the other, in the order of the model's state ("hooks/ema/averages").
#ifndef SSL_CORE_SHARDED_STATE_H_
#define SSL_CORE_SHARDED_STATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/model.h"
#include "ssl/io/safetensors.h"

namespace ssl {

// Takes what is of shards out of `state`, and returns it whole on rank 0, in memory of the host; nothing on the others.
// One tensor is gathered at a time. `model` may be null, or not sharded: then nothing happens. Collective. May throw
// LibTorch exceptions.
absl::StatusOr<std::vector<NamedTensor>> TakeWholeState(Model* model, std::vector<NamedTensor>* state);

// The reverse: whole tensors become this rank's rows. Local.
absl::Status KeepOwnRows(Model* model, std::vector<NamedTensor>* state);

}  // namespace ssl

#endif  // SSL_CORE_SHARDED_STATE_H_
