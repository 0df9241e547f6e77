// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/testing/process_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

// Set in a rank's process: "<rank> <directory of the world>".
constexpr char kRankVariable[] = "SSL_PROCESS_WORLD_RANK";

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string StatusFile(const std::string& directory, int64_t rank) { return absl::StrCat(directory, "/status.", rank); }

std::string OutputFile(const std::string& directory, int64_t rank) { return absl::StrCat(directory, "/output.", rank); }

// Without what tells a GoogleTest program where to report and which part of the tests is its own.
std::vector<std::string> EnvironmentOfRank(int64_t rank, const std::string& directory) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const absl::string_view text = *variable;
    const bool of_test = absl::StartsWith(text, "GTEST_") || absl::StartsWith(text, "XML_OUTPUT_FILE") ||
                         absl::StartsWith(text, "TEST_PREMATURE_EXIT_FILE") || absl::StartsWith(text, "TEST_SHARD") ||
                         absl::StartsWith(text, "TEST_TOTAL_SHARDS") || absl::StartsWith(text, "OMP_NUM_THREADS");
    if (!of_test) variables.emplace_back(text);
  }
  variables.push_back("OMP_NUM_THREADS=1");
  variables.push_back(absl::StrCat(kRankVariable, "=", rank, " ", directory));
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t StartRank(int64_t rank, const std::string& directory) {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  std::vector<std::string> arguments = {"rank",
                                        absl::StrCat("--gtest_filter=", test.test_suite_name(), ".", test.name())};
  std::vector<std::string> environment = EnvironmentOfRank(rank, directory);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> environment_pointers = Pointers(environment);
  const std::string output = OutputFile(directory, rank);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  // Between fork and exec only what is safe in a program with threads.
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives its test
  if (getppid() != parent) _exit(1);
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execve("/proc/self/exe", argument_pointers.data(), environment_pointers.data());
  _exit(127);
}

// The rank's own word, or how it ended without one.
absl::Status StatusOfRank(int64_t rank, const std::string& directory, int wait_status) {
  const std::pair<std::string, std::string> words =
      absl::StrSplit(ReadText(StatusFile(directory, rank)), absl::MaxSplits(' ', 1));
  int code = 0;
  if (absl::SimpleAtoi(words.first, &code)) return absl::Status(static_cast<absl::StatusCode>(code), words.second);
  return absl::UnavailableError(absl::StrCat("rank ", rank, " ended without a result, ",
                                             WIFSIGNALED(wait_status)
                                                 ? absl::StrCat("by signal ", WTERMSIG(wait_status))
                                                 : absl::StrCat("with exit code ", WEXITSTATUS(wait_status)),
                                             ":\n", ReadText(OutputFile(directory, rank))));
}

// Ranks that have stopped themselves are killed last: the others are to notice.
std::vector<int> WaitFor(const std::vector<pid_t>& ranks) {
  std::vector<int> statuses(ranks.size());
  std::vector<size_t> stopped;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    waitpid(ranks[rank], &statuses[rank], WUNTRACED);
    if (WIFSTOPPED(statuses[rank])) stopped.push_back(rank);
  }
  for (const size_t rank : stopped) {
    kill(ranks[rank], SIGKILL);
    waitpid(ranks[rank], &statuses[rank], 0);
  }
  return statuses;
}

absl::Status RunParent(int64_t size) {
  const std::string directory = MakeTempDir("world");
  std::vector<pid_t> ranks;
  for (int64_t rank = 0; rank < size; ++rank) ranks.push_back(StartRank(rank, directory));
  const std::vector<int> wait_statuses = WaitFor(ranks);
  absl::Status lowest;
  for (int64_t rank = 0; rank < size; ++rank) {
    lowest.Update(StatusOfRank(rank, directory, wait_statuses[rank]));
    if (WIFEXITED(wait_statuses[rank]) && WEXITSTATUS(wait_statuses[rank]) != 0) {
      ADD_FAILURE() << "rank " << rank << " of " << size << ":\n" << ReadText(OutputFile(directory, rank));
    }
  }
  return lowest;
}

GlooOptions OptionsOfRank(int64_t rank, int64_t size, const std::string& directory, absl::Duration timeout) {
  GlooOptions options;
  options.rendezvous.rank = rank;
  options.rendezvous.size = size;
  options.rendezvous.file = absl::StrCat(directory, "/store");
  options.interface = "lo";
  options.timeout = timeout;
  return options;
}

}  // namespace

absl::Status ProcessWorld::RunWithOptions(const std::function<absl::Status(GlooOptions options)>& rank_main) const {
  const char* place = std::getenv(kRankVariable);
  if (place == nullptr) return RunParent(size_);
  const std::pair<std::string, std::string> words = absl::StrSplit(place, absl::MaxSplits(' ', 1));
  int64_t rank = 0;
  SSL_RET_CHECK(absl::SimpleAtoi(words.first, &rank), place);
  const absl::Status status = rank_main(OptionsOfRank(rank, size_, words.second, timeout_));
  std::ofstream(StatusFile(words.second, rank)) << status.raw_code() << " " << status.message();
  return status;
}

absl::Status ProcessWorld::Run(const std::function<absl::Status(Communicator&)>& rank_main) const {
  return RunWithOptions([&rank_main](const GlooOptions& options) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
    return rank_main(*communicator);
  });
}

}  // namespace ssl
