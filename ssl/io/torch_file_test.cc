// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/torch_file.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/pickle_builder.h"
#include "ssl/io/testing/zip_builder.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = TorchValue::Kind;

std::string WriteFile(absl::string_view bytes) {
  const std::string path = absl::StrCat(MakeTempDir("torch"), "/a.pth");
  auto file = PosixFileSystem().Create(path);
  EXPECT_OK(file);
  EXPECT_OK((*file)->Append(bytes));
  EXPECT_OK((*file)->Close());
  return path;
}

absl::StatusOr<TorchFile> ReadPickle(const std::string& pickle, const std::vector<ZipItem>& more = {}) {
  std::vector<ZipItem> items = {{"archive/data.pkl", pickle}};
  items.insert(items.end(), more.begin(), more.end());
  return ReadTorchFile(WriteFile(BuildZip(items)));
}

TEST(TorchFile, ReadsPlainData) {
  const std::string negative = absl::StrCat("\x8a\x01\xff", absl::string_view("\x8a\x00", 2));
  ASSERT_OK_AND_ASSIGN(
      const TorchFile file,
      ReadPickle(PickleOf(
          absl::StrCat("}(", PickleText("none"), "N", PickleText("yes"), "\x88", PickleText("int"), "J\xfe\xff\xff\xff",
                       PickleText("float"), "G\x3f\xe0", std::string(6, '\0'), PickleText("list"), "](", negative, "e",
                       PickleText("size"), "ctorch\nSize\n", PickleInts({2, 3}), "\x85R", PickleText("nested"),
                       "ccollections\nOrderedDict\n)R", PickleText("k"), PickleText("v"), "s", "}bu"))));
  const TorchValue& root = *file.root;
  EXPECT_EQ(root.Find("none")->kind, Kind::kNull);
  EXPECT_EQ(root.Find("yes")->integer, 1);
  EXPECT_EQ(root.Find("int")->integer, -2);
  EXPECT_EQ(root.Find("float")->number, 0.5);
  ASSERT_EQ(root.Find("list")->items.size(), 2u);
  EXPECT_EQ(root.Find("list")->items[0]->integer, -1);
  EXPECT_EQ(root.Find("list")->items[1]->integer, 0);
  EXPECT_EQ(root.Find("size")->items[1]->integer, 3);
  EXPECT_EQ(root.Find("nested")->Find("k")->text, "v");
  EXPECT_EQ(root.Find("other"), nullptr);
}

TEST(TorchFile, ReadsTheInstructionsOfLaterProtocols) {
  const std::string global = absl::StrCat("\x8c\x0b", "collections", "\x94\x8c\x0b", "OrderedDict", "\x94\x93\x94");
  ASSERT_OK_AND_ASSIGN(
      const TorchFile file,
      ReadTorchFile(WriteFile(BuildZip({{"x/data.pkl", absl::StrCat("\x80\x04\x95", PickleRaw(uint64_t{40}), global,
                                                                    ")R", "\x8c\x01", "a", "C\x02zz", "s.")}}))));
  EXPECT_EQ(file.root->Find("a")->text, "zz");
}

// As Python 2 wrote it, with the pairs as an argument.
TEST(TorchFile, ReadsOldOrderedDicts) {
  const std::string pairs = absl::StrCat("](](", PickleText("a"), "\x88", "e](", PickleText("b"), "\x89", "ee");
  ASSERT_OK_AND_ASSIGN(const TorchFile file,
                       ReadPickle(PickleOf(absl::StrCat("ccollections\nOrderedDict\n", pairs, "\x85R"))));
  EXPECT_EQ(file.root->Find("a")->integer, 1);
  EXPECT_EQ(file.root->Find("b")->integer, 0);

  // One list of 1,000 pairs, copied 1,000 times.
  std::string many = absl::StrCat("](", PickleText("a"), "\x88", "eq\x01", "](");
  for (int i = 0; i < 1000; ++i) many += "h\x01";
  many +=
      "e\x85q\x02"
      "ccollections\nOrderedDict\nq\x03";
  for (int i = 0; i < 1000; ++i) many += "h\x03h\x02R";
  EXPECT_THAT(ReadPickle(PickleOf(many)), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("values in all dicts")));
}

