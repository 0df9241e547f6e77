// SPDX-License-Identifier: Apache-2.0
//
// The CUDA graph of device_graph.h. Only a program that was built with --config=cuda has it; a GPU is asked for by
// Record, not before.
//
// Record captures: it runs the work on a stream of its own, on which nothing is computed meanwhile, and replays the
// graph once on the caller's, which is ordered behind. Other threads may go on using the GPU, but for its default
// generator: what they draw from it meanwhile is an exception of theirs. What libraries make at their first call cannot
// be captured: the same thread has to have done the work once in the ordinary way before, on tensors of the same
// shapes. Memory that the work takes is the graph's own, and stays until the graph and the tensors in it are gone; that
// of the caching allocator is given back before.
//
// After an error, tensors that the work made have no values. The stream is as it was; dropout and other random numbers
// go on.
#ifndef SSL_CORE_CUDA_GRAPH_H_
#define SSL_CORE_CUDA_GRAPH_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

// Adds it to registries->device_graphs as "cuda"; nothing in a program that was built without CUDA. AlreadyExists when
// the name is taken.
absl::Status RegisterCudaGraph(Registries* registries);

}  // namespace ssl

#endif  // SSL_CORE_CUDA_GRAPH_H_
