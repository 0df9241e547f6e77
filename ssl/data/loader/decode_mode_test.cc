// SPDX-License-Identifier: Apache-2.0
//
// DECODE fast beside exact: the views of whole recipes differ by little, and by much where the scale is wrong.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/image/resample.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/jpeg_encoder.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/io/atomic_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

constexpr int kHeight = 480, kWidth = 640;
constexpr double kPi = 3.14159265358979323846;

// Waves in both directions: as a photograph, it has something in each of its scales, down to `shortest` pixels.
std::vector<uint8_t> Scene(int height, int width, double shortest) {
  constexpr double kLongest = 400.0, kAmplitude = 16.0;
  std::vector<double> values(static_cast<size_t>(height) * width * 3, 120.0);
  int wave = 0;
  for (double length = kLongest; length >= shortest; length /= 1.7, ++wave) {
    const auto phase = [&](int position, int c) { return 2.0 * kPi * position / length + wave + 0.8 * c; };
    std::vector<double> columns;
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) columns.push_back(kAmplitude * std::sin(phase(x, c)));
    }
    for (int y = 0; y < height; ++y) {
      for (int i = 0; i < 3 * width; ++i) {
        values[static_cast<size_t>(y) * width * 3 + i] += columns[i] * (1.0 + std::sin(phase(y, 0)));
      }
    }
  }
  std::vector<uint8_t> pixels;
  for (const double value : values) pixels.push_back(static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)));
  return pixels;
}

constexpr JpegKind kColourOfEveryPixel = {1, 1}, kSharedColour = {2, 2};

std::string SceneAsJpeg(int height, int width, double shortest = 3.0, const JpegKind& kind = kSharedColour) {
  return EncodeJpeg(Scene(height, width, shortest).data(), height, width, 3, kind);
}

double MeanDifference(const Image& a, const Image& b) {
  EXPECT_EQ(a.height(), b.height());
  EXPECT_EQ(a.width(), b.width());
  double sum = 0.0;
  for (int64_t i = 0; i < a.size_bytes(); ++i) sum += std::abs(a.pixels()[i] - b.pixels()[i]);
  return sum / static_cast<double>(a.size_bytes());
}

// `box` of the scene, decoded at one over `reduction` of its size, as side x side pixels.
Image CropAt(const std::string& jpeg, DecodeMode mode, int reduction, const CropBox& box, int side) {
  Image image, crop;
  EXPECT_OK(DecodeImageRegion(
      jpeg, DecodeLimits(), mode,
      [&](int, int) {
        return NeededPixels{box, reduction};
      },
      &image));
  Resampler().CropAndResize(image, box, side, side, &crop);
  return crop;
}

TEST(DecodeMode, ReductionThatACropAllows_ChangesLittleAndTheNextOneMuch) {
  const std::string jpeg = SceneAsJpeg(kHeight, kWidth, 3.0, kColourOfEveryPixel);
  for (const CropBox& box :
       {CropBox{0, 0, 480, 640}, CropBox{13, 27, 401, 333}, CropBox{101, 203, 257, 300}, CropBox{7, 5, 400, 400}}) {
    const int shorter = std::min(box.height, box.width);
    for (const int reduction : {1, 2, 4, 8}) {
      const int side = shorter / reduction;
      SCOPED_TRACE(::testing::Message() << reduction << ", " << side << " pixels of " << box.height << "x"
                                        << box.width);
      ASSERT_EQ(NeededFor(box, side, side).reduction, reduction);
      const Image exact = CropAt(jpeg, DecodeMode::kExact, 1, box, side);
      const double allowed = MeanDifference(exact, CropAt(jpeg, DecodeMode::kFast, reduction, box, side));
      EXPECT_LE(allowed, reduction == 1 ? 0.0 : 5.0);
      if (reduction == 8) continue;
      EXPECT_GT(MeanDifference(exact, CropAt(jpeg, DecodeMode::kFast, 2 * reduction, box, side)), 6.5);
    }
  }
}

TEST(DecodeMode, WholeSize_ChangesLittleWherePixelsShareTheirColourAndNothingElsewhere) {
  const CropBox all = {0, 0, kHeight, kWidth};
  const auto difference = [&](const JpegKind& kind) {
    const std::string jpeg = SceneAsJpeg(kHeight, kWidth, 3.0, kind);
    return MeanDifference(CropAt(jpeg, DecodeMode::kExact, 1, all, kHeight),
                          CropAt(jpeg, DecodeMode::kFast, 1, all, kHeight));
  };
  EXPECT_EQ(difference(kColourOfEveryPixel), 0.0);
  for (const JpegKind& kind : {kSharedColour, JpegKind{2, 1}, JpegKind{2, 2, /*progressive=*/true}}) {
    EXPECT_GT(difference(kind), 0.0);
    EXPECT_LT(difference(kind), 3.0);
  }
}

TEST(DecodeMode, CropOfAReducedImage_LiesWhereThatOfTheFullImageDoes) {
  const std::string jpeg = SceneAsJpeg(kHeight, kWidth, /*shortest=*/100.0);
  for (const int left : {200, 201, 203, 204, 207}) {
    const CropBox box = {101, left, 256, 256}, shifted = {101, left + 2, 256, 256};
    const Image exact = CropAt(jpeg, DecodeMode::kExact, 1, box, 32);
    const double fast = MeanDifference(exact, CropAt(jpeg, DecodeMode::kFast, 8, box, 32));
    // A quarter of a pixel of the reduced image.
    EXPECT_GT(MeanDifference(exact, CropAt(jpeg, DecodeMode::kExact, 1, shifted, 32)), 2.0 * fast) << left;
  }
}

using Recipe = std::vector<std::string>;

