// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"

namespace ssl::fuzz {
namespace {

// Numbers at which sizes overflow, signs change and buffers end.
constexpr std::array<uint64_t, 12> kNumbers = {0,      1,          0x7F,       0x80,       0xFF,      0x7FFF,
                                               0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, INT64_MAX, UINT64_MAX};

// A folder of this process, removed when the program ends in the usual way.
class OwnFolder {
 public:
  OwnFolder() {
    const char* const temporary = std::getenv("TEST_TMPDIR");
    const bool in_memory = access("/dev/shm", W_OK) == 0;
    path_ = absl::StrCat(in_memory ? "/dev/shm" : (temporary != nullptr ? temporary : "/tmp"), "/ssl_fuzz_XXXXXX");
    CheckFuzz(mkdtemp(path_.data()) != nullptr, absl::StrCat("a folder can be made: ", path_));
  }
  ~OwnFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

size_t Below(std::mt19937_64& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

// One change at a random place. text is not empty.
void Change(const std::vector<std::string>& samples, std::mt19937_64& random, std::string* text) {
  const size_t place = Below(random, text->size());
  switch (random() % 6) {
    case 0:
      (*text)[place] = static_cast<char>((*text)[place] ^ (1 << (random() % 8)));
      return;
    case 1:
      text->resize(place);
      return;
    case 2: {
      const uint64_t number = kNumbers[Below(random, kNumbers.size())];
      const size_t length = std::min<size_t>(size_t{1} << (random() % 4), text->size() - place);
      std::memcpy(text->data() + place, &number, length);
      return;
    }
    case 3:
      text->insert(place, text->substr(Below(random, text->size()), Below(random, 64)));
      return;
    case 4:
      text->erase(place, 1 + Below(random, 16));
      return;
    default: {
      const std::string& other = samples[Below(random, samples.size())];
      text->replace(place, std::string::npos, other.substr(Below(random, other.size())));
    }
  }
}

}  // namespace

std::vector<std::string> MakeSeeds(const std::vector<std::string>& samples, size_t count) {
  std::vector<std::string> seeds = samples;
  std::mt19937_64 random(1);  // its numbers are fixed by the standard
  while (seeds.size() < count) {
    std::string text = samples[Below(random, samples.size())];
    for (size_t changes = 1 + Below(random, 4); changes > 0 && !text.empty(); --changes) Change(samples, random, &text);
    seeds.push_back(std::move(text));
  }
  return seeds;
}

void CheckFuzz(bool holds, absl::string_view promise) {
  if (holds) return;
  std::fprintf(stderr, "a promise does not hold: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}

std::string WriteFuzzFile(absl::string_view bytes, absl::string_view name) {
  static const OwnFolder folder;
  const std::string path = absl::StrCat(folder.path(), "/", name);
  // A new file each time: a reader may have mapped the old one.
  unlink(path.c_str());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  CheckFuzz(file >= 0, absl::StrCat("a file can be made: ", path, ": ", std::strerror(errno)));
  const ssize_t written = write(file, bytes.data(), bytes.size());
  CheckFuzz(written == static_cast<ssize_t>(bytes.size()), "a file in memory can be written");
  close(file);
  return path;
}

}  // namespace ssl::fuzz
