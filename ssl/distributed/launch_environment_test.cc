// SPDX-License-Identifier: Apache-2.0
//
// What launchers leave in the environment, each set as its documentation shows it, and sets that nobody should trust.
#include "ssl/distributed/launch_environment.h"

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

EnvironmentVariable From(Variables variables) {
  return [variables = std::move(variables)](absl::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

// `variables` with those of `changes`; "-" takes one away.
Variables With(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) {
    variables[name] = value;
    if (value == "-") variables.erase(name);
  }
  return variables;
}

const Variables kTorchrun = {
    {"RANK", "5"},           {"WORLD_SIZE", "8"},      {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"},
    {"MASTER_ADDR", "gpu1"}, {"MASTER_PORT", "29500"}, {"GROUP_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "x"}};
const Variables kPod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                        {"RANK", "1"},
                        {"WORLD_SIZE", "3"},
                        {"MASTER_ADDR", "swav-master-0"},
                        {"MASTER_PORT", "23456"},
                        {"PET_NNODES", "3"},
                        {"PET_NPROC_PER_NODE", "auto"},
                        {"PET_NODE_RANK", "1"}};
// srun --ntasks=7 on node003 (2), node004 (2), node005 (2), gpu1 (1).
const Variables kSlurm = {{"SLURM_JOB_ID", "1234567"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NUM_TASKS", "7"},
                          {"SLURM_NTASKS", "7"},
                          {"SLURM_PROCID", "5"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "2"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                          {"SLURM_STEP_NODELIST", "node[003-005],gpu1"},
                          {"SLURM_JOB_NODELIST", "login,node[003-005],gpu1"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"MASTER_ADDR", "gpu7"}};

std::string Describe(const WorldPlace& place) {
  return absl::StrCat(place.source, ": rank ", place.rank, "/", place.size, " local ", place.local_rank, "/",
                      place.local_size, " at ", place.host, ":", place.port, place.store_is_served ? " served" : "",
                      place.listening_socket < 0 ? "" : absl::StrCat(" socket ", place.listening_socket), " restart ",
                      place.restart_count);
}

struct PlaceCase {
  const char* name;
  Variables variables;
  const char* place;
};

class FindWorldPlaceTest : public ::testing::TestWithParam<PlaceCase> {};

TEST_P(FindWorldPlaceTest, FindsIt) {
  ASSERT_OK_AND_ASSIGN(const WorldPlace place, FindWorldPlace(From(GetParam().variables)));
  EXPECT_EQ(Describe(place), GetParam().place);
}

constexpr char kOne[] = "one process: rank 0/1 local 0/1 at localhost:0 restart 0";

INSTANTIATE_TEST_SUITE_P(
    Environments, FindWorldPlaceTest,
    ::testing::Values(
        PlaceCase{"Nothing", {}, kOne},  //
        PlaceCase{"MasterAlone", {{"MASTER_ADDR", "gpu1"}, {"MASTER_PORT", "1"}}, kOne},
        PlaceCase{"Torchrun", kTorchrun, "torchrun: rank 5/8 local 1/4 at gpu1:29500 restart 0"},
        PlaceCase{"TorchrunAgain", With(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "2"}}),
                  "torchrun: rank 5/8 local 1/4 at gpu1:29500 restart 2"},
        PlaceCase{"TorchrunServesTheStore", With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
                  "torchrun: rank 5/8 local 1/4 at gpu1:29500 served restart 0"},
        PlaceCase{"OurLauncher", With(kTorchrun, {{"SSL_LISTENING_SOCKET", "9"}}),
                  "torchrun: rank 5/8 local 1/4 at gpu1:29500 socket 9 restart 0"},
        // All that `torchrun --no-python --nproc-per-node=2` of PyTorch 2.11 sets for its second rank.
        PlaceCase{"TorchrunOf211",
                  {{"GROUP_RANK", "0"},
                   {"GROUP_WORLD_SIZE", "1"},
                   {"LOCAL_RANK", "1"},
                   {"LOCAL_WORLD_SIZE", "2"},
                   {"MASTER_ADDR", "127.0.0.1"},
                   {"MASTER_PORT", "29500"},
                   {"OMP_NUM_THREADS", "1"},
                   {"RANK", "1"},
                   {"ROLE_NAME", "default"},
                   {"ROLE_RANK", "1"},
                   {"ROLE_WORLD_SIZE", "2"},
                   {"TORCHELASTIC_ERROR_FILE", "/tmp/torchelastic_126jz5qa/none_ddllj851/attempt_0/1/error.json"},
                   {"TORCHELASTIC_MAX_RESTARTS", "0"},
                   {"TORCHELASTIC_RESTART_COUNT", "0"},
                   {"TORCHELASTIC_RUN_ID", "none"},
                   {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
                   {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                   {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                   {"WORLD_SIZE", "2"}},
                  "torchrun: rank 1/2 local 1/2 at 127.0.0.1:29500 served restart 0"},
        PlaceCase{"TorchrunServesNoStore", With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}),
                  "torchrun: rank 5/8 local 1/4 at gpu1:29500 restart 0"},
        PlaceCase{"TorchrunOfOne",
                  {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}},
                  "torchrun: rank 0/1 local 0/1 at localhost:0 restart 0"},
        PlaceCase{"TorchrunInSlurm", With(kSlurm, kTorchrun), "torchrun: rank 5/8 local 1/4 at gpu1:29500 restart 0"},
        PlaceCase{"TorchrunInAPod", With(kPod, kTorchrun), "torchrun: rank 5/8 local 1/4 at gpu1:29500 restart 0"},
        PlaceCase{"Pod", kPod, "Kubernetes PyTorchJob: rank 1/3 local 0/1 at swav-master-0:23456 restart 0"},
        PlaceCase{"PodOfAnOlderOperator",
                  With(kPod, {{"PET_NNODES", "-"}, {"PET_NPROC_PER_NODE", "-"}, {"PET_NODE_RANK", "-"}}),
                  "Kubernetes PyTorchJob: rank 1/3 local 0/1 at swav-master-0:23456 restart 0"},
        PlaceCase{"PodAlone", {{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "auto"}}, kOne},
        PlaceCase{"RankByHand",
                  {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}},
                  "RANK and WORLD_SIZE: rank 1/2 local 0/1 at a:7 restart 0"},
        PlaceCase{"Slurm", kSlurm, "SLURM: rank 5/7 local 1/2 at node003:19567 restart 0"},
        PlaceCase{"SlurmLastNode", With(kSlurm, {{"SLURM_PROCID", "6"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "3"}}),
                  "SLURM: rank 6/7 local 0/1 at node003:19567 restart 0"},
        PlaceCase{"SlurmRequeued", With(kSlurm, {{"SLURM_RESTART_COUNT", "3"}}),
                  "SLURM: rank 5/7 local 1/2 at node003:19567 restart 3"},
        PlaceCase{"SlurmJobNodes", With(kSlurm, {{"SLURM_STEP_NODELIST", "-"}}),
                  "SLURM: rank 5/7 local 1/2 at login:19567 restart 0"},
        PlaceCase{"SlurmWithMaster", With(kSlurm, {{"MASTER_ADDR", "ib1"}, {"MASTER_PORT", "40050"}}),
                  "SLURM: rank 5/7 local 1/2 at ib1:40050 restart 0"},
        PlaceCase{"SlurmWithTheSameWorldSize", With(kSlurm, {{"WORLD_SIZE", "7"}}),
                  "SLURM: rank 5/7 local 1/2 at node003:19567 restart 0"},
        PlaceCase{"SlurmStepOfOneTask",
                  With(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}), kOne},
        PlaceCase{"SlurmStepOfOneTaskAlone", {{"SLURM_STEP_NUM_TASKS", "1"}}, kOne},
        // What sbatch gives the script itself, and salloc its shell, which are no step of srun.
        PlaceCase{"SlurmBatchScript",
                  With(kSlurm, {{"SLURM_STEP_NUM_TASKS", "-"}, {"SLURM_STEP_ID", "-"}, {"SLURM_PROCID", "0"}}), kOne},
        PlaceCase{"OpenMpi", kOpenMpi, "Open MPI: rank 3/4 local 1/2 at gpu7:29500 restart 0"},
        PlaceCase{"OpenMpiOnOneHost", With(kOpenMpi, {{"MASTER_ADDR", "-"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
                  "Open MPI: rank 3/4 local 1/4 at localhost:29500 restart 0"},
        PlaceCase{"OpenMpiPort", With(kOpenMpi, {{"MASTER_PORT", "7"}}),
                  "Open MPI: rank 3/4 local 1/2 at gpu7:7 restart 0"},
        // The ranks of another host are below mpirun's helper there, which is a task of srun.
        PlaceCase{"OpenMpiInSlurm", With(kSlurm, kOpenMpi), "Open MPI: rank 3/4 local 1/2 at gpu7:29500 restart 0"}),
    [](const auto& info) { return std::string(info.param.name); });

struct ErrorCase {
  const char* name;
  Variables variables;
  const char* variable;  // the one that the message names, with its value
  const char* expected;
};

class BadEnvironmentTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(BadEnvironmentTest, IsRefusedByName) {
  EXPECT_THAT(FindWorldPlace(From(GetParam().variables)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(GetParam().variable), HasSubstr(GetParam().expected))));
}

INSTANTIATE_TEST_SUITE_P(
    Environments, BadEnvironmentTest,
    ::testing::Values(
        ErrorCase{"NoSize", With(kTorchrun, {{"WORLD_SIZE", "-"}}), "WORLD_SIZE is not set", "integer from 1"},
        ErrorCase{"NoRank", With(kTorchrun, {{"RANK", "-"}}), "RANK is not set", "from 0 to 7 (WORLD_SIZE is 8)"},
        ErrorCase{"SizeAlone", {{"WORLD_SIZE", "2"}}, "RANK is not set", "WORLD_SIZE is set"},
        ErrorCase{"RankAlone", {{"RANK", "0"}}, "WORLD_SIZE is not set", "integer"},
        ErrorCase{"LocalRankAlone", {{"LOCAL_RANK", "0"}}, "WORLD_SIZE is not set", "integer"},
        ErrorCase{"RankNotBelowSize", With(kTorchrun, {{"RANK", "8"}}), "RANK is \"8\"", "0 to 7 (WORLD_SIZE is 8)"},
        ErrorCase{"NegativeRank", With(kTorchrun, {{"RANK", "-1"}}), "RANK is \"-1\"", "0 to 7"},
        ErrorCase{"NoNumber", With(kTorchrun, {{"RANK", "first"}}), "RANK is \"first\"", "an integer"},
        ErrorCase{"EmptyRank", With(kTorchrun, {{"RANK", ""}}), "RANK is \"\"", "an integer"},
        ErrorCase{"HugeSize", With(kTorchrun, {{"WORLD_SIZE", "99999999999999999999"}}), "WORLD_SIZE is \"9999", "to"},
        ErrorCase{"SizeOfNone", With(kTorchrun, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE is \"0\"", "from 1"},
        ErrorCase{"NoLocalSize", With(kTorchrun, {{"LOCAL_WORLD_SIZE", "-"}}), "LOCAL_WORLD_SIZE is not set", "from 1"},
        ErrorCase{"LocalSizeAboveSize", With(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}), "LOCAL_WORLD_SIZE is \"9\"",
                  "to 8 (WORLD_SIZE is 8)"},
        ErrorCase{"LocalRankNotBelowLocalSize", With(kTorchrun, {{"LOCAL_RANK", "4"}}), "LOCAL_RANK is \"4\"",
                  "0 to 3 (LOCAL_WORLD_SIZE gives this host 4"},
        ErrorCase{"LocalRankAboveRank", With(kTorchrun, {{"RANK", "1"}, {"LOCAL_RANK", "2"}}), "LOCAL_RANK is \"2\"",
                  "0 to 1"},
        ErrorCase{"StoreServedOrNot", With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "maybe"}}),
                  "TORCHELASTIC_USE_AGENT_STORE is \"maybe\"", "True or False"},
        ErrorCase{"NoMaster", With(kTorchrun, {{"MASTER_ADDR", "-"}}), "MASTER_ADDR is not set", "text"},
        ErrorCase{"EmptyMaster", With(kTorchrun, {{"MASTER_ADDR", ""}}), "MASTER_ADDR is \"\"", "not empty"},
        ErrorCase{"NoPort", With(kTorchrun, {{"MASTER_PORT", "-"}}), "MASTER_PORT is not set", "1 to 65535"},
        ErrorCase{"PortTooHigh", With(kTorchrun, {{"MASTER_PORT", "65536"}}), "MASTER_PORT is \"65536\"", "65535"},
        ErrorCase{"BadRestartCount", With(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "x"}}),
                  "TORCHELASTIC_RESTART_COUNT is \"x\"", "integer from 0"},
        ErrorCase{"SocketOfStdin", With(kTorchrun, {{"SSL_LISTENING_SOCKET", "0"}}), "SSL_LISTENING_SOCKET is \"0\"",
                  "integer from 3"},
        ErrorCase{"PodOfSeveralRanks", With(kPod, {{"PET_NPROC_PER_NODE", "4"}, {"WORLD_SIZE", "12"}}),
                  "PET_NPROC_PER_NODE is \"4\"", "torchrun"},
        ErrorCase{"PodOfSeveralRanksByGpus", With(kPod, {{"WORLD_SIZE", "12"}}), "PET_NNODES is \"3\"",
                  "12 (WORLD_SIZE is 12)"},
        ErrorCase{"ElasticPod",
                  {{"PET_RDZV_ENDPOINT", "swav-worker-0:29400"}, {"PET_NNODES", "1:4"}},
                  "RANK is not set",
                  "torchrun"},
        ErrorCase{
            "PodOfSizeWithoutRank", {{"PET_NNODES", "1"}, {"WORLD_SIZE", "8"}}, "RANK is not set", "WORLD_SIZE is set"},
        ErrorCase{"PodOfSeveralRanksWithoutRank",
                  {{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "8"}},
                  "PET_NPROC_PER_NODE is \"8\"",
                  "torchrun"},
        ErrorCase{"OneOfSeveralPods", {{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}}, "RANK is not set", "torchrun"},
        ErrorCase{"PodWithoutMaster", With(kPod, {{"MASTER_ADDR", "-"}}), "MASTER_ADDR is not set", "text"},
        ErrorCase{"SlurmWithoutProcId", With(kSlurm, {{"SLURM_PROCID", "-"}}), "SLURM_PROCID is not set", "0 to 6"},
        ErrorCase{"SlurmRankNotBelowSize", With(kSlurm, {{"SLURM_PROCID", "7"}}), "SLURM_PROCID is \"7\"", "0 to 6"},
        ErrorCase{"SlurmOtherWorldSize", With(kSlurm, {{"WORLD_SIZE", "8"}}), "WORLD_SIZE is \"8\"",
                  "7 to 7 (SLURM_STEP_NUM_TASKS is 7)"},
        ErrorCase{"SlurmLocalId", With(kSlurm, {{"SLURM_LOCALID", "2"}}), "SLURM_LOCALID is \"2\"", "0 to 1"},
        ErrorCase{"SlurmNode", With(kSlurm, {{"SLURM_NODEID", "4"}}), "2(x3),1", "up to node 4"},
        ErrorCase{"SlurmMoreTasksHereThanThereAre", With(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "9(x4)"}}),
                  "SLURM_STEP_TASKS_PER_NODE is \"9(x4)\"", "add up to 7 (SLURM_STEP_NUM_TASKS is 7)"},
        ErrorCase{"SlurmFewerTasksThanThereAre", With(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x3)"}}),
                  "SLURM_STEP_TASKS_PER_NODE is \"2(x3)\"", "add up to 7"},
        ErrorCase{"SlurmMoreNodesThanThereAre", With(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x999999999)"}}),
                  "SLURM_STEP_TASKS_PER_NODE is \"2(x999999999)\"", "add up to 7"},
        ErrorCase{"SlurmOtherNodes", With(kSlurm, {{"SLURM_STEP_NODELIST", "node[1-99999999999]"}}),
                  "SLURM_STEP_NODELIST is \"node[1-99999999999]\"",
                  "4 hosts (SLURM_STEP_TASKS_PER_NODE is \"2(x3),1\")"},
        ErrorCase{"SlurmCores", With(kSlurm, {{"SLURM_CPUS_PER_TASK", "0"}}), "SLURM_CPUS_PER_TASK is \"0\"",
                  "integer from 1"},
        ErrorCase{"SpaceBeforeRank", With(kTorchrun, {{"RANK", " 0"}}), "RANK is \" 0\"", "an integer"},
        ErrorCase{"SignedRank", With(kTorchrun, {{"RANK", "+0"}}), "RANK is \"+0\"", "an integer"},
        ErrorCase{"SlurmNoNodes", With(kSlurm, {{"SLURM_STEP_NODELIST", "-"}, {"SLURM_JOB_NODELIST", "-"}}),
                  "SLURM_JOB_NODELIST is not set", "text"},
        ErrorCase{"SlurmBadNodes", With(kSlurm, {{"SLURM_STEP_NODELIST", "node["}}), "\"node[\"", "expected hosts"},
        ErrorCase{"SlurmNoJob", With(kSlurm, {{"SLURM_JOB_ID", "-"}}), "SLURM_JOB_ID is not set", "integer"},
        ErrorCase{"OpenMpiWithoutMaster", With(kOpenMpi, {{"MASTER_ADDR", "-"}}), "MASTER_ADDR is not set",
                  "mpirun -x MASTER_ADDR=HOST"},
        ErrorCase{"OpenMpiWithoutSize", With(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "-"}}),
                  "OMPI_COMM_WORLD_SIZE is not set", "integer"},
        ErrorCase{"OpenMpiOtherWorldSize", With(kOpenMpi, {{"WORLD_SIZE", "2"}}), "WORLD_SIZE is \"2\"",
                  "OMPI_COMM_WORLD_SIZE is 4"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SlurmTest, CoresOfATaskAreKnown) {
  ASSERT_OK_AND_ASSIGN(const WorldPlace given, FindWorldPlace(From(With(kSlurm, {{"SLURM_CPUS_PER_TASK", "12"}}))));
  EXPECT_EQ(given.cores, 12);
  ASSERT_OK_AND_ASSIGN(const WorldPlace unknown, FindWorldPlace(From(kSlurm)));
  EXPECT_EQ(unknown.cores, 0);
}

TEST(SlurmPortTest, StaysInItsRangeAndTellsJobsAndStepsApart) {
  std::set<int> ports;
  for (int64_t job = 99990; job < 100020; ++job) {
    for (int64_t step = 0; step < 4; ++step) ports.insert(SlurmPort(job, step));
  }
  EXPECT_EQ(ports.size(), 30 * 4);
  EXPECT_GE(*ports.begin(), 15000);
  EXPECT_LE(*ports.rbegin(), 24999);
  EXPECT_EQ(SlurmPort(4294967295, 4294967290), SlurmPort(7295, 7290));  // steps that SLURM numbers from the other end
}

TEST(ProcessVariableTest, IsThatOfTheProcess) {
  ASSERT_EQ(setenv("SSL_TEST_SET", "", 1), 0);
  ASSERT_EQ(unsetenv("SSL_TEST_UNSET"), 0);
  EXPECT_EQ(ProcessVariable("SSL_TEST_SET"), "");
  EXPECT_EQ(ProcessVariable("SSL_TEST_UNSET"), std::nullopt);
}

}  // namespace
}  // namespace ssl
