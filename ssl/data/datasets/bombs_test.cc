// SPDX-License-Identifier: Apache-2.0
//
// Files that are small, or nothing but a claim, and would fill the memory or keep a processor busy if they were
// believed. Each is read in a process of its own, whose memory tells what it cost.
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/data/datasets/binary_dataset.h"
#include "ssl/data/datasets/idx_file.h"
#include "ssl/data/datasets/label_table.h"
#include "ssl/data/datasets/string_list.h"
#include "ssl/data/datasets/testing/idx_files.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/image.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kMostKilobytes = 512 << 10;  // with what AddressSanitizer notes of all memory that is touched
#else
constexpr int64_t kMostKilobytes = 64 << 10;
#endif

std::string TestImage(const std::string& name) {
  return PosixFileSystem()
      .Read(absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                         "/ssl/data/testdata/decode/images/", name))
      .value();
}

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift));
  return text;
}

std::string Deflate(const std::string& content) {
  std::string out(compressBound(content.size()), '\0');
  uLongf size = out.size();
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(&out[0]), &size, reinterpret_cast<const Bytef*>(content.data()),
                      content.size(), 9),
            Z_OK);
  return out.substr(0, size);
}

std::string Gzip(const std::string& content) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(compressBound(content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = content.size();
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = out.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Chunk(const std::string& name, const std::string& content) {
  const std::string checked = name + content;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size());
  return BigEndian(content.size(), 4) + checked + BigEndian(crc, 4);
}

// 8-bit RGB; `extra` stands before the pixels.
std::string Png(uint32_t height, uint32_t width, const std::string& rows, const std::string& extra = "") {
  return "\x89PNG\r\n\x1a\n" +
         Chunk("IHDR", BigEndian(width, 4) + BigEndian(height, 4) + std::string("\x08\x02\0\0\0", 5)) + extra +
         Chunk("IDAT", Deflate(rows)) + Chunk("IEND", "");
}

std::string Repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// A JPEG whose frame claims another size.
std::string JpegOfSize(const std::string& name, uint32_t height, uint32_t width, char frame) {
  std::string bytes = TestImage(name);
  const size_t at = bytes.find(std::string("\xFF") + frame);
  EXPECT_NE(at, std::string::npos);
  return bytes.replace(at + 5, 4, BigEndian(height, 2) + BigEndian(width, 2));
}

// The progressive JPEG with its last scan `count` times more.
std::string JpegOfScans(int count) {
  const std::string bytes = TestImage("progressive.jpg");
  const size_t last = bytes.rfind("\xFF\xDA");
  const std::string scan = bytes.substr(last, bytes.size() - 2 - last);
  return bytes.substr(0, bytes.size() - 2) + Repeated(scan, count) + "\xFF\xD9";
}

void WriteFile(const std::string& path, const std::string& bytes, int64_t size = -1) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ASSERT_TRUE(size < 0 || ftruncate(fd, size) == 0);
  close(fd);
}

struct Cost {
  int exit_code = -1;
  int64_t kilobytes = 0;
  double milliseconds = 0.0;
};

int64_t PeakKilobytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Runs `read` in a child, which begins with the memory of this process. 0: refused.
Cost CostOf(const std::function<absl::Status()>& read) {
  malloc_trim(0);  // the child could use what this process has freed, unseen
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto begin = std::chrono::steady_clock::now();
    const int64_t before = PeakKilobytes();
    const absl::Status status = read();
    Cost cost = {status.ok() ? 1 : 0, PeakKilobytes() - before, 0.0};
    cost.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    std::fprintf(stderr, "%s\n", status.ToString().substr(0, 200).c_str());
    _exit(write(pipe_ends[1], &cost, sizeof(cost)) == sizeof(cost) ? 0 : 2);
  }
  close(pipe_ends[1]);
  Cost cost;
  if (::read(pipe_ends[0], &cost, sizeof(cost)) != sizeof(cost)) cost.exit_code = 3;  // it died
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return cost;
}

struct Bomb {
  std::string name;
  std::function<absl::Status()> read;
};

void AddImage(const std::string& name, std::string bytes, std::vector<Bomb>* bombs) {
  bombs->push_back({name, [bytes = std::move(bytes)] {
                      Image image;
                      return DecodeImage(bytes, DecodeLimits(), &image);
                    }});
}

void AddIdx(const std::string& name, std::string bytes, std::vector<Bomb>* bombs) {
  bombs->push_back({name, [bytes = std::move(bytes)] { return ParseIdx(bytes, "file", 3).status(); }});
}

// The content is written to a file, which `read` gets; size: to which the file is extended without taking room.
void AddFile(const std::string& name, const std::string& file, const std::string& bytes, int64_t size,
             const std::function<absl::Status(const std::string& path)>& read, std::vector<Bomb>* bombs) {
  const std::string path = MakeTempDir("bomb") + "/" + file;
  WriteFile(path, bytes, size);
  bombs->push_back({name, [path, read] { return read(path); }});
}

