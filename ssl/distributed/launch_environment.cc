// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/launch_environment.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/slurm_lists.h"

namespace ssl {
namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kMostDescriptors = 1 << 30;
constexpr int64_t kTorchPort = 29500;  // torchrun's default
constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max();

// One source's names for the same four numbers.
struct Names {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr Names kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kSlurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"};
constexpr char kSlurmHosts[] = "SLURM_STEP_NODELIST";

std::string Is(absl::string_view name, int64_t value) { return absl::StrCat("(", name, " is ", value, ")"); }

absl::Status ReadRank(const EnvironmentReader& reader, const Names& names, WorldPlace* place) {
  SSL_ASSIGN_OR_RETURN(place->size, reader.Integer(names.size, 1, kMostRanks));
  SSL_ASSIGN_OR_RETURN(place->rank, reader.Integer(names.rank, 0, place->size - 1, Is(names.size, place->size)));
  return absl::OkStatus();
}

// place->local_size is known. On its host no rank comes before those of a lower local rank.
absl::Status ReadLocalRank(const EnvironmentReader& reader, const Names& names, WorldPlace* place) {
  const int64_t most = std::min(place->local_size - 1, place->rank);
  const std::string reason = absl::StrCat("(", names.local_size, " gives this host ", place->local_size, ", ",
                                          names.rank, " is ", place->rank, ")");
  SSL_ASSIGN_OR_RETURN(place->local_rank, reader.Integer(names.local_rank, 0, most, reason));
  return absl::OkStatus();
}

absl::Status ReadLocal(const EnvironmentReader& reader, const Names& names, WorldPlace* place) {
  SSL_ASSIGN_OR_RETURN(place->local_size,
                       reader.Integer(names.local_size, 1, place->size, Is(names.size, place->size)));
  return ReadLocalRank(reader, names, place);
}

// MASTER_ADDR and MASTER_PORT; nothing of either is needed by a world of one.
absl::Status ReadMaster(const EnvironmentReader& reader, WorldPlace* place) {
  if (place->size > 1 || reader.Has("MASTER_ADDR")) {
    SSL_ASSIGN_OR_RETURN(place->host, reader.Text("MASTER_ADDR"));
  }
  if (place->size > 1 || reader.Has("MASTER_PORT")) {
    SSL_ASSIGN_OR_RETURN(place->port, reader.Integer("MASTER_PORT", 1, kMostPort));
  }
  return absl::OkStatus();
}

// Scripts of SLURM and Open MPI export WORLD_SIZE now and then; it may not say anything else than they do.
absl::Status CheckWorldSize(const EnvironmentReader& reader, const Names& names, const WorldPlace& place) {
  if (!reader.Has("WORLD_SIZE")) return absl::OkStatus();
  return reader.Integer("WORLD_SIZE", place.size, place.size, Is(names.size, place.size)).status();
}

// Python's str(True) or str(False), as torch writes and reads it.
absl::StatusOr<bool> AgentServesStore(const EnvironmentReader& reader) {
  constexpr char kName[] = "TORCHELASTIC_USE_AGENT_STORE";
  if (!reader.Has(kName)) return false;
  SSL_ASSIGN_OR_RETURN(const std::string served, reader.Text(kName));
  if (served == "True" || served == "False") return served == "True";
  return reader.Error(kName, "True or False");
}

absl::StatusOr<WorldPlace> TorchrunPlace(const EnvironmentReader& reader) {
  WorldPlace place;
  place.source = reader.Has("SSL_LAUNCHER") ? "our launcher" : "torchrun";
  SSL_RETURN_IF_ERROR(ReadRank(reader, kTorchrun, &place));
  SSL_RETURN_IF_ERROR(ReadLocal(reader, kTorchrun, &place));
  if (reader.Has("SSL_STORE_FILE")) {
    SSL_ASSIGN_OR_RETURN(place.store_file, reader.Text("SSL_STORE_FILE"));
  } else {
    SSL_RETURN_IF_ERROR(ReadMaster(reader, &place));
  }
  SSL_ASSIGN_OR_RETURN(place.restart_count, reader.IntegerOr("TORCHELASTIC_RESTART_COUNT", 0, kAnyNumber, 0));
  SSL_ASSIGN_OR_RETURN(place.store_is_served, AgentServesStore(reader));
  if (reader.Has("SSL_LISTENING_SOCKET")) {
    SSL_ASSIGN_OR_RETURN(place.listening_socket, reader.Integer("SSL_LISTENING_SOCKET", 3, kMostDescriptors));
  }
  return place;
}

constexpr char kOneRankPerPod[] = ": one rank in each pod, or start the command with torchrun --no-python";

// torchrun makes ranks of them, and nobody else can.
absl::Status CheckOneProcessPerPod(const EnvironmentReader& reader) {
  for (const char* name : {"PET_NPROC_PER_NODE", "PET_N_PROC_PER_NODE"}) {
    const absl::StatusOr<int64_t> processes = reader.Integer(name, 2, kMostRanks);
    if (processes.ok()) return reader.Error(name, absl::StrCat("1", kOneRankPerPod));
  }
  return absl::OkStatus();
}

// Of a pod that is to run several processes, the operator sets RANK to the pod's number and WORLD_SIZE to the processes
// of all pods.
absl::Status CheckOneRankPerPod(const EnvironmentReader& reader, const WorldPlace& place) {
  SSL_RETURN_IF_ERROR(CheckOneProcessPerPod(reader));
  int64_t number = 0;
  const absl::StatusOr<std::string> pods = reader.Text("PET_NNODES");
  if (!pods.ok() || (absl::SimpleAtoi(*pods, &number) && number == place.size)) return absl::OkStatus();
  return reader.Error("PET_NNODES", absl::StrCat(place.size, " ", Is("WORLD_SIZE", place.size), kOneRankPerPod));
}

absl::StatusOr<WorldPlace> OneRankPerHostPlace(const EnvironmentReader& reader) {
  WorldPlace place;
  place.source = reader.Has("KUBERNETES_SERVICE_HOST") ? "Kubernetes PyTorchJob" : "RANK and WORLD_SIZE";
  SSL_RETURN_IF_ERROR(ReadRank(reader, kTorchrun, &place));
  SSL_RETURN_IF_ERROR(CheckOneRankPerPod(reader, place));
  SSL_RETURN_IF_ERROR(ReadMaster(reader, &place));
  return place;
}

absl::Status AsksForTorchrun(const EnvironmentReader& reader, const char* name) {
  return reader.Error("RANK", absl::StrCat("the rank that torchrun gives: ", name,
                                           " is set for it, so start the command with torchrun --no-python"));
}

// An elastic PyTorchJob without a master: torchrun agrees on the ranks.
absl::StatusOr<WorldPlace> ElasticPodPlace(const EnvironmentReader& reader) {
  return AsksForTorchrun(reader, "PET_RDZV_ENDPOINT");
}

absl::StatusOr<WorldPlace> SizeWithoutRank(const EnvironmentReader& reader) {
  return reader.Error("RANK", "a rank, because WORLD_SIZE is set");
}

// An operator that sets nothing but torchrun's defaults: each of several pods would train by itself.
absl::StatusOr<WorldPlace> PodWithoutRankPlace(const EnvironmentReader& reader) {
  const absl::StatusOr<int64_t> pods = reader.Integer("PET_NNODES", 1, 1);
  if (!pods.ok()) return AsksForTorchrun(reader, "PET_NNODES");
  SSL_RETURN_IF_ERROR(CheckOneProcessPerPod(reader));
  if (reader.Has("WORLD_SIZE")) return SizeWithoutRank(reader);
  return WorldPlace();
}

absl::StatusOr<WorldPlace> OpenMpiPlace(const EnvironmentReader& reader) {
  WorldPlace place;
  place.source = "Open MPI";
  SSL_RETURN_IF_ERROR(ReadRank(reader, kOpenMpi, &place));
  SSL_RETURN_IF_ERROR(ReadLocal(reader, kOpenMpi, &place));
  SSL_RETURN_IF_ERROR(CheckWorldSize(reader, kOpenMpi, place));
  SSL_ASSIGN_OR_RETURN(place.port, reader.IntegerOr("MASTER_PORT", 1, kMostPort, kTorchPort));
  if (reader.Has("MASTER_ADDR")) {
    SSL_ASSIGN_OR_RETURN(place.host, reader.Text("MASTER_ADDR"));
  } else if (place.local_size < place.size) {
    return reader.Error("MASTER_ADDR", "the host of rank 0, which Open MPI does not tell: mpirun -x MASTER_ADDR=HOST");
  }
  return place;
}

absl::StatusOr<std::string> SlurmHost(const EnvironmentReader& reader) {
  if (reader.Has("MASTER_ADDR")) return reader.Text("MASTER_ADDR");
  const char* name = reader.Has(kSlurmHosts) ? kSlurmHosts : "SLURM_JOB_NODELIST";
  SSL_ASSIGN_OR_RETURN(const std::string hosts, reader.Text(name));
  return FirstHost(hosts);
}

absl::StatusOr<int64_t> SlurmPortOf(const EnvironmentReader& reader) {
  if (reader.Has("MASTER_PORT")) return reader.Integer("MASTER_PORT", 1, kMostPort);
  SSL_ASSIGN_OR_RETURN(const int64_t job, reader.Integer("SLURM_JOB_ID", 0, kAnyNumber));
  SSL_ASSIGN_OR_RETURN(const int64_t step, reader.IntegerOr("SLURM_STEP_ID", 0, kAnyNumber, 0));
  return SlurmPort(job, step);
}

// Variables of two steps mixed, as by a shell that one step has started and another goes on in, name hosts or ranks
// that are not there: all would wait for them.
absl::Status CheckTaskCounts(const EnvironmentReader& reader, const std::string& tasks_per_node,
                             const WorldPlace& place) {
  SSL_ASSIGN_OR_RETURN(const TaskCount counted, CountTasks(tasks_per_node));
  if (counted.tasks != place.size) {
    return reader.Error(kSlurm.local_size,
                        absl::StrCat("counts that add up to ", place.size, " ", Is(kSlurm.size, place.size)));
  }
  if (!reader.Has(kSlurmHosts)) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const std::string hosts, reader.Text(kSlurmHosts));
  SSL_ASSIGN_OR_RETURN(const int64_t num_hosts, CountHosts(hosts));
  if (num_hosts == counted.nodes) return absl::OkStatus();
  return reader.Error(kSlurmHosts, absl::StrCat(counted.nodes, counted.nodes == 1 ? " host (" : " hosts (",
                                                kSlurm.local_size, " is \"", tasks_per_node, "\")"));
}

absl::Status ReadSlurmNode(const EnvironmentReader& reader, WorldPlace* place) {
  SSL_ASSIGN_OR_RETURN(const int64_t node, reader.Integer("SLURM_NODEID", 0, kMostRanks));
  SSL_ASSIGN_OR_RETURN(const std::string tasks_per_node, reader.Text(kSlurm.local_size));
  SSL_RETURN_IF_ERROR(CheckTaskCounts(reader, tasks_per_node, *place));
  SSL_ASSIGN_OR_RETURN(place->local_size, TasksOnNode(tasks_per_node, node));
  return ReadLocalRank(reader, kSlurm, place);
}

absl::StatusOr<WorldPlace> SlurmPlace(const EnvironmentReader& reader) {
  WorldPlace place;
  place.source = kSlurmSource;
  SSL_ASSIGN_OR_RETURN(place.size, reader.Integer(kSlurm.size, 1, kMostRanks));
  if (place.size > 1 || reader.Has(kSlurm.rank)) SSL_RETURN_IF_ERROR(ReadRank(reader, kSlurm, &place));
  SSL_RETURN_IF_ERROR(CheckWorldSize(reader, kSlurm, place));
  if (place.size == 1) return WorldPlace();
  SSL_RETURN_IF_ERROR(ReadSlurmNode(reader, &place));
  SSL_ASSIGN_OR_RETURN(place.cores, reader.IntegerOr("SLURM_CPUS_PER_TASK", 1, kMostRanks, 0));
  SSL_ASSIGN_OR_RETURN(place.host, SlurmHost(reader));
  SSL_ASSIGN_OR_RETURN(place.port, SlurmPortOf(reader));
  SSL_ASSIGN_OR_RETURN(place.restart_count, reader.IntegerOr("SLURM_RESTART_COUNT", 0, kAnyNumber, 0));
  return place;
}

// A source is there when its variable is.
struct Source {
  const char* variable;
  absl::StatusOr<WorldPlace> (*read)(const EnvironmentReader& reader);
};
constexpr Source kSources[] = {
    {"LOCAL_RANK", TorchrunPlace},          {"RANK", OneRankPerHostPlace},
    {"PET_RDZV_ENDPOINT", ElasticPodPlace}, {"OMPI_COMM_WORLD_SIZE", OpenMpiPlace},
    {"OMPI_COMM_WORLD_RANK", OpenMpiPlace}, {"SLURM_STEP_NUM_TASKS", SlurmPlace},
    {"PET_NNODES", PodWithoutRankPlace},    {"WORLD_SIZE", SizeWithoutRank},
};

}  // namespace

absl::StatusOr<WorldPlace> FindWorldPlace(const EnvironmentVariable& variable) {
  const EnvironmentReader reader(variable);
  for (const Source& source : kSources) {
    if (reader.Has(source.variable)) return source.read(reader);
  }
  return WorldPlace();
}

int SlurmPort(int64_t job_id, int64_t step_id) {
  constexpr int64_t kFirst = 15000;
  constexpr int64_t kPorts = 10000;
  constexpr int64_t kBetweenSteps = 997;  // so that step 1 of a job does not meet step 0 of the next
  return static_cast<int>(kFirst + (job_id % kPorts + kBetweenSteps * (step_id % kPorts)) % kPorts);
}

}  // namespace ssl