Pipeline MakePipeline(const std::vector<std::string>& files, const Recipe& recipe, DecodeMode mode) {
  EncodedImageOptions options;
  options.decode_mode = mode;
  options.turns_upright = true;
  options.max_broken_fraction = 1.0;
  PathList paths;
  for (const std::string& file : files) paths.Add(file);
  std::vector<std::unique_ptr<Transform>> transforms;
  for (const std::string& entry : recipe) transforms.push_back(MakeTransform(entry).value());
  return Pipeline(std::make_unique<DiskDataset>(std::move(paths), std::vector<int64_t>(), std::move(options)),
                  std::move(transforms), LabelType::kStandard, /*seed=*/5);
}

std::string WriteImage(const std::string& folder, const std::string& name, const std::string& bytes) {
  const std::string path = absl::StrCat(folder, "/", name);
  EXPECT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
  return path;
}

// The largest mean difference of a view in some epochs.
double LargestDifference(const std::vector<std::string>& files, const Recipe& recipe) {
  const Pipeline exact = MakePipeline(files, recipe, DecodeMode::kExact);
  const Pipeline fast = MakePipeline(files, recipe, DecodeMode::kFast);
  PipelineScratch scratch, fast_scratch;
  double largest = 0.0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    for (int64_t index = 0; index < exact.dataset().size(); ++index) {
      EXPECT_OK(exact.Read(epoch, index, &scratch));
      EXPECT_OK(fast.Read(epoch, index, &fast_scratch));
      EXPECT_EQ(scratch.sample.fault, fast_scratch.sample.fault);
      EXPECT_EQ(scratch.sample.num_views(), fast_scratch.sample.num_views());
      for (int v = 0; v < scratch.sample.num_views(); ++v) {
        EXPECT_EQ(fast_scratch.sample.view(v).image.reduction(), 1);
        largest = std::max(largest, MeanDifference(scratch.sample.view(v).image, fast_scratch.sample.view(v).image));
      }
    }
  }
  return largest;
}

class DecodeModeOfRecipes : public ::testing::TestWithParam<Recipe> {};

// Files of one scene, in all eight orientations, whose sides are multiples of 8 or not.
std::vector<std::string> WriteScenes(const JpegKind& kind) {
  const std::string folder = MakeTempDir("decode_mode");
  const std::string jpeg = SceneAsJpeg(kHeight, kWidth, 3.0, kind), odd = SceneAsJpeg(451, 603, 3.0, kind);
  std::vector<std::string> files;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    files.push_back(WriteImage(folder, absl::StrCat(orientation, ".jpg"), WithOrientation(jpeg, orientation)));
    files.push_back(WriteImage(folder, absl::StrCat(orientation, "_odd.jpg"), WithOrientation(odd, orientation)));
  }
  return files;
}

TEST_P(DecodeModeOfRecipes, ViewsOfImagesInEveryOrientation_DifferByLittle) {
  EXPECT_LT(LargestDifference(WriteScenes(kSharedColour), GetParam()), 6.0);
  const double difference = LargestDifference(WriteScenes(kColourOfEveryPixel), GetParam());
  EXPECT_LT(difference, 6.0);
  EXPECT_GT(difference, 0.0);  // something was decoded at a fraction of its size
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, DecodeModeOfRecipes,
    ::testing::Values(Recipe{"{name: RandomResizedCrop, size: 40}"},
                      Recipe{"{name: ImgReplicatePil, num_times: 2}",
                             "{name: RandomResizedCrop, size: [30, 50], scale: [0.2, 1.0], interpolation: bicubic}"},
                      Recipe{"{name: ImgPilToMultiCrop, total_num_crops: 4, num_crops: [1, 3], size_crops: [48, 16], "
                             "crop_scales: [[0.3, 1.0], [0.05, 0.3]]}"},
                      Recipe{"{name: Resize, size: 64}", "{name: CenterCrop, size: 48}"}));

TEST(DecodeMode, TransformThatTellsNoReduction_GetsTheWholeImage) {
  EXPECT_EQ(LargestDifference(WriteScenes(kColourOfEveryPixel),
                              {"name: RandomHorizontalFlip", "{name: RandomResizedCrop, size: 40}"}),
            0);
}

TEST(DecodeMode, OtherFormatsAndBrokenFiles_AreAsInExactMode) {
  const std::string folder = MakeTempDir("decode_mode");
  const std::vector<uint8_t> pixels = Scene(96, 128, 3.0);
  Image image;
  std::copy(pixels.begin(), pixels.end(), image.Allocate(96, 128, 3));
  ASSERT_OK_AND_ASSIGN(const std::string png, EncodePng(image));
  const std::string jpeg = EncodeJpeg(pixels.data(), 96, 128, 3);
  const std::vector<std::string> files = {WriteImage(folder, "a.png", png), WriteImage(folder, "empty.jpg", ""),
                                          WriteImage(folder, "cut.jpg", jpeg.substr(0, jpeg.size() / 2)),
                                          WriteImage(folder, "text.jpg", "no image")};
  EXPECT_EQ(LargestDifference(files, {"{name: RandomResizedCrop, size: 8}"}), 0.0);
  const Pipeline fast = MakePipeline(files, {"{name: RandomResizedCrop, size: 8}"}, DecodeMode::kFast);
  PipelineScratch scratch;
  const ReadFault faults[] = {ReadFault::kNone, ReadFault::kEmpty, ReadFault::kTruncated, ReadFault::kNotAnImage};
  for (int64_t i = 0; i < 4; ++i) {
    ASSERT_OK(fast.Read(0, i, &scratch));
    EXPECT_EQ(scratch.sample.fault, faults[i]) << i;
  }
}

}  // namespace
}  // namespace ssl
