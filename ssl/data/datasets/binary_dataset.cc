// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/binary_dataset.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/datasets/array_dataset.h"

namespace ssl {
namespace {

// A publisher's layout of records: label bytes, then three planes of side x side bytes.
struct Layout {
  const char* archive_folder;
  int side = 0;
  int label_bytes = 0;      // before each image
  int num_classes = 0;      // labels are below this
  bool by_columns = false;  // the planes hold columns, not rows
};

constexpr Layout kCifar10 = {"cifar-10-batches-bin", 32, 1, 10};
constexpr Layout kCifar100 = {"cifar-100-binary", 32, 2, 100};
constexpr Layout kStl10 = {"stl10_binary", 96, 0, 10, true};

// Ten times the largest of these files. A sparse file may claim any size.
constexpr int64_t kMaxFileBytes = int64_t{2} << 30;

// The file in the folder itself or in the one of the archive.
absl::StatusOr<std::string> FindFile(FileSystem& file_system, const std::string& folder, const Layout& layout,
                                     absl::string_view name) {
  const std::string direct = absl::StrCat(folder, "/", name);
  if (file_system.Exists(direct)) return direct;
  const std::string unpacked = absl::StrCat(folder, "/", layout.archive_folder, "/", name);
  if (file_system.Exists(unpacked)) return unpacked;
  return absl::NotFoundError(absl::StrCat("data set file is missing: neither ", direct, " nor ", unpacked,
                                          " exists; set DATA_PATHS to the folder that holds the binary version"));
}

// planes: red, green and blue of one image; appended to `pixels` channel by channel.
void AppendInterleaved(absl::string_view planes, const Layout& layout, std::vector<uint8_t>* pixels) {
  const int side = layout.side;
  const int area = side * side;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int position = layout.by_columns ? x * side + y : y * side + x;
      for (int c = 0; c < 3; ++c) pixels->push_back(static_cast<uint8_t>(planes[c * area + position]));
    }
  }
}

absl::Status AppendLabel(const std::string& path, int label, const Layout& layout, ImageArray* array) {
  if (label < 0 || label >= layout.num_classes) {
    return absl::DataLossError(absl::StrCat(path, ": label of image ", array->labels.size(), " is ", label,
                                            ", expected one below ", layout.num_classes));
  }
  array->labels.push_back(label);
  return absl::OkStatus();
}

// Appends the records of one file; their labels too, when the layout has them.
absl::Status AppendRecords(FileSystem& file_system, const std::string& path, const Layout& layout, ImageArray* array) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, file_system.OpenRead(path));
  const int64_t record_bytes = layout.label_bytes + 3 * layout.side * layout.side;
  if (file->size() == 0 || file->size() % record_bytes != 0) {
    return absl::DataLossError(absl::StrCat(path, " has ", file->size(), " bytes, expected a multiple of ",
                                            record_bytes, ", the size of a record"));
  }
  if (file->size() > kMaxFileBytes) {
    return absl::DataLossError(absl::StrCat(path, " has ", file->size(), " bytes, expected at most ", kMaxFileBytes));
  }
  const int64_t count = file->size() / record_bytes;
  array->pixels.reserve(array->pixels.size() + count * 3 * layout.side * layout.side);
  std::string record(record_bytes, '\0');
  for (int64_t i = 0; i < count; ++i) {
    SSL_RETURN_IF_ERROR(file->ReadAt(i * record_bytes, absl::MakeSpan(record)));
    if (layout.label_bytes > 0) {
      const auto label = static_cast<uint8_t>(record[layout.label_bytes - 1]);
      SSL_RETURN_IF_ERROR(AppendLabel(path, label, layout, array));
    }
    AppendInterleaved(absl::string_view(record).substr(layout.label_bytes), layout, &array->pixels);
  }
  array->count += count;
  return absl::OkStatus();
}

absl::StatusOr<ImageArray> ReadFiles(FileSystem& file_system, const std::string& folder, const Layout& layout,
                                     const std::vector<std::string>& names) {
  ImageArray array;
  array.height = array.width = layout.side;
  array.channels = 3;
  for (const std::string& name : names) {
    SSL_ASSIGN_OR_RETURN(const std::string path, FindFile(file_system, folder, layout, name));
    SSL_RETURN_IF_ERROR(AppendRecords(file_system, path, layout, &array));
  }
  return array;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> ReadCifar10(FileSystem& file_system, const std::string& folder, bool test) {
  std::vector<std::string> names = {"test_batch.bin"};
  if (!test)
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
  SSL_ASSIGN_OR_RETURN(ImageArray array, ReadFiles(file_system, folder, kCifar10, names));
  return ArrayDataset::Create(std::move(array), absl::StrCat("CIFAR-10 in ", folder));
}

absl::StatusOr<std::unique_ptr<Dataset>> ReadCifar100(FileSystem& file_system, const std::string& folder, bool test) {
  SSL_ASSIGN_OR_RETURN(ImageArray array, ReadFiles(file_system, folder, kCifar100, {test ? "test.bin" : "train.bin"}));
  return ArrayDataset::Create(std::move(array), absl::StrCat("CIFAR-100 in ", folder));
}

absl::StatusOr<std::unique_ptr<Dataset>> ReadStl10(FileSystem& file_system, const std::string& folder, bool test) {
  const std::string split = test ? "test" : "train";
  SSL_ASSIGN_OR_RETURN(ImageArray array, ReadFiles(file_system, folder, kStl10, {split + "_X.bin"}));
  SSL_ASSIGN_OR_RETURN(const std::string path, FindFile(file_system, folder, kStl10, split + "_y.bin"));
  SSL_ASSIGN_OR_RETURN(const std::string labels, file_system.Read(path));
  for (const char label : labels) {
    SSL_RETURN_IF_ERROR(AppendLabel(path, static_cast<uint8_t>(label) - 1, kStl10, &array));
  }
  if (static_cast<int64_t>(array.labels.size()) != array.count) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds ", array.labels.size(), " labels for ", array.count, " images"));
  }
  return ArrayDataset::Create(std::move(array), absl::StrCat("STL-10 in ", folder));
}

}  // namespace ssl
