// SPDX-License-Identifier: Apache-2.0
//
// Which rank of how many a process is, and where its world meets: read from what the program that started it left in
// the environment. The first of these sets that is there decides:
//
// 1. torchrun, and any launcher that speaks its language (ours: ssl/launch): LOCAL_RANK, RANK, WORLD_SIZE,
//    LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT; TORCHELASTIC_RESTART_COUNT (0 when it is not set) and
//    TORCHELASTIC_USE_AGENT_STORE; of our launcher SSL_LAUNCHER, SSL_LISTENING_SOCKET, and SSL_STORE_FILE instead of
//    MASTER_*. https://pytorch.org/docs/stable/elastic/run.html#environment-variables
// 2. RANK without LOCAL_RANK, one rank for each host, as Kubeflow's PyTorchJob starts its pods: RANK, WORLD_SIZE,
//    MASTER_ADDR, MASTER_PORT. PET_* are defaults of torchrun's own flags: PET_NPROC_PER_NODE above 1, PET_NNODES that
//    is not WORLD_SIZE, and PET_RDZV_ENDPOINT or a PET_NNODES above 1 without RANK ask for torchrun in each pod, and are
//    refused without it.
//    https://github.com/kubeflow/training-operator, pkg/controller.v1/pytorch/envvar.go and elastic.go
// 3. Open MPI's mpirun: OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE. It tells no rank where rank 0 is: with
//    ranks on several hosts MASTER_ADDR has to be passed on (mpirun -x MASTER_ADDR=HOST); MASTER_PORT is 29500 unless
//    it is set. Before SLURM, because mpirun starts its helpers on other hosts with srun, and ranks inherit their
//    SLURM_*. https://docs.open-mpi.org/en/v5.0.x/tuning-apps/environment-var.html
// 4. A step of SLURM (srun): SLURM_STEP_NUM_TASKS, SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID,
//    SLURM_STEP_TASKS_PER_NODE, whose sum and number of hosts have to be those of the step; SLURM_RESTART_COUNT;
//    SLURM_CPUS_PER_TASK, where --cpus-per-task was given. MASTER_ADDR, or the first host of SLURM_STEP_NODELIST (or
//    SLURM_JOB_NODELIST); MASTER_PORT, or SlurmPort(). SLURM_NTASKS is not read: the batch script itself, and a shell
//    of salloc, have it too, though they are one process. A step of one task is one process.
//    https://slurm.schedmd.com/srun.html, "Output environment variables"
// 5. None of them: one process, a world of one.
//
// A set that is incomplete, contradicts itself, or holds what is no number or empty is InvalidArgument: the message
// names the variable, its value and what was expected. WORLD_SIZE beside 3 or 4 has to be their size.
// MASTER_ADDR and MASTER_PORT alone mean nothing. Functions without state; safe from any thread, as long as none
// changes the environment.
//
//   SSL_ASSIGN_OR_RETURN(const WorldPlace place, FindWorldPlace(ProcessVariable));
#ifndef SSL_DISTRIBUTED_LAUNCH_ENVIRONMENT_H_
#define SSL_DISTRIBUTED_LAUNCH_ENVIRONMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/distributed/environment_reader.h"

namespace ssl {

inline constexpr char kSlurmSource[] = "SLURM";  // WorldPlace::source of a step's task

struct WorldPlace {
  int64_t rank = 0;  // 0 .. size - 1
  int64_t size = 1;
  int64_t local_rank = 0;  // among the ranks on this host; picks the device
  int64_t local_size = 1;  // ranks on this host
  // Where the world's store is; port is 0 in a world of one that has none.
  std::string host = "localhost";
  int port = 0;
  // INIT_METHOD=file: the ranks meet in this file, not at host:port.
  std::string store_file;
  // torchrun's agent serves the store at host:port already (that of PyTorch 2.11 does): rank 0 cannot bind the port,
  // and every rank is a client.
  bool store_is_served = false;
  // Rank 0 of our launcher: a socket that listens at `port`, inherited, to be taken over; -1: none.
  int listening_socket = -1;
  // How often the world was started again, as whoever started this rank counts: torchrun's agents of two hosts need not
  // agree. Keys of a store_file differ by it.
  int64_t restart_count = 0;
  // Cores that the scheduler has given each rank; 0: it does not say.
  int64_t cores = 0;
  std::string source = "one process";
};

// `variable` gives the values: ProcessVariable for those of this process.
absl::StatusOr<WorldPlace> FindWorldPlace(const EnvironmentVariable& variable);

// Ports 15000 to 24999, below those that Linux gives to clients (32768 and above). Jobs that follow one another on a
// host differ, and so do steps of one job.
int SlurmPort(int64_t job_id, int64_t step_id);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_LAUNCH_ENVIRONMENT_H_