TEST(TorchFile, ReadsTensorsAsViews) {
  const std::string storage = PickleStorage("FloatStorage", "0", 6);
  std::string values;
  for (int i = 0; i < 6; ++i) values += PickleRaw(static_cast<float>(i));
  for (const bool deflate : {false, true}) {
    ASSERT_OK_AND_ASSIGN(
        const TorchFile file,
        ReadPickle(PickleOf(absl::StrCat("(", PickleTensor(storage, 0, {2, 3}, {1, 2}),
                                         PickleTensor(storage, 4, {2}, {1}), PickleTensor(storage, 6, {0}, {1}), "t")),
                   {{"archive/data/0", values, deflate}, {"archive/byteorder", "little"}}));
    ASSERT_EQ(file.root->items.size(), 3u);
    const TorchTensor& transposed = *file.root->items[0]->tensor;
    EXPECT_EQ(transposed.dtype, TorchDtype::kFloat32);
    EXPECT_THAT(transposed.shape, ElementsAre(2, 3));
    EXPECT_THAT(transposed.strides, ElementsAre(1, 2));
    EXPECT_EQ(transposed.bytes, values);
    EXPECT_EQ(file.root->items[1]->tensor->bytes, values.substr(16));
    EXPECT_EQ(file.root->items[2]->tensor->bytes, "");
  }
}

TEST(TorchFile, CallsNothing) {
  const std::string marker = MakeTempDir("torch") + "/executed";
  const std::string command = PickleText("touch " + marker);
  for (const std::string& body : {absl::StrCat("cos\nsystem\n", command, "\x85R"),
                                  absl::StrCat("\x8c\x05", "posix", "\x8c\x06", "system", "\x93", command, "\x85R"),
                                  absl::StrCat("cbuiltins\neval\n", command, "\x85\x81"),
                                  absl::StrCat("cbuiltins\neval\n", command, "\x85}\x92")}) {
    ASSERT_OK_AND_ASSIGN(const TorchFile file, ReadPickle(PickleOf(body)));
    EXPECT_EQ(file.root->kind, Kind::kObject);
    EXPECT_EQ(file.unknown.size(), 1u);
  }
  EXPECT_FALSE(PosixFileSystem().Exists(marker));
}

// As argparse, NumPy (a scalar, an array, a generator), pathlib, datetime, enum, omegaconf and classes are written.
TEST(TorchFile, PassesOverObjectsBesideTheTensors) {
  const std::string bytes = absl::StrCat("c_codecs\nencode\n", PickleText("x"), PickleText("latin1"), "\x86R");
  const std::string dtype = absl::StrCat("cnumpy\ndtype\n", PickleText("f8"), "\x89\x88\x87R(K\x03NNNtb");
  const std::vector<std::string> objects = {
      absl::StrCat("cargparse\nNamespace\n)\x81}", PickleText("lr"), "K\x01sb"),
      absl::StrCat("cnumpy.core.multiarray\nscalar\n", dtype, bytes, "\x86R"),
      absl::StrCat("cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x07\x85", bytes, "\x87R(K\x01K\x02\x85",
                   dtype, "\x89", bytes, "tb"),
      absl::StrCat("\x8a\x10", std::string(16, '\7')),
      absl::StrCat("cpathlib\nPosixPath\n(", PickleText("/"), PickleText("a"), "tR"),
      absl::StrCat("cdatetime\ndatetime\n", bytes, "\x85R"),
      "cmy.module\nColor\nK\x01\x85R",
      "ctorch\nfloat32\n",
      absl::StrCat("ctorch\ndevice\n", PickleText("cuda"), "K\x07\x86R"),
      "comegaconf.dictconfig\nDictConfig\n)\x81}b",
      "cmy\nList\n)\x81]b",
      "ccollections\nOrderedDict\n",
      "c__builtin__\nset\n]\x85R",
      "\x8f(K\x01\x90",
      "(K\x01\x91",
      absl::StrCat("cmy\nClass\n)}\x92}b")};
  const std::string storage = PickleStorage("FloatStorage", "0", 1);
  for (const std::string& object : objects) {
    SCOPED_TRACE(object);
    const std::string body = absl::StrCat("}(", PickleText("object"), object, object, "K\x01", PickleText("weight"),
                                          PickleTensor(storage, 0, {1}, {1}), "u");
    ASSERT_OK_AND_ASSIGN(const TorchFile file, ReadPickle(PickleOf(body), {{"archive/data/0", "1234"}}));
    ASSERT_NE(file.root->Find("object"), nullptr);
    EXPECT_EQ(file.root->Find("object")->kind, Kind::kObject);
    EXPECT_EQ(file.root->Find("weight")->tensor->bytes, "1234");
    EXPECT_EQ(file.root->items.size(), 4u) << "an object is no key";
  }
}

TEST(TorchFile, ReadsObjectsThatAreDictsOrLists) {
  const std::string pair = absl::StrCat(PickleText("a"), "K\x05");
  for (const std::string& dict : {absl::StrCat("ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R", pair, "s"),
                                  absl::StrCat("ceasydict\nEasyDict\n)\x81(", pair, "u}b")}) {
    ASSERT_OK_AND_ASSIGN(const TorchFile file, ReadPickle(PickleOf(dict)));
    ASSERT_NE(file.root->Find("a"), nullptr);
    EXPECT_EQ(file.root->Find("a")->integer, 5);
  }
  ASSERT_OK_AND_ASSIGN(const TorchFile file, ReadPickle(PickleOf("cmy\nList\n)\x81(NNe}b")));
  EXPECT_EQ(file.root->items.size(), 2u);
  EXPECT_THAT(ReadPickle(PickleOf(std::string("cmy\nList\n)\x81q\0h\0a", 16))),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("inside themselves")));
}

