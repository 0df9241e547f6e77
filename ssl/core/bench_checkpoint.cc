// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint costs, beside the same bytes written raw and synced:
//
//   ./bazelw run -c opt //ssl/core:bench_checkpoint -- DIRECTORY [MEGABYTES] [SAVES]
//
// Saves and raw writes take turns, so that a disk that is busy meanwhile is busy for both, and so do restores and what
// torch.load with a copy into the model does at least: reading into new memory, and copying. Medians are printed.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/checkpointer.h"
#include "ssl/distributed/local_communicator.h"

namespace {

constexpr int64_t kMegabyte = 1'000'000;
constexpr int64_t kTensors = 100;

// A model and an optimizer of the same size, as SGD with momentum has.
struct Run : public ssl::Stateful {
  explicit Run(int64_t bytes) {
    const int64_t values = bytes / static_cast<int64_t>(sizeof(float)) / kTensors;
    for (int64_t i = 0; i < kTensors; ++i) tensors.push_back(at::randn({values}));
    state.max_iterations = 1'000'000;
  }
  void VisitState(ssl::StateVisitor& visitor) override {
    for (int64_t i = 0; i < kTensors; ++i) {
      visitor.Tensor(absl::StrCat(i % 2 == 0 ? "model/" : "optimizer/", i), tensors[i]);
    }
    visitor.Scope("train_state", state);
  }
  std::vector<at::Tensor> tensors;
  ssl::TrainState state;
};

double Seconds(const std::function<absl::Status()>& work, absl::Status* status) {
  const absl::Time begin = absl::Now();
  status->Update(work());
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// By the system's calls alone, and by nothing of this program that may be made faster.
absl::Status WriteRaw(const Run& run, const std::string& path) {
  SSL_RETURN_IF_ERROR(ssl::PosixFileSystem().RemoveAll(path));
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool ok = fd >= 0;
  for (const at::Tensor& tensor : run.tensors) {
    ok = ok && write(fd, tensor.const_data_ptr(), tensor.nbytes()) == static_cast<ssize_t>(tensor.nbytes());
  }
  ok = ok && fsync(fd) == 0 && close(fd) == 0;
  return ok ? absl::OkStatus() : absl::InternalError(absl::StrCat("writing ", path, " failed"));
}

absl::Status ReadRaw(Run* run, const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool ok = fd >= 0;
  std::vector<at::Tensor> loaded;
  for (const at::Tensor& tensor : run->tensors) {
    const at::Tensor& values = loaded.emplace_back(at::empty_like(tensor));
    ok = ok && read(fd, values.mutable_data_ptr(), values.nbytes()) == static_cast<ssize_t>(values.nbytes());
  }
  for (size_t i = 0; i < loaded.size(); ++i) run->tensors[i].copy_(loaded[i]);
  ok = ok && close(fd) == 0;
  return ok ? absl::OkStatus() : absl::InternalError(absl::StrCat("reading ", path, " failed"));
}

absl::StatusOr<std::unique_ptr<ssl::Checkpointer>> Make(const std::string& directory, bool in_background,
                                                        ssl::Communicator& communicator, Run& run) {
  ssl::CheckpointerOptions options;
  options.store.directory = directory;
  options.num_phases = 2;
  options.in_background = in_background;
  SSL_ASSIGN_OR_RETURN(
      std::unique_ptr<ssl::Checkpointer> checkpointer,
      ssl::Checkpointer::Make(std::move(options), ssl::PosixFileSystem(), communicator, run, run.state));
  SSL_RETURN_IF_ERROR(checkpointer->Open());
  return checkpointer;
}

double ChecksumSpeed(const Run& run) {
  uint32_t crc = 0;
  absl::Status status;
  std::vector<double> seconds;
  const absl::string_view bytes(static_cast<const char*>(run.tensors[0].const_data_ptr()), run.tensors[0].nbytes());
  for (int i = 0; i < 50; ++i) {
    seconds.push_back(Seconds(
        [&] {
          crc = ssl::ExtendCrc32c(crc, bytes);
          return absl::OkStatus();
        },
        &status));
  }
  return static_cast<double>(bytes.size()) / *std::min_element(seconds.begin(), seconds.end()) / 1e9;
}

absl::Status Measure(const std::string& directory, int64_t megabytes, int64_t saves) {
  const std::unique_ptr<ssl::Communicator> communicator = ssl::MakeLocalCommunicator();
  SSL_RETURN_IF_ERROR(ssl::PosixFileSystem().CreateDirectories(directory));
  Run run(megabytes * kMegabyte);
  SSL_ASSIGN_OR_RETURN(const auto foreground, Make(directory + "/foreground", false, *communicator, run));
  SSL_ASSIGN_OR_RETURN(const auto background, Make(directory + "/background", true, *communicator, run));
  std::vector<double> raw;
  std::vector<double> saved;
  std::vector<double> stalled;
  absl::Status status;
  for (int64_t i = 1; i <= saves; ++i) {
    run.state.iteration = i;
    raw.push_back(Seconds([&] { return WriteRaw(run, directory + "/raw"); }, &status));
    saved.push_back(Seconds([&] { return foreground->Save(); }, &status));
    stalled.push_back(Seconds([&] { return background->Save(); }, &status));
    status.Update(background->Wait());
    SSL_RETURN_IF_ERROR(status);
  }
  std::vector<double> restored;
  std::vector<double> read;
  for (int64_t i = 0; i < saves; ++i) {
    read.push_back(Seconds([&] { return ReadRaw(&run, directory + "/raw"); }, &status));
    restored.push_back(Seconds([&] { return foreground->Restore(saves); }, &status));
  }
  SSL_RETURN_IF_ERROR(status);
  const auto print = [](const char* what, double seconds) {
    std::cout << absl::StrFormat("%-34s %8.1f ms\n", what, seconds * 1e3);
  };
  std::cout << megabytes << " MB, " << saves << " saves, medians\n";
  print("raw bytes, fsync", Median(raw));
  print("save: checksum, fsync, read back", Median(saved));
  std::cout << absl::StrFormat("%-34s %8.2f\n", "  ratio", Median(saved) / Median(raw));
  print("stall of a background save", Median(stalled));
  print("raw bytes read and copied", Median(read));
  print("restore", Median(restored));
  std::cout << absl::StrFormat("%-34s %8.2f\n", "  ratio", Median(restored) / Median(read));
  std::cout << absl::StrFormat("%-34s %8.1f GB/s\n", "CRC-32C, one core", ChecksumSpeed(run));
  return ssl::PosixFileSystem().RemoveAll(directory);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: bench_checkpoint DIRECTORY [MEGABYTES] [SAVES]\n";
    return 2;
  }
  const absl::Status status =
      Measure(argv[1], argc > 2 ? std::atoll(argv[2]) : 100, argc > 3 ? std::atoll(argv[3]) : 10);
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 1;
}
