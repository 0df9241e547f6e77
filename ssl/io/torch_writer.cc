// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/torch_writer.h"

#include <ATen/core/Tensor.h>
#include <c10/util/strides.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"

namespace ssl {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kExtraHeaderBytes = 4;
constexpr uint16_t kPaddingExtra = 0x4246;  // "FB", as torch marks its padding
constexpr uint16_t kVersionNeeded = 10;
constexpr uint16_t kUtf8Names = 1 << 11;
constexpr uint16_t kNewYear1980 = (1 << 5) | 1;  // the earliest date: equal input gives equal bytes
constexpr uint64_t kMaxFileBytes = std::numeric_limits<uint32_t>::max();
constexpr absl::string_view kRoot = "archive/";

struct StorageClass {
  at::ScalarType type;
  absl::string_view name;
};

constexpr std::array<StorageClass, 10> kStorageClasses = {{
    {at::kDouble, "DoubleStorage"},
    {at::kFloat, "FloatStorage"},
    {at::kHalf, "HalfStorage"},
    {at::kBFloat16, "BFloat16Storage"},
    {at::kLong, "LongStorage"},
    {at::kInt, "IntStorage"},
    {at::kShort, "ShortStorage"},
    {at::kChar, "CharStorage"},
    {at::kByte, "ByteStorage"},
    {at::kBool, "BoolStorage"},
}};

// Appends little-endian integers.
template <class... Ints>
void AppendInts(std::string* bytes, Ints... values) {
  (bytes->append(reinterpret_cast<const char*>(&values), sizeof(values)), ...);
}

// A zip archive of stored entries, written from front to back.
class ZipWriter {
 public:
  explicit ZipWriter(WritableFile* file) : file_(*file) {}

  absl::Status Add(absl::string_view name, absl::string_view content) {
    const uint64_t begin = offset_;
    const uint64_t unpadded = begin + kLocalHeaderBytes + kExtraHeaderBytes + name.size();
    const size_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
    if (content.size() > kMaxFileBytes || unpadded + padding + content.size() > kMaxFileBytes) {
      return absl::InvalidArgumentError("the file would have 4 GiB or more, which only safetensors files may have");
    }
    // What the local header and the directory say alike.
    std::string common;
    AppendInts(&common, kVersionNeeded, kUtf8Names, uint16_t{0}, uint16_t{0}, kNewYear1980,
               static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size())),
               static_cast<uint32_t>(content.size()), static_cast<uint32_t>(content.size()),
               static_cast<uint16_t>(name.size()));
    std::string local = absl::StrCat("PK\x03\x04", common);
    AppendInts(&local, static_cast<uint16_t>(kExtraHeaderBytes + padding));
    absl::StrAppend(&local, name);
    AppendInts(&local, kPaddingExtra, static_cast<uint16_t>(padding));
    local.append(padding, 'Z');
    SSL_RETURN_IF_ERROR(Append(local));
    SSL_RETURN_IF_ERROR(Append(content));

    directory_.append("PK\x01\x02");
    AppendInts(&directory_, kVersionNeeded);
    directory_.append(common);
    // Extra field, comment, disk, attributes: none.
    AppendInts(&directory_, uint16_t{0}, uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0},
               static_cast<uint32_t>(begin));
    directory_.append(name.data(), name.size());
    ++entries_;
    return absl::OkStatus();
  }

  absl::Status Finish() {
    if (offset_ + directory_.size() > kMaxFileBytes || entries_ >= std::numeric_limits<uint16_t>::max()) {
      return absl::InvalidArgumentError("the file would have 4 GiB or 65535 entries, which only safetensors may have");
    }
    std::string end = "PK\x05\x06";
    AppendInts(&end, uint16_t{0}, uint16_t{0}, static_cast<uint16_t>(entries_), static_cast<uint16_t>(entries_),
               static_cast<uint32_t>(directory_.size()), static_cast<uint32_t>(offset_), uint16_t{0});
    SSL_RETURN_IF_ERROR(Append(directory_));
    return Append(end);
  }

 private:
  absl::Status Append(absl::string_view bytes) {
    offset_ += bytes.size();
    return file_.Append(bytes);
  }

  WritableFile& file_;
  uint64_t offset_ = 0;
  uint64_t entries_ = 0;
  std::string directory_;
};

// Pickle, protocol 2: instructions as in ssl/io/pickle_input.h.
void PickleText(absl::string_view text, std::string* pickle) {
  pickle->push_back('X');
  AppendInts(pickle, static_cast<uint32_t>(text.size()));
  pickle->append(text.data(), text.size());
}