// What is passed over must not be weights.
TEST(TorchFile, RefusesTensorsOfOtherKindsByName) {
  const auto error_of = [](const std::string& body) { return ReadPickle(PickleOf(body)).status(); };
  EXPECT_THAT(error_of("ctorch._utils\n_rebuild_qtensor\n"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("a.pth: data.pkl: refuses global 'torch._utils._rebuild_qtensor'")));
  EXPECT_THAT(error_of("ctorch\nComplexFloatStorage\n"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'torch.ComplexFloatStorage'")));
  EXPECT_THAT(error_of("ca\x01\n_rebuild\n"), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'a\\x01._re")));
}

TEST(TorchFile, LimitsNamesOfObjects) {
  EXPECT_THAT(ReadPickle(PickleOf(absl::StrCat("ca\n", std::string(1001, 'b'), "\n"))),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("a long name")));
  std::string many;
  for (int i = 0; i <= 1000; ++i) absl::StrAppend(&many, "ca\nb", i, "\n0");
  EXPECT_THAT(ReadPickle(PickleOf(many + "N")),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("more than 1000 unknown functions")));
}

TEST(TorchFile, RefusesOtherInstructionsByNumber) {
  for (const char opcode : {'i', 'o', '\x82', 'P', 'I', 'V', '\x97'}) {
    EXPECT_THAT(ReadPickle(PickleOf(absl::StrCat("(", std::string(1, opcode)))),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("refuses pickle instruction 0x")))
        << opcode;
  }
}

TEST(TorchFile, RefusesWhatIsCalledWrongly) {
  for (const std::string& body : {std::string("ctorch\nFloatStorage\n)R"),
                                  std::string("N)R"),
                                  std::string("ctorch\nSize\nNR"),
                                  std::string("ctorch\nSize\n)R"),
                                  std::string("ctorch._utils\n_rebuild_tensor_v2\n)R"),
                                  std::string("ctorch._utils\n_rebuild_parameter\nN\x85R"),
                                  std::string("ccollections\nOrderedDict\nN\x85R"),
                                  std::string("NQ"),
                                  absl::StrCat("(", PickleText("storage"), "NNNNtQ"),
                                  std::string("Na"),
                                  std::string("}Na"),
                                  std::string("ctorch\nSize\nNa"),
                                  std::string("}(Nu"),
                                  std::string("R"),
                                  std::string("b"),
                                  std::string("\x86"),
                                  std::string("t"),
                                  std::string("0"),
                                  std::string("(0"),
                                  std::string("h\x05"),
                                  std::string("]q\x01(h\x02"),
                                  std::string("X\xff\xff\xff\x7f"),
                                  std::string("\x8b\xff\xff\xff\x7f\x01"),
                                  absl::StrCat("\x8d", PickleRaw(UINT64_MAX)),
                                  std::string("cos")}) {
    EXPECT_THAT(ReadPickle(PickleOf(body)), StatusIs(absl::StatusCode::kDataLoss)) << body;
  }
  EXPECT_THAT(ReadPickle(PickleOf("K\x01}b")), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("attributes")));
  EXPECT_THAT(ReadPickle(PickleOf(absl::StrCat("](", PickleStorage("FloatStorage", "0", 1), "e"))),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("as a value")));
}

