// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/npy_dataset.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/datasets/subset_dataset.h"
#include "ssl/data/sample.h"
#include "ssl/data/shared_images.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/io/mapped_file.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// What numpy.save writes, with the header of format version 1 (a length of 2 bytes) or 2 (of 4 bytes).
std::string Npy(const std::string& descr, const std::string& shape, const std::string& values, int version = 1,
                const std::string& fortran = "False") {
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran, ", 'shape': (", shape, "), }");
  const size_t before = version == 1 ? 10 : 12;
  header.append(63 - (before + header.size()) % 64, ' ');
  header.push_back('\n');
  std::string bytes = std::string("\x93NUMPY", 6) + static_cast<char>(version) + '\0';
  for (size_t i = 0; i < (version == 1 ? 2u : 4u); ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  return bytes + header + values;
}

absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& bytes,
                                              const std::string& path = MakeTempDir("npy") + "/images.npy") {
  EXPECT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
  const ConfigNode config =
      ParseYaml(absl::StrCat("DATA:\n  TRAIN: {DATA_PATHS: ['", path, "']}"), "run.yaml", nullptr).value();
  const Registries registries;
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  return MakeNpyImages(*config.FindPath("DATA.TRAIN"), {config, registries, *communicator});
}

std::string Counting(int count) {
  std::string values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<char>(i));
  return values;
}

TEST(NpyImages, ColourImages_AreReadInOrder) {
  for (const int version : {1, 2}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset, Open(Npy("|u1", "2, 2, 4, 3", Counting(48), version)));
    EXPECT_EQ(dataset->size(), 2);
    EXPECT_FALSE(dataset->has_labels());
    Sample sample;
    sample.ResetViews(1);
    for (const int index : {1, 0}) {
      ASSERT_OK(dataset->Get(index, &sample));
      const Image& image = sample.view(0).image;
      EXPECT_EQ(image.height(), 2);
      EXPECT_EQ(image.width(), 4);
      EXPECT_EQ(image.channels(), 3);
      for (int i = 0; i < 24; ++i) EXPECT_EQ(image.pixels()[i], 24 * index + i);
    }
  }
}

TEST(NpyImages, GreyImages_MayLackTheirChannel) {
  for (const char* shape : {"3, 2, 2", "3, 2, 2, 1"}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset, Open(Npy("|u1", shape, Counting(12))));
    EXPECT_EQ(dataset->size(), 3);
    Sample sample;
    sample.ResetViews(1);
    ASSERT_OK(dataset->Get(2, &sample));
    EXPECT_EQ(sample.view(0).image.channels(), 1);
    EXPECT_EQ(sample.view(0).image.pixels()[3], 11);
  }
}

TEST(NpyImages, SampleIdentity_TellsFilesOfEqualShapeApart_WhereverTheyLie) {
  ASSERT_OK_AND_ASSIGN(const auto dataset, Open(Npy("|u1", "3, 2, 2", Counting(12))));
  EXPECT_THAT(dataset->SampleIdentity(1), MatchesRegex("images.npy: image 1 of 3, 2 x 2 x 1, pixels [0-9a-f]{8}"));
  EXPECT_NE(dataset->SampleIdentity(1), dataset->SampleIdentity(2));
  ASSERT_OK_AND_ASSIGN(const auto moved, Open(Npy("|u1", "3, 2, 2", Counting(12))));
  EXPECT_EQ(dataset->SampleIdentity(1), moved->SampleIdentity(1));
  ASSERT_OK_AND_ASSIGN(const auto other, Open(Npy("|u1", "3, 2, 2", Counting(11) + "x")));
  EXPECT_NE(dataset->SampleIdentity(1), other->SampleIdentity(1));
}

// 1 MB, of which pieces are read.
TEST(NpyImages, SampleIdentity_TellsLargeFilesApart) {
  std::string values(64 * 128 * 128, '\7');
  ASSERT_OK_AND_ASSIGN(const auto dataset, Open(Npy("|u1", "64, 128, 128", values)));
  values.replace(40 * 128 * 128, 128 * 128, 128 * 128, '\6');  // one image
  ASSERT_OK_AND_ASSIGN(const auto other, Open(Npy("|u1", "64, 128, 128", values)));
  EXPECT_NE(dataset->SampleIdentity(0), other->SampleIdentity(0));
}

TEST(NpyImages, FilesOfEqualShape_AndPartsOfOne_ShareNoImages) {
  const std::string bytes = Npy("|u1", "3, 2, 2", Counting(12));
  const std::string path = MakeTempDir("npy") + "/images.npy";
  ASSERT_OK_AND_ASSIGN(const auto dataset, Open(bytes, path));
  ASSERT_OK_AND_ASSIGN(const auto other, Open(Npy("|u1", "3, 2, 2", std::string(12, '\1'))));
  EXPECT_EQ(CountSharedImages(*dataset, *other), 0);
  const SubsetDataset train(Open(bytes, path).value(), {0, 2});
  EXPECT_EQ(CountSharedImages(train, SubsetDataset(Open(bytes, path).value(), {1})), 0);
  EXPECT_EQ(CountSharedImages(train, SubsetDataset(Open(bytes, path).value(), {2, 1})), 1);
  EXPECT_EQ(CountSharedImages(train, *dataset), 2);
}