void PickleInt(int64_t value, std::string* pickle) {
  pickle->append("\x8a\x08");
  AppendInts(pickle, value);
}

void PickleTuple(at::IntArrayRef values, std::string* pickle) {
  pickle->push_back('(');
  for (const int64_t value : values) PickleInt(value, pickle);
  pickle->push_back('t');
}

// _rebuild_tensor_v2(storage, offset 0, shape, strides, requires_grad False, no hooks)
void PickleTensor(const at::Tensor& tensor, absl::string_view storage_class, size_t key, std::string* pickle) {
  absl::StrAppend(pickle, "ctorch._utils\n_rebuild_tensor_v2\n((");
  PickleText("storage", pickle);
  absl::StrAppend(pickle, "ctorch\n", storage_class, "\n");
  PickleText(absl::StrCat(key), pickle);
  PickleText("cpu", pickle);
  PickleInt(tensor.numel(), pickle);
  absl::StrAppend(pickle, "tQ");
  PickleInt(0, pickle);
  PickleTuple(tensor.sizes(), pickle);
  PickleTuple(c10::contiguous_strides(tensor.sizes()), pickle);
  absl::StrAppend(pickle, "\x89NtR");
}

absl::StatusOr<std::string> PickleDict(const std::vector<NamedTensor>& tensors) {
  std::string pickle("\x80\x02}(");
  std::set<absl::string_view> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i].tensor;
    const std::string where = absl::StrCat("tensor '", tensors[i].name, "'");
    if (!names.insert(tensors[i].name).second) return absl::InvalidArgumentError(absl::StrCat(where, " occurs twice"));
    if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_meta()) {
      return absl::InvalidArgumentError(absl::StrCat(where, " is undefined, sparse or without data"));
    }
    const auto* found =
        std::find_if(kStorageClasses.begin(), kStorageClasses.end(),
                     [&tensor](const StorageClass& known) { return known.type == tensor.scalar_type(); });
    if (found == kStorageClasses.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": dtype is ", c10::toString(tensor.scalar_type()), ", which is not supported"));
    }
    PickleText(tensors[i].name, &pickle);
    PickleTensor(tensor, found->name, i, &pickle);
  }
  return absl::StrCat(pickle, "u.");
}

absl::Status Write(WritableFile* file, const std::vector<NamedTensor>& tensors) {
  SSL_ASSIGN_OR_RETURN(const std::string pickle, PickleDict(tensors));
  ZipWriter zip(file);
  SSL_RETURN_IF_ERROR(zip.Add(absl::StrCat(kRoot, "data.pkl"), pickle));
  SSL_RETURN_IF_ERROR(zip.Add(absl::StrCat(kRoot, "byteorder"), "little"));
  for (size_t i = 0; i < tensors.size(); ++i) {
    // A no-op each for a contiguous tensor on the CPU; else one copy that dies here.
    const at::Tensor rows = tensors[i].tensor.detach().cpu().resolve_neg().contiguous();
    const absl::string_view bytes(static_cast<const char*>(rows.const_data_ptr()), rows.nbytes());
    SSL_RETURN_IF_ERROR(zip.Add(absl::StrCat(kRoot, "data/", i), bytes));
  }
  SSL_RETURN_IF_ERROR(zip.Add(absl::StrCat(kRoot, "version"), "3\n"));
  return zip.Finish();
}

absl::Status WriteAndRename(FileSystem& file_system, const std::string& temporary, const std::string& path,
                            const std::vector<NamedTensor>& tensors) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system.Create(temporary));
  SSL_RETURN_IF_ERROR(
      GuardTorch(absl::StrCat("file ", path), [&file, &tensors] { return Write(file.get(), tensors); }));
  SSL_RETURN_IF_ERROR(file->Sync());
  SSL_RETURN_IF_ERROR(file->Close());
  return file_system.Rename(temporary, path);
}

}  // namespace

absl::Status WriteTorchFile(FileSystem& file_system, const std::string& path, const std::vector<NamedTensor>& tensors) {
  const std::string temporary = absl::StrCat(path, ".tmp-", getpid());
  const absl::Status written = WriteAndRename(file_system, temporary, path, tensors);
  if (!written.ok()) {
    // The first error is the one to report; a temporary file that stays harms nobody.
    if (file_system.Exists(temporary)) file_system.RemoveFile(temporary).IgnoreError();
    return written;
  }
  return file_system.SyncDirectory(ParentDirectory(path));
}

}  // namespace ssl
