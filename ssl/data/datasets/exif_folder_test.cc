// SPDX-License-Identifier: Apache-2.0
//
// EXIF_ORIENTATION in a folder of files with each of the eight orientations, against images that Pillow 13 has turned.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/exif_orientation.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

constexpr int kOrientations = 8;

std::string ReadBytes(const std::string& name) {
  return PosixFileSystem()
      .Read(absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"), "/ssl/data/testdata/webp/",
                         name))
      .value();
}

// A file that says orientation 6, with another one: tag 0x0112, a short, one of it, and its value.
std::string WithOrientation(std::string bytes, int orientation) {
  const std::string tag("\x01\x12\x00\x03\x00\x00\x00\x01\x00", 9);
  const size_t value = bytes.find(tag) + tag.size();
  EXPECT_EQ(bytes.at(value), 6);
  bytes[value] = static_cast<char>(orientation);
  return bytes;
}

std::string TextOf(const Image& image) {
  return absl::StrCat(image.height(), " x ", image.width(), ": ") +
         std::string(reinterpret_cast<const char*>(image.pixels()), static_cast<size_t>(image.size_bytes()));
}

// The pixels of an encoded image, turned as `orientation` asks for.
std::string Turned(const std::string& bytes, int orientation) {
  Image image;
  EXPECT_OK(DecodeImage(bytes, DecodeLimits(), &image));
  Image upright;
  TurnUpright(orientation, image, &upright);
  return TextOf(upright);
}

// Classes jpeg and webp, each with the files 1 to 8 by their orientation.
class ExifFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* ending : {"jpg", "webp"}) {
      ASSERT_OK(PosixFileSystem().CreateDirectories(absl::StrCat(folder_, "/", ending)));
      const std::string bytes = ReadBytes(absl::StrCat("exif6.", ending));
      for (int orientation = 1; orientation <= kOrientations; ++orientation) {
        ASSERT_OK(WriteFileAtomically(PosixFileSystem(),
                                      absl::StrCat(folder_, "/", ending, "/", orientation, ".", ending),
                                      WithOrientation(bytes, orientation)));
      }
    }
  }

  std::unique_ptr<Dataset> Open(const std::string& lines) {
    const std::string text = absl::StrCat("DATA:\n  TRAIN:\n    DATA_PATHS: [", folder_, "]\n", lines);
    const ConfigNode config = ParseYaml(text, "run.yaml", nullptr).value();
    const Registries registries;
    const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
    return MakeDiskFolder(*config.FindPath("DATA.TRAIN"), {config, registries, *communicator}).value();
  }

  // Of the file of class `label` (0: JPEG, 1: WebP) with an orientation.
  static std::string Read(const Dataset& dataset, int64_t label, int orientation) {
    Sample sample;
    sample.ResetViews(1);
    EXPECT_OK(dataset.Get(label * kOrientations + orientation - 1, &sample));
    EXPECT_EQ(sample.label, label);
    EXPECT_EQ(sample.fault, ReadFault::kNone);
    return TextOf(sample.view(0).image);
  }

  const std::string folder_ = MakeTempDir("exif");
};

TEST_F(ExifFolderTest, EachOrientation_IsTurnedUpright) {
  for (const char* cache : {"", "raw", "decoded"}) {
    const std::unique_ptr<Dataset> dataset = Open("    EXIF_ORIENTATION: True\n");
    ASSERT_EQ(dataset->size(), 2 * kOrientations);
    if (cache == std::string("raw")) dataset->KeepInMemory({CacheContent::kRaw, 1 << 20});
    if (cache == std::string("decoded")) dataset->KeepInMemory({CacheContent::kDecoded, 1 << 20});
    const std::string jpeg = ReadBytes("exif6.jpg");
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int orientation = 1; orientation <= kOrientations; ++orientation) {
        SCOPED_TRACE(absl::StrCat("orientation ", orientation, " cache ", cache, " epoch ", epoch));
        const std::string of_pillow =
            ReadBytes(orientation == 1 ? "small.png" : absl::StrCat("upright", orientation, ".png"));
        EXPECT_EQ(Read(*dataset, 1, orientation), Turned(of_pillow, 1)) << "WebP without loss";
        EXPECT_EQ(Read(*dataset, 0, orientation), Turned(jpeg, orientation)) << "JPEG";
      }
    }
  }
}

TEST_F(ExifFolderTest, ByDefault_ImagesStayAsTheyLie) {
  const std::unique_ptr<Dataset> dataset = Open("");
  const std::string webp = Turned(ReadBytes("small.png"), 1);
  const std::string jpeg = Turned(ReadBytes("exif6.jpg"), 1);
  for (int orientation = 1; orientation <= kOrientations; ++orientation) {
    EXPECT_EQ(Read(*dataset, 0, orientation), jpeg) << orientation;
    EXPECT_EQ(Read(*dataset, 1, orientation), webp) << orientation;
  }
}

// A crop is asked for in the coordinates of the upright image.
TEST_F(ExifFolderTest, OfACrop_ThePixelsOfTheUprightImageAreThere) {
  const std::unique_ptr<Dataset> dataset = Open("    EXIF_ORIENTATION: True\n");
  const auto upper_left = [](int height, int width) { return NeededPixels{{0, 0, height / 2, width / 2}}; };
  const NeededRegion needed(upper_left);
  const std::string jpeg = ReadBytes("exif6.jpg");
  for (int orientation = 1; orientation <= kOrientations; ++orientation) {
    Image lying, whole;
    ASSERT_OK(DecodeImage(jpeg, DecodeLimits(), &lying));
    TurnUpright(orientation, lying, &whole);
    Sample sample;
    sample.ResetViews(1);
    sample.needed = &needed;
    ASSERT_OK(dataset->Get(orientation - 1, &sample));
    const Image& image = sample.view(0).image;
    ASSERT_EQ(image.height(), whole.height());
    ASSERT_EQ(image.width(), whole.width());
    for (int y = 0; y < image.height() / 2; ++y) {
      for (int i = 0; i < image.width() / 2 * 3; ++i) ASSERT_EQ(image.row(y)[i], whole.row(y)[i]) << orientation;
    }
  }
}

}  // namespace
}  // namespace ssl