void AddImages(std::vector<Bomb>* bombs) {
  AddImage("JPEG of 65520 x 65520", JpegOfSize("rgb_q90.jpg", 65520, 65520, '\xC0'), bombs);
  AddImage("JPEG of 13000 x 13000", JpegOfSize("rgb_q90.jpg", 13000, 13000, '\xC0'), bombs);
  AddImage("progressive JPEG of 13000 x 13000", JpegOfSize("progressive.jpg", 13000, 13000, '\xC2'), bombs);
  AddImage("JPEG of 13000 x 13000 that ends at once",
           JpegOfSize("rgb_q90.jpg", 13000, 13000, '\xC0').substr(0, 400) + "\xFF\xD9", bombs);
  AddImage("JPEG of 1 x 65500", JpegOfSize("rgb_q90.jpg", 1, 65500, '\xC0'), bombs);
  AddImage("JPEG of 1000 scans", JpegOfScans(1000), bombs);
  AddImage("JPEG of 20000 scans", JpegOfScans(20000), bombs);
  AddImage("PNG of 65535 x 65535", Png(65535, 65535, std::string(1000, '\0')), bombs);
  AddImage("PNG of 2^31 - 1 x 2^31 - 1", Png(0x7fffffff, 0x7fffffff, ""), bombs);
  AddImage("PNG of 13000 x 13000", Png(13000, 13000, std::string(1000, '\0')), bombs);
  AddImage("PNG of 65535 x 1", Png(65535, 1, std::string(4 * 65535, '\0')), bombs);
  const std::string text = Chunk("zTXt", std::string("a\0\0", 3) + Deflate(std::string(7'900'000, 'a')));
  AddImage("PNG with 900 texts of 8 MB", Png(2, 2, "", Repeated(text, 900)), bombs);
  const std::string profile = Chunk("iCCP", std::string("a\0\0", 3) + Deflate(std::string(200'000'000, '\0')));
  AddImage("PNG with a profile of 200 MB", Png(2, 2, "", profile), bombs);
  AddImage("PNG with a text chunk of 2 GB", Png(2, 2, "", BigEndian(0x7fffffff, 4) + "tEXt"), bombs);
}

void AddDataSets(std::vector<Bomb>* bombs) {
  AddIdx("IDX of (2^32 - 1)^3", IdxBytes({0xffffffff, 0xffffffff, 0xffffffff}, ""), bombs);
  AddIdx("IDX of 0 x (2^32 - 1)^2 and a tail", IdxBytes({0, 0xffffffff, 0xffffffff}, "tail"), bombs);
  AddIdx("IDX of 2^32", IdxBytes({65536, 65536, 1}, std::string(100, 'x')), bombs);
  AddIdx("IDX, compressed, of 900 MB", Gzip(IdxBytes({30000, 30000, 1}, std::string(40'000'000, '\0'))), bombs);
  AddIdx("IDX, compressed, with more than it claims", Gzip(IdxBytes({1, 1, 1}, std::string(100'000'000, 'x'))), bombs);
  const auto read_cifar = [](const std::string& path) {
    return ReadCifar10(PosixFileSystem(), ParentDirectory(path), /*test=*/true).status();
  };
  AddFile("CIFAR of a terabyte", "test_batch.bin", "", int64_t{3073} << 28, read_cifar, bombs);
  AddFile("CIFAR of 3 GB with a wrong label", "test_batch.bin", "\xff", int64_t{3073} << 19, read_cifar, bombs);
}

void AddLists(std::vector<Bomb>* bombs) {
  const auto read_list = [](const std::string& path) { return ReadStringList(PosixFileSystem(), path).status(); };
  const auto read_labels = [](const std::string& path) { return ReadLabelFile(PosixFileSystem(), path).status(); };
  AddFile("list of one line of 200 MB", "list.txt", std::string(200'000'000, 'x'), -1, read_list, bombs);
  AddFile("list of a terabyte of nothing", "list.txt", "", int64_t{1} << 40, read_list, bombs);
  AddFile("list of 50 million empty lines and a name", "list.txt", std::string(50'000'000, '\n') + "a", -1, read_list,
          bombs);
  AddFile("labels of a terabyte of nothing", "labels.txt", "", int64_t{1} << 40, read_labels, bombs);
  const auto npy = [](const std::string& dtype, const std::string& shape) {
    std::string header = absl::StrCat("{'descr': '", dtype, "', 'fortran_order': False, 'shape': ", shape, ", }");
    header.resize(117, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
  };
  AddFile("labels that claim 2^62 numbers", "labels.npy", npy("<i8", "(4611686018427387904,)"), -1, read_labels, bombs);
  AddFile("names of 2^28 letters", "list.npy", npy("<U268435456", "(1000000,)"), -1, read_list, bombs);
}

TEST(Bombs, EveryOne_IsRefusedInLittleMemory) {
  std::vector<Bomb> bombs;
  AddImages(&bombs);
  AddDataSets(&bombs);
  AddLists(&bombs);
  EXPECT_GE(bombs.size(), 24u);
  for (const Bomb& bomb : bombs) {
    const Cost cost = CostOf(bomb.read);
    std::printf("%-45s %6.1f ms  %6ld kB\n", bomb.name.c_str(), cost.milliseconds, static_cast<long>(cost.kilobytes));
    EXPECT_EQ(cost.exit_code, 0) << bomb.name << ": 1 is accepted, 3 is a crash";
    EXPECT_LE(cost.kilobytes, kMostKilobytes) << bomb.name;
  }
}

}  // namespace
}  // namespace ssl
