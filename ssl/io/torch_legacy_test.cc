// SPDX-License-Identifier: Apache-2.0
//
// The format of torch.save before torch 1.6.

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/pickle_builder.h"
#include "ssl/io/torch_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The parts of a file that holds one tensor [2, 2] of a storage of 4 floats.
struct Parts {
  std::string magic{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15};
  std::string protocol = PickleOf(PickleInt(1001));
  std::string system = PickleOf(absl::StrCat("}", PickleText("little_endian"), "\x88s"));
  std::string tree = PickleOf(PickleTensor(PickleStorage("FloatStorage", "94", 4), 0, {2, 2}, {2, 1}));
  std::string keys = PickleOf(absl::StrCat("](", PickleText("94"), "e"));
  std::string count = PickleRaw(int64_t{4});
  std::string values = "0123456789abcdef";

  std::string Bytes() const { return absl::StrCat(magic, protocol, system, tree, keys, count, values); }
};

class TorchLegacyTest : public ::testing::Test {
 protected:
  absl::StatusOr<TorchFile> Read(absl::string_view bytes) {
    auto file = PosixFileSystem().Create(path_);
    EXPECT_OK(file);
    EXPECT_OK((*file)->Append(bytes));
    EXPECT_OK((*file)->Close());
    return ReadTorchFile(path_);
  }

  const std::string path_ = MakeTempDir("legacy") + "/old.pth";
};

TEST_F(TorchLegacyTest, ReadsTensors) {
  ASSERT_OK_AND_ASSIGN(const TorchFile file, Read(Parts().Bytes()));
  ASSERT_EQ(file.root->kind, TorchValue::Kind::kTensor);
  EXPECT_THAT(file.root->tensor->shape, ElementsAre(2, 2));
  EXPECT_EQ(file.root->tensor->bytes, "0123456789abcdef");
}

TEST_F(TorchLegacyTest, ReadsTheMagicNumberOfLaterProtocols) {
  Parts parts;
  parts.magic = absl::StrCat("\x80\x04\x95", PickleRaw(uint64_t{13}), parts.magic.substr(2));
  EXPECT_OK(Read(parts.Bytes()));
}

TEST_F(TorchLegacyTest, RefusesGlobalsByPickleAndName) {
  Parts parts;
  parts.tree = PickleOf("ctorch._utils\n_rebuild_qtensor\n");
  EXPECT_THAT(Read(parts.Bytes()),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("old.pth: pickle 'tree': refuses global 'torch._utils._rebuild_qtensor'")));
  parts = Parts();
  parts.keys = PickleOf("ctorch\nQInt8Storage\n");
  EXPECT_THAT(Read(parts.Bytes()), StatusIs(absl::StatusCode::kUnimplemented,
                                            HasSubstr("pickle 'keys': refuses global 'torch.QInt8Storage'")));
}

TEST_F(TorchLegacyTest, RefusesOtherSystems) {
  Parts parts;
  parts.protocol = PickleOf(PickleInt(1002));
  EXPECT_THAT(Read(parts.Bytes()), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("not 1001")));
  for (const std::string& system :
       {std::string("}"), absl::StrCat("}", PickleText("little_endian"), "\x89s"), std::string("N")}) {
    parts = Parts();
    parts.system = PickleOf(system);
    EXPECT_THAT(Read(parts.Bytes()), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("little endian")));
  }
}

TEST_F(TorchLegacyTest, ChecksStoragesAgainstTheFile) {
  const auto error_of = [this](std::string Parts::*part, const std::string& value) {
    Parts parts;
    parts.*part = value;
    return Read(parts.Bytes()).status();
  };
  EXPECT_THAT(error_of(&Parts::count, PickleRaw(int64_t{5})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("storage '94' has 5 values, expected 4")));
  EXPECT_THAT(error_of(&Parts::values, "0123"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("storage '94' has 4 bytes, expected 4 values")));
  EXPECT_THAT(error_of(&Parts::keys, PickleOf("]")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("lists 0 storages, expected 1")));
  EXPECT_THAT(error_of(&Parts::keys, PickleOf(absl::StrCat("](", PickleText("7"), "e"))),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("storage '7' is listed and not used")));
  EXPECT_THAT(error_of(&Parts::keys, PickleOf(absl::StrCat("](", PickleText("94"), PickleText("94"), "e"))),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("listed twice")));
  const int64_t huge = int64_t{1} << 61;
  EXPECT_THAT(error_of(&Parts::tree, PickleOf(PickleTensor(PickleStorage("DoubleStorage", "94", huge), 0, {1}, {1}))),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(TorchLegacyTest, EveryTruncationIsAnError) {
  const std::string whole = Parts().Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(Read(whole.substr(0, size)), StatusIs(absl::StatusCode::kDataLoss)) << size;
  }
}

// The format has no checksums: a flip is an error, or a tensor that lies inside the file all the same.
TEST_F(TorchLegacyTest, FlippedBytesStayInsideTheFile) {
  const std::string whole = Parts().Bytes();
  int found = 0;
  for (size_t position = 0; position < whole.size(); ++position) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[position] = static_cast<char>(bytes[position] ^ (1 << bit));
      const auto file = Read(bytes);
      found += file.ok() ? 0 : 1;
      if (file.ok() && file->root->kind == TorchValue::Kind::kTensor) {
        EXPECT_LE(file->root->tensor->bytes.size(), 16u);
      }
    }
  }
  EXPECT_GT(found, static_cast<int>(whole.size()));
}

}  // namespace
}  // namespace ssl
