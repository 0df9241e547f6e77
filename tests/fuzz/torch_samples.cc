// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/torch_samples.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ssl/io/testing/pickle_builder.h"
#include "ssl/io/testing/zip_builder.h"
#include "ssl/io/torch_file.h"
#include "ssl/io/torch_value.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {
namespace {

constexpr int kMaxValues = 3'000'000;  // torch_value.h promises 2 million

// The last byte that shape and strides reach, from the first one.
int64_t ReachOf(const TorchTensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return 0;
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  return (last + 1) * TorchDtypeBytes(tensor.dtype);
}

void CheckTensor(const TorchTensor& tensor, unsigned* sum) {
  CheckFuzz(tensor.shape.size() == tensor.strides.size(), "a tensor has a stride for each extent");
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    CheckFuzz(tensor.shape[i] >= 0 && tensor.strides[i] >= 0, "extents and strides are not negative");
  }
  CheckFuzz(ReachOf(tensor) <= static_cast<int64_t>(tensor.bytes.size()), "a tensor lies inside its bytes");
  for (const char byte : tensor.bytes) *sum += static_cast<unsigned char>(byte);
}

// Depth is the file's own: the reader limits it.
void Walk(const TorchValue& value, int* values, unsigned* sum) {
  CheckFuzz(++*values <= kMaxValues, "a walk over the tree ends");
  CheckFuzz(value.kind != TorchValue::Kind::kStorage, "a tree has no leftovers of the reader");
  CheckFuzz(value.kind != TorchValue::Kind::kTensor || value.tensor != nullptr, "a tensor is there");
  CheckFuzz(value.kind != TorchValue::Kind::kDict || value.items.size() % 2 == 0, "each key has a value");
  if (value.tensor != nullptr) CheckTensor(*value.tensor, sum);
  for (const char byte : value.text) *sum += static_cast<unsigned char>(byte);
  for (const TorchValue* item : value.items) Walk(*item, values, sum);
}

std::string Entry(absl::string_view key, absl::string_view value) { return absl::StrCat(PickleText(key), value); }

}  // namespace

std::vector<std::string> SamplePickles() {
  const std::string storage = PickleStorage("FloatStorage", "0", kStorageBytes / 4);
  const std::string matrix = PickleTensor(storage, 2, {2, 3}, {3, 1});
  const std::string vector = PickleTensor(PickleStorage("LongStorage", "0", kStorageBytes / 8), 0, {8}, {1});
  const std::string number = absl::StrCat("G", std::string("\x3f\xf0\0\0\0\0\0\0", 8));
  const std::string dict = absl::StrCat("}(", Entry("conv.weight", matrix), Entry("epoch", PickleInt(3)),
                                        Entry("lr", number), Entry("flag", "\x88"), Entry("none", "N"), "u");
  const std::string ordered =
      absl::StrCat("ccollections\nOrderedDict\n)R(", Entry("state", dict), Entry("v", vector), "u");
  const std::string memo = absl::StrCat("]q\x01(", PickleInts({1, 2}), "q\x02h\x02", PickleText("s"), "e");
  const std::string objects =
      absl::StrCat("](carg\nSpace\n)\x81}b", "cnumpy\nscalar\n", PickleText("f8"), "\x85R", "cmy\nDict\n)\x81",
                   PickleText("a"), matrix, "s", "\x8f(K\x01\x90", "\x8a\x09", "123456789", "e");
  return {PickleOf(matrix), PickleOf(dict), PickleOf(ordered), PickleOf(memo), PickleOf(objects)};
}

std::string ArchiveOf(absl::string_view pickle) {
  ZipItem program{"archive/data.pkl", std::string(pickle)};
  ZipItem order{"archive/byteorder", "little"};
  ZipItem storage{"archive/data/0", std::string(kStorageBytes, 's')};
  ZipItem version{"archive/version", "3\n"};
  std::vector<ZipItem> items = {program, order, storage, version};
  for (ZipItem& item : items) item.claimed_crc32 = 0;
  return BuildZip(items);
}

void ReadTorchBytes(absl::string_view file) {
  const auto read = ReadTorchFile(WriteFuzzFile(file, "input.pth"));
  if (!read.ok()) return;
  int values = 0;
  unsigned sum = 0;
  Walk(*read->root, &values, &sum);
}

}  // namespace ssl::fuzz
