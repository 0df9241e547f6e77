// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/world_options.h"

namespace ssl {

void WorldOptions::VisitFields(FieldVisitor& visitor) {
  constexpr double kMostRanks = 1 << 20;
  constexpr double kMostThreads = 1024;
  constexpr double kWeekSeconds = 7 * 24 * 3600;
  visitor.Field("NUM_NODES", &nodes,
                Doc("hosts; where the environment has ranks, it counts").Between(1, kMostRanks).MayChange());
  visitor.Field("NUM_PROC_PER_NODE", &ranks_per_node,
                Doc("ranks on each host; the command starts them unless the environment has ranks")
                    .Between(1, kMostRanks)
                    .MayChange());
  visitor.Field("VIRTUAL_RANKS", &virtual_ranks,
                Doc("ranks that the processes do in turn, as many each, bit by bit the same on 1, 2 or all of them; 0: "
                    "each process is a rank (ours)")
                    .Between(0, kMostRanks));
  visitor.Field("THREADS_PER_VIRTUAL_RANK", &threads_per_virtual_rank,
                Doc("with which each process computes then: sums depend on it (ours)").Between(1, kMostThreads));
  visitor.Field("INIT_METHOD", &init_method,
                Doc("how ranks that the command starts meet").OneOf({"tcp", "env", "file"}).MayChange());
  visitor.Field(
      "RUN_ID", &run_id,
      Doc("tcp: HOST:PORT of the first host, auto: a free port; file: a path that all ranks reach").MayChange());
  visitor.Field("BACKEND", &backend,
                Doc("what tensors of GPUs go over; those of the CPU go over gloo, with both")
                    .OneOf({"nccl", "gloo"})
                    .MayChange());
  visitor.Field("NCCL_DEBUG", &nccl_debug, Doc("NCCL prints what it does (NCCL_DEBUG=INFO)").MayChange());
  visitor.Field("NCCL_SOCKET_NTHREADS", &nccl_socket_threads,
                Doc("threads of NCCL for each connection by TCP; empty: its own choice").MayChange());
  visitor.Field(
      "CONNECT_SECONDS", &connect_seconds,
      Doc("how long ranks wait for each other at the start (ours)").Between(1, kWeekSeconds).Unit("s").MayChange());
  visitor.Field(
      "TIMEOUT_SECONDS", &timeout_seconds,
      Doc("how long an operation waits for the other ranks (ours)").Between(1, kWeekSeconds).Unit("s").MayChange());
}

}  // namespace ssl
