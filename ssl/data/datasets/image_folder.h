// SPDX-License-Identifier: Apache-2.0
//
// The images below a folder that has one folder for each class, in the order of torchvision's ImageFolder: classes
// are the folders directly below, sorted by name; a class holds all images below its folder, at any depth, sorted by
// folder and then by name. What counts is the end of a name (jpg, jpeg, png, ppm, bmp, pgm, tif, tiff, webp, in any
// case), not its content. Names are compared byte by byte, as Python compares UTF-8 names.
//
// Ours: a folder that has no folders, but images, is a data set without classes. One that has the folders "train" and
// "val" (or "test", ...), or "train" alone with folders in it, is refused: it is the root of a data set.
//
// Links are followed, as there (within `root`, they may not lead out of it), but a folder counts once in a class,
// however many links lead to it, and a link back to the data set's folder or to one above it is passed over: a link to
// ".." would otherwise give a class the images of all others, or never end. Folders and files whose name begins with a
// dot (.git, and what macOS leaves beside each file, ._001.jpg) are passed over too, and files of other kinds are
// counted.
#ifndef SSL_DATA_DATASETS_IMAGE_FOLDER_H_
#define SSL_DATA_DATASETS_IMAGE_FOLDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/clock.h"
#include "ssl/base/stop_token.h"
#include "ssl/data/datasets/path_list.h"
#include "ssl/io/file_system.h"
#include "ssl/io/folder_root.h"

namespace ssl {

struct ImageFolder {
  std::vector<std::string> classes;
  PathList paths;
  std::vector<int64_t> labels;           // of each path: its position in `classes`
  std::vector<std::string> passed_over;  // what does not count, a sentence each, for a warning
};

// All outlive the scan.
struct ScanOptions {
  FileSystem* file_system = &PosixFileSystem();
  // Looked at before each folder and each link; null: nobody stops the scan.
  const StopToken* stop = nullptr;
  // A scan that takes long logs its progress every two seconds.
  Clock* clock = &Clock::Real();
  // Instead of file_system: nothing is listed or looked up elsewhere, and links that lead out are passed over, unless
  // they have the name of an image; null: anywhere.
  const FolderRoot* root = nullptr;
};

// Lists `folder`. NotFound when there is no such folder; InvalidArgument when it holds nothing, or names the class
// folders that hold no image, and says what to do; Cancelled when it was stopped.
absl::StatusOr<ImageFolder> ScanImageFolder(const std::string& folder, const ScanOptions& options = {});

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_IMAGE_FOLDER_H_
