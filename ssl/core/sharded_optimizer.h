// SPDX-License-Identifier: Apache-2.0
//
// The work of one optimizer, shared by the ranks (ZeRO stage 1: Rajbhandari et al. 2020, arXiv:1910.02054; OSS of
// fairscale). Each parameter has an owner, the one rank that updates it and holds the optimizer's state for it; then
// all ranks get what the owners have updated.
//
//   optimizer = ShardOptimizer(std::move(optimizer), communicator);  // any optimizer
//   SSL_RETURN_IF_ERROR(optimizer->Initialize(groups));
//   optimizer->Step(found_inf);
//   SSL_RETURN_IF_ERROR(optimizer->GatherUpdates());
//
// Parameters are whole, so that an optimizer that adapts its rate to a parameter's norm does what it does alone. Owners
// follow from the order and the sizes of the parameters and the number of ranks. The state has the names that it has
// without sharding, each on one rank, so that any number of ranks resumes it, with or without sharding (rank_state.h).
#ifndef SSL_CORE_SHARDED_OPTIMIZER_H_
#define SSL_CORE_SHARDED_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "ssl/core/optimizer.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// groups() has all parameters on all ranks: what is set there holds for the next step. Gradients have to be the same on
// all ranks, as those of GradientReducer are; the optimizer may change those of a parameter on its owner alone.
// Initialize and GatherUpdates are collective. InvalidArgument of Initialize for fewer parameters than ranks.
// `communicator` outlives the result.
std::unique_ptr<Optimizer> ShardOptimizer(std::unique_ptr<Optimizer> optimizer, Communicator& communicator);

// The owner of each of some parameters, whose sizes these are: the largest first, each to the rank that has least so
// far, the first of these.
std::vector<int64_t> AssignOwners(const std::vector<int64_t>& sizes, int64_t ranks);

}  // namespace ssl

#endif  // SSL_CORE_SHARDED_OPTIMIZER_H_