TEST(TorchFile, RefusesDeepAndCircularValues) {
  const auto nested = [](int depth) { return PickleOf(std::string(depth, ']') + std::string(depth - 1, 'a')); };
  EXPECT_OK(ReadPickle(nested(50)));
  EXPECT_THAT(ReadPickle(nested(200)), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("nested more than 100")));
  EXPECT_THAT(ReadPickle(nested(100'000)), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(ReadPickle(PickleOf(std::string("]q\0(h\0h\0h\0e", 11))),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("inside themselves")));
}

// Each list holds the one before ten times: 10^20 values for who follows them.
TEST(TorchFile, RefusesValuesThatMultiply) {
  std::string body("]q\0", 3);
  for (int level = 1; level <= 20; ++level) {
    body += "](";
    for (int i = 0; i < 10; ++i) body += absl::StrCat("h", std::string(1, static_cast<char>(level - 1)));
    body += absl::StrCat("eq", std::string(1, static_cast<char>(level)));
  }
  EXPECT_THAT(ReadPickle(PickleOf(body)), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("add up to more than")));
}

TEST(TorchFile, RefusesTooManyInstructions) {
  EXPECT_THAT(ReadPickle(PickleOf(std::string(1'000'000, 'N'))),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("more than 400000 pickle instructions")));
  std::string tensors = absl::StrCat("](ctorch._utils\n_rebuild_tensor\nq\x01(", PickleStorage("FloatStorage", "0", 1),
                                     PickleInt(0), "))tq\x02R");
  for (int i = 0; i < 65'536; ++i) tensors += "h\x01h\x02R";
  EXPECT_THAT(ReadPickle(PickleOf(absl::StrCat(tensors, "e")), {{"archive/data/0", "1234"}}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("more than 65536 tensors")));
}

TEST(TorchFile, ChecksTensorsAgainstTheirStorage) {
  struct Bad {
    int64_t offset;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
  };
  const std::string storage = PickleStorage("FloatStorage", "0", 6);
  for (const Bad& bad : std::vector<Bad>{{1, {6}, {1}},
                                         {0, {2, 4}, {3, 1}},
                                         {7, {0}, {1}},
                                         {0, {INT64_MAX, INT64_MAX}, {INT64_MAX, INT64_MAX}},
                                         {INT64_MAX, {1}, {1}},
                                         {0, {int64_t{1} << 40}, {0}}}) {
    EXPECT_THAT(ReadPickle(PickleOf(PickleTensor(storage, bad.offset, bad.shape, bad.strides)),
                           {{"archive/data/0", std::string(24, '\0')}}),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("does not fit into storage '0' of 6 values")));
  }
  EXPECT_THAT(ReadPickle(PickleOf(PickleTensor(storage, 0, {-1}, {1}))), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ReadPickle(PickleOf(PickleTensor(storage, 0, {1}, {-1}))), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ReadPickle(PickleOf(PickleTensor(storage, 0, std::vector<int64_t>(17, 1), std::vector<int64_t>(17, 1)))),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(TorchFile, ChecksStoragesAgainstTheFile) {
  const auto error_of = [](const std::string& storage, const std::vector<ZipItem>& more) {
    return ReadPickle(PickleOf(PickleTensor(storage, 0, {1}, {1})), more).status();
  };
  const ZipItem values{"archive/data/0", std::string(24, '\0')};
  EXPECT_OK(error_of(PickleStorage("FloatStorage", "0", 6), {values}));
  EXPECT_THAT(
      error_of(PickleStorage("FloatStorage", "0", 7), {values}),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("storage '0' has 24 bytes, expected 7 values of 4 bytes")));
  EXPECT_THAT(error_of(PickleStorage("LongStorage", "0", int64_t{1} << 61), {values}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(error_of(PickleStorage("FloatStorage", "0", 6), {}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("entry 'archive/data/0' is missing")));
  EXPECT_THAT(error_of(PickleStorage("BoolStorage", "0", 2), {{"archive/data/0", "\1\2"}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("other than 0 and 1")));
  EXPECT_THAT(ReadPickle(PickleOf(absl::StrCat("(", PickleTensor(PickleStorage("FloatStorage", "0", 6), 0, {1}, {1}),
                                               PickleTensor(PickleStorage("IntStorage", "0", 6), 0, {1}, {1}), "t")),
                         {values}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("two dtypes")));
}

TEST(TorchFile, RefusesOtherArchives) {
  EXPECT_THAT(ReadTorchFile(WriteFile(BuildZip({{"a/other", "1"}}))),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no entry NAME/data.pkl")));
  EXPECT_THAT(ReadPickle(PickleOf("N"), {{"archive/constants.pkl", PickleOf("N")}}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("TorchScript")));
  EXPECT_THAT(ReadPickle(PickleOf("N"), {{"archive/byteorder", "big"}}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("byte order is 'big'")));
  EXPECT_THAT(ReadTorchFile(WriteFile("GIF89a")), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no file of torch")));
  EXPECT_THAT(ReadTorchFile(MakeTempDir("torch") + "/gone"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(TorchFile, RefusesBombs) {
  // 33 MiB of zeros in 33 KB.
  const ZipItem bomb{"archive/data/0", std::string(size_t{33} << 20, '\0'), /*deflate=*/true};
  EXPECT_THAT(
      ReadPickle(PickleOf(PickleTensor(PickleStorage("ByteStorage", "0", int64_t{33} << 20), 0, {1}, {1})), {bomb}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("is compressed and claims 34603008 bytes")));
}

TEST(TorchFile, FindsFlippedValues) {
  ZipItem item{"archive/data/0", std::string(24, '\1')};
  item.claimed_crc32 = 12345;
  EXPECT_THAT(ReadPickle(PickleOf(PickleTensor(PickleStorage("FloatStorage", "0", 6), 0, {6}, {1})), {item}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("entry 'archive/data/0': CRC-32 is")));
}

}  // namespace
}  // namespace ssl