TEST(NpyImages, OtherArrays_AreRefusedWithAWayOut) {
  const auto refused = [](const std::string& text) {
    return StatusIs(kInvalid, AllOf(HasSubstr("run.yaml:2: config.DATA.TRAIN.DATA_PATHS: "), HasSubstr("/images.npy: "),
                                    HasSubstr(text)));
  };
  EXPECT_THAT(Open(Npy("<f4", "1, 1, 1", std::string(4, '\0'))), refused("(255 * images).round().astype('uint8')"));
  EXPECT_THAT(Open(Npy("<i8", "1, 1, 1", std::string(8, '\0'))),
              refused("images from 0 to 255 become such by images.astype('uint8')"));
  EXPECT_THAT(Open(Npy("|b1", "1, 1, 1", std::string(1, '\1'))), refused("dtype is |b1, expected |u1"));
  EXPECT_THAT(Open(Npy("<f8", "1, 1, 1", std::string(8, '\0'))), refused("dtype is <f8, expected |u1, 8-bit images"));
  EXPECT_THAT(Open(Npy("|u1", "1, 3, 2, 2", Counting(12))), refused("images.transpose(0, 2, 3, 1)"));
  EXPECT_THAT(Open(Npy("|u1", "12, ", Counting(12))), refused("images have the shape [12], expected [N, height"));
  EXPECT_THAT(Open(Npy("|u1", "0, 2, 2", "")), refused("holds no images, expected at least one"));
}

TEST(NpyImages, OneColourImage_IsNoArrayOfGreyOnes) {
  for (const char* shape : {"2, 5, 3", "2, 5, 4"}) {
    const int values = shape[6] == '3' ? 30 : 40;
    EXPECT_THAT(Open(Npy("|u1", shape, Counting(values))),
                StatusIs(kInvalid, AllOf(HasSubstr(absl::StrCat("has the shape [", shape, "], as one colour image")),
                                         HasSubstr("image[None]"))));
  }
  EXPECT_OK(Open(Npy("|u1", "1, 2, 5, 3", Counting(30))));
  EXPECT_OK(Open(Npy("|u1", "2, 5, 3, 1", Counting(30))));
  EXPECT_OK(Open(Npy("|u1", "2, 4, 4", Counting(32)))) << "small squares";
}

TEST(NpyImages, BadFiles_AreNamed) {
  const std::string whole = Npy("|u1", "3, 2, 2", Counting(12));
  for (const size_t size : {size_t{0}, size_t{5}, size_t{40}, whole.size() - 1}) {
    EXPECT_THAT(Open(whole.substr(0, size)), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("/images.npy")));
  }
  EXPECT_THAT(Open(Npy("|u1", "3, 2, 2", Counting(12), 1, "True")),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("/images.npy")));
  for (const char* descr : {"|O", "<u2"}) {
    EXPECT_THAT(Open(Npy(descr, "3, 2, 2", Counting(96))),
                StatusIs(absl::StatusCode::kUnimplemented,
                         AllOf(HasSubstr("/images.npy"), HasSubstr("images are 8-bit (|u1)"))))
        << descr;
  }
}

// Gives a file another content as soon as it has been opened once.
class ReplacingFileSystem : public FaultFileSystem {
 public:
  ReplacingFileSystem(std::string path, std::string next)
      : FaultFileSystem(PosixFileSystem(), ParentDirectory(path)), path_(std::move(path)), next_(std::move(next)) {}

  absl::StatusOr<MappedFile> Map(const std::string& path) override {
    absl::StatusOr<MappedFile> file = FaultFileSystem::Map(path);
    Replace();
    return file;
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override {
    absl::StatusOr<std::unique_ptr<ReadableFile>> file = FaultFileSystem::OpenRead(path);
    Replace();
    return file;
  }

 private:
  void Replace() { EXPECT_OK(WriteFileAtomically(PosixFileSystem(), path_, next_)); }

  const std::string path_;
  const std::string next_;
};

TEST(NpyImages, FileThatIsReplacedWhileItIsOpened_IsAnError) {
  const std::string path = MakeTempDir("npy") + "/images.npy";
  for (const std::string& next : {Npy("|u1", "4, 2, 2", Counting(16)), Npy("|u1", "2, 2, 2", Counting(8)),
                                  Npy("|u1", "2, 2, 3", Counting(12)), std::string("short")}) {
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, Npy("|u1", "3, 2, 2", Counting(12))));
    ReplacingFileSystem files(path, next);
    EXPECT_THAT(NpyDataset::Open(files, path), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  }
}

// 1 MB, of which the kernel has a page in memory at most once it is cut off: a mapped one would end the process.
TEST(NpyImages, FileThatAnotherProcessCutsOff_IsAnError) {
  const std::string path = MakeTempDir("npy") + "/images.npy";
  ASSERT_OK_AND_ASSIGN(const auto dataset, Open(Npy("|u1", "64, 128, 128", std::string(64 * 128 * 128, '\7')), path));
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);
  Sample sample;
  sample.ResetViews(1);
  EXPECT_THAT(dataset->Get(63, &sample), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("/images.npy")));
}

}  // namespace
}  // namespace ssl
