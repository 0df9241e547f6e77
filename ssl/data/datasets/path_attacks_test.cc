// SPDX-License-Identifier: Apache-2.0
//
// Names in file lists and folders that lead to what is no image: none may block, crash, or be taken for one.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/datasets/label_table.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder with one of everything, and a test that ends after a minute whatever waits.
class PathAttacks : public ::testing::Test {
 protected:
  PathAttacks() {
    alarm(60);
    WriteFile("secret", "root:x:0:0");
    WriteFile("empty.jpg", "");
    EXPECT_EQ(mkfifo(Path("fifo.jpg").c_str(), 0600), 0);
    MakeSocket(folder_, "socket.jpg");
    std::filesystem::create_directory(Path("folder.jpg"));
    std::filesystem::create_symlink(Path("nowhere"), Path("dangling.jpg"));
    std::filesystem::create_symlink(Path("loop.jpg"), Path("loop.jpg"));
    std::filesystem::create_symlink(Path("fifo.jpg"), Path("to_fifo.jpg"));
    std::filesystem::create_symlink("/dev/zero", Path("to_device.jpg"));
    std::filesystem::create_symlink("../../../../../../../../etc/passwd", Path("out.jpg"));
  }
  ~PathAttacks() override { alarm(0); }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

  void WriteFile(const std::string& name, const std::string& bytes) {
    const std::unique_ptr<WritableFile> file = PosixFileSystem().Create(Path(name)).value();
    ASSERT_OK(file->Append(bytes));
    ASSERT_OK(file->Close());
  }

  // The path of a socket is short: the folder goes by its descriptor.
  static void MakeSocket(const std::string& folder, const std::string& name) {
    const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, absl::StrCat("/proc/self/fd/", folder_fd, "/", name).c_str());
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    close(fd);
    close(folder_fd);
  }

  // Of byte strings, which may hold NUL bytes inside.
  void WriteNpy(const std::string& name, const std::vector<std::string>& paths) {
    size_t width = 1;
    for (const std::string& path : paths) width = std::max(width, path.size());
    std::string bytes =
        absl::StrCat("{'descr': '|S", width, "', 'fortran_order': False, 'shape': (", paths.size(), ",), }");
    bytes.resize(117, ' ');
    bytes = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + bytes + "\n";
    for (std::string path : paths) {
      path.resize(width, '\0');
      bytes += path;
    }
    WriteFile(name, bytes);
  }

  using Maker = absl::StatusOr<std::unique_ptr<Dataset>> (*)(const ConfigNode&, const BuildContext&);
  static absl::StatusOr<std::unique_ptr<Dataset>> Make(Maker maker, const std::string& path) {
    const std::string yaml = absl::StrCat("DATA:\n  TRAIN:\n    DATA_PATHS: ['", path,
                                          "']\n    MAX_BROKEN_FRACTION: 1\n    DEFAULT_GRAY_IMG_SIZE: 2\n");
    const ConfigNode config = ParseYaml(yaml, "run.yaml", nullptr).value();
    const Registries registries;
    const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
    return maker(*config.FindPath("DATA.TRAIN"), {config, registries, *communicator});
  }

  // All images of the data set become grey, and are counted.
  static void ExpectAllBroken(const Dataset& dataset) {
    for (int64_t i = 0; i < dataset.size(); ++i) {
      Sample sample;
      sample.ResetViews(1);
      ASSERT_OK(dataset.Get(i, &sample)) << i;
      EXPECT_EQ(sample.view(0).image.size_bytes(), 2 * 2 * 3) << i;
    }
    EXPECT_EQ(static_cast<const DiskDataset&>(dataset).broken()->broken(), dataset.size());
  }

  const std::string folder_ = MakeTempDir("a");
};

TEST_F(PathAttacks, NamesInATextList_AreBrokenImages) {
  const std::vector<std::string> names = {Path("fifo.jpg"),
                                          Path("socket.jpg"),
                                          Path("folder.jpg"),
                                          Path("dangling.jpg"),
                                          Path("loop.jpg"),
                                          Path("to_fifo.jpg"),
                                          Path("to_device.jpg"),
                                          Path("out.jpg"),
                                          Path("empty.jpg"),
                                          Path("secret"),
                                          Path("secret/below.jpg"),
                                          Path("../../../../../../../../../../etc/passwd"),
                                          "/etc/passwd",
                                          "/dev/zero",
                                          "/dev/random",
                                          "/dev/full",
                                          "/dev/stdin",
                                          "/proc/self/mem",
                                          "/proc/self/fd/0",
                                          "/proc/self/environ",
                                          ".",
                                          "..",
                                          "/",
                                          std::string(4000, 'n'),
                                          absl::StrCat("/tmp/", std::string(300, 'n')),
                                          "http://example.org/a.jpg",
                                          "pipe:cat /etc/passwd",
                                          "| touch x",
                                          "$(touch x).jpg",
                                          "\xff\xfe\x80.jpg",
                                          "-rf"};
  WriteFile("list.txt", absl::StrJoin(names, "\n"));
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFilelist, Path("list.txt")));
  ASSERT_EQ(dataset->size(), static_cast<int64_t>(names.size()));
  ExpectAllBroken(*dataset);
  EXPECT_FALSE(std::filesystem::exists("x"));
}

TEST_F(PathAttacks, NamesInAnNpyList_AreBrokenImages) {
  WriteNpy("list.npy", {Path("fifo.jpg"), Path("secret") + std::string("\0.jpg", 5), std::string(10000, 'n'),
                        std::string("\0/etc/passwd", 12), "a\nb"});
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFilelist, Path("list.npy")));
  ASSERT_EQ(dataset->size(), 5);
  ExpectAllBroken(*dataset);
}

TEST_F(PathAttacks, NamesInAFolder_AreBrokenImages) {
  const std::string root = MakeTempDir("b");
  std::filesystem::create_directory_symlink(folder_, root + "/class");
  std::filesystem::remove(Path("folder.jpg"));
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFolder, root));
  EXPECT_EQ(dataset->size(), 8) << "fifo, socket, dangling, loop, two links, out, empty";
  ExpectAllBroken(*dataset);
}

TEST_F(PathAttacks, NamesInMessages_AreOneLine) {
  const std::string root = MakeTempDir("b");
  std::filesystem::create_directory(root + "/class");
  for (const char* name : {"1.jpg", ".\xC3\xA4\xFF.jpg", "2.\x1B\n"})
    std::ofstream(absl::StrCat(root, "/class/", name)) << 1;
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFolder, root));
  EXPECT_THAT(dataset->PassedOver(), ElementsAre("1 hidden image: class/.\xC3\xA4\\xff.jpg",
                                                 "1 file of kinds that are not read: .\\x1b\\n 1"));
}

TEST_F(PathAttacks, ListsThatAreNoFiles_AreRefusedAtOnce) {
  for (const char* name : {"fifo.jpg", "to_fifo.jpg", "to_device.jpg", "folder.jpg"}) {
    EXPECT_THAT(Make(MakeDiskFilelist, Path(name)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a regular file")))
        << name;
    EXPECT_THAT(ReadLabelFile(PosixFileSystem(), Path(name)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a regular file")))
        << name;
  }
  EXPECT_FALSE(Make(MakeDiskFilelist, Path("socket.jpg")).ok());
  EXPECT_FALSE(Make(MakeDiskFilelist, Path("loop.jpg")).ok());
  EXPECT_FALSE(Make(MakeDiskFilelist, std::string(10000, 'n')).ok());
  EXPECT_FALSE(Make(MakeDiskFolder, Path("fifo.jpg")).ok());
  EXPECT_FALSE(Make(MakeDiskFolder, Path("loop.jpg")).ok());
}

}  // namespace
}  // namespace ssl
