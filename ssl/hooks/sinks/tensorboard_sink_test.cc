// SPDX-License-Identifier: Apache-2.0
//
// Event files are read back by a decoder of this test's own, written from the format descriptions.
#include "ssl/hooks/sinks/tensorboard_sink.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/testing/manual_clock.h"
#include "ssl/core/metric_summaries.h"
#include "ssl/data/image/decode_png.h"
#include "ssl/data/image/image.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// CRC-32C bit by bit, masked as TFRecord files store it.
uint32_t NaiveMaskedCrc(absl::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78 : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

template <class Number>
Number Take(absl::string_view* bytes) {
  Number value{};
  EXPECT_GE(bytes->size(), sizeof(value));
  if (bytes->size() < sizeof(value)) return value;
  std::memcpy(&value, bytes->data(), sizeof(value));
  bytes->remove_prefix(sizeof(value));
  return value;
}

uint64_t TakeVarint(absl::string_view* bytes) {
  uint64_t value = 0;
  for (int shift = 0; !bytes->empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  ADD_FAILURE() << "a varint does not end";
  return value;
}

// A protocol buffer message: raw values by field number.
struct Message {
  std::map<uint64_t, uint64_t> varints;
  std::map<uint64_t, double> doubles;
  std::map<uint64_t, float> floats;
  std::map<uint64_t, std::vector<std::string>> bytes;
};

Message Decode(absl::string_view text) {
  Message message;
  while (!text.empty()) {
    const uint64_t tag = TakeVarint(&text);
    const uint64_t field = tag >> 3;
    switch (tag & 7) {
      case 0:
        message.varints[field] = TakeVarint(&text);
        break;
      case 1:
        message.doubles[field] = Take<double>(&text);
        break;
      case 5:
        message.floats[field] = Take<float>(&text);
        break;
      case 2: {
        const uint64_t size = TakeVarint(&text);
        EXPECT_LE(size, text.size());
        message.bytes[field].emplace_back(text.substr(0, size));
        text.remove_prefix(std::min<size_t>(size, text.size()));
        break;
      }
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
        return message;
    }
  }
  return message;
}

std::vector<Message> ReadEvents(const std::string& path) {
  const std::string file = PosixFileSystem().Read(path).value_or("");
  absl::string_view rest = file;
  std::vector<Message> events;
  while (!rest.empty()) {
    const uint32_t length_crc = NaiveMaskedCrc(rest.substr(0, 8));
    const uint64_t length = Take<uint64_t>(&rest);
    EXPECT_EQ(Take<uint32_t>(&rest), length_crc);
    EXPECT_LE(length, rest.size());
    const absl::string_view payload = rest.substr(0, length);
    rest.remove_prefix(std::min<size_t>(length, rest.size()));
    EXPECT_EQ(Take<uint32_t>(&rest), NaiveMaskedCrc(payload));
    events.push_back(Decode(payload));
  }
  return events;
}

std::map<std::string, float> ScalarsOf(const Message& event) {
  std::map<std::string, float> scalars;
  const auto summaries = event.bytes.find(5);
  if (summaries == event.bytes.end()) return scalars;
  const Message summary = Decode(summaries->second[0]);
  for (const std::string& value : summary.bytes.at(1)) {
    const Message entry = Decode(value);
    scalars[entry.bytes.at(1)[0]] = entry.floats.at(2);
  }
  return scalars;
}

std::vector<double> Doubles(absl::string_view packed) {
  std::vector<double> values;
  while (!packed.empty()) values.push_back(Take<double>(&packed));
  return values;
}

class TensorboardSinkTest : public ::testing::Test {
 protected:
  std::vector<std::string> Files() {
    std::vector<std::string> paths;
    for (const std::string& name : PosixFileSystem().List(directory_).value_or(std::vector<std::string>())) {
      paths.push_back(directory_ + "/" + name);
    }
    return paths;
  }

  const std::string root_ = MakeTempDir("tensorboard");
  const std::string directory_ = root_ + "/tb_logs";
  ManualClock clock_{absl::FromUnixSeconds(1700000000)};
};

TEST_F(TensorboardSinkTest, Reports_AreScalarsAtTheirStep) {
  const auto sink = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 0);

  ASSERT_OK(sink->Write({10, 0, {{"Training/Loss", 4.5}, {"Speed/samples_per_sec", 812.5}}}));
  clock_.Advance(absl::Seconds(3));
  ASSERT_OK(sink->Write({300, 1, {{"Training/Loss", 4.25}}}));
  ASSERT_OK(sink->Flush());

  ASSERT_THAT(Files(), SizeIs(1));
  std::vector<Message> events = ReadEvents(Files()[0]);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_THAT(events[0].bytes[3], ElementsAre("brain.Event:2"));
  EXPECT_EQ(events[1].varints[2], 0u);
  EXPECT_EQ(Decode(events[1].bytes[7][0]).varints[1], 1u);  // SessionLog.START
  EXPECT_EQ(events[2].varints[2], 10u);
  EXPECT_EQ(events[2].doubles[1], 1700000000.0);
  EXPECT_EQ(ScalarsOf(events[2]),
            (std::map<std::string, float>{{"Speed/samples_per_sec", 812.5F}, {"Training/Loss", 4.5F}}));
  EXPECT_EQ(events[3].varints[2], 300u);
  EXPECT_EQ(events[3].doubles[1], 1700000003.0);
  EXPECT_EQ(ScalarsOf(events[3]), (std::map<std::string, float>{{"Training/Loss", 4.25F}}));
}

TEST_F(TensorboardSinkTest, HistogramsAndImages_AreInTheEventOfTheirReport) {
  const auto sink = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 0);
  MetricReport report{10, 0, {{"loss", 0.5}}};
  report.histograms["weights"] = MakeHistogram(at::arange(128, at::kFloat));
  ASSERT_OK_AND_ASSIGN(report.images["crop"], MakeImage(at::full({2, 4, 3}, 200, at::kByte)));

  ASSERT_OK(sink->Write(report));

  const std::vector<Message> events = ReadEvents(Files()[0]);
  ASSERT_THAT(events, SizeIs(3));
  const Message summary = Decode(events[2].bytes.at(5)[0]);
  const std::vector<std::string>& values = summary.bytes.at(1);
  ASSERT_THAT(values, SizeIs(3));
  EXPECT_EQ(Decode(values[0]).floats.at(2), 0.5F);
  const Message named_histogram = Decode(values[1]);
  EXPECT_EQ(named_histogram.bytes.at(1)[0], "weights");
  const Message histogram = Decode(named_histogram.bytes.at(5)[0]);
  EXPECT_EQ(histogram.doubles.at(2), 127.0);
  EXPECT_EQ(histogram.doubles.at(3), 128.0);
  EXPECT_EQ(histogram.doubles.at(4), 127.0 * 128.0 / 2.0);
  EXPECT_THAT(Doubles(histogram.bytes.at(7)[0]), AllOf(SizeIs(64), Each(2.0)));
  EXPECT_EQ(Doubles(histogram.bytes.at(6)[0]).back(), 127.0);
  const Message named_image = Decode(values[2]);
  EXPECT_EQ(named_image.bytes.at(1)[0], "crop");
  Message image = Decode(named_image.bytes.at(4)[0]);
  EXPECT_EQ(image.varints[1], 2u);
  EXPECT_EQ(image.varints[2], 4u);
  Image decoded;
  ASSERT_OK(DecodePng(image.bytes.at(4)[0], DecodeLimits(), &decoded));
  EXPECT_EQ(decoded.width(), 4);
  EXPECT_EQ(decoded.pixels()[23], 200);
}

TEST_F(TensorboardSinkTest, Name_IsOneThatTensorboardLooksFor) {
  const auto sink = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 0);

  ASSERT_OK(sink->Write({1, 0, {{"a", 1.0}}}));

  EXPECT_THAT(Files()[0], StartsWith(directory_ + "/events.out.tfevents.1700000000."));
}

// What TensorBoard shows of the files in the order of their names: a session start drops its step and later ones.
std::map<std::string, std::vector<uint64_t>> ShownSteps(const std::vector<std::string>& files) {
  std::map<std::string, std::vector<uint64_t>> shown;
  for (const std::string& file : files) {
    for (Message& event : ReadEvents(file)) {
      const uint64_t step = event.varints[2];
      for (auto& [name, steps] : shown) {
        const auto later = [&](uint64_t other) { return event.bytes.count(7) > 0 && other >= step; };
        steps.erase(std::remove_if(steps.begin(), steps.end(), later), steps.end());
      }
      for (const auto& [name, value] : ScalarsOf(event)) shown[name].push_back(step);
    }
  }
  return shown;
}

TEST_F(TensorboardSinkTest, ProcessThatGoesOn_HidesWhatItDoesAgainAndNothingElse) {
  {
    const auto killed = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 0);
    for (const int64_t step : {10, 20, 22}) ASSERT_OK(killed->Write({step, 0, {{"Training/Loss", 1.0}}}));
  }
  const auto resumed = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 20);
  ASSERT_OK(resumed->Write({20, 0, {{"Testing/accuracy", 50.0}}}));
  ASSERT_OK(resumed->Write({30, 0, {{"Training/Loss", 1.0}}}));

  ASSERT_THAT(Files(), SizeIs(2));
  const auto shown = ShownSteps(Files());
  EXPECT_THAT(shown.at("Training/Loss"), ElementsAre(10, 20, 30));
  EXPECT_THAT(shown.at("Testing/accuracy"), ElementsAre(20));
}

// A finished run that is started again tells its last test phase again.
TEST_F(TensorboardSinkTest, WhatIsTheSameAtTheStepOfTheStart_IsWrittenOnce) {
  for (const int64_t first : {0, 20, 20, 20}) {
    const auto sink = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, first);
    if (first == 0) {
      ASSERT_OK(sink->Write({20, 0, {{"Training/Loss", 1.0}}}));
    }
    ASSERT_OK(sink->Write({20, 0, {{"Testing/accuracy", 50.0}}}));
  }
  EXPECT_THAT(ShownSteps(Files()).at("Testing/accuracy"), ElementsAre(20));
  EXPECT_THAT(Files(), SizeIs(1));
  const auto other = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 20);
  ASSERT_OK(other->Write({20, 0, {{"Testing/accuracy", 75.0}}}));
  EXPECT_THAT(ShownSteps(Files()).at("Testing/accuracy"), ElementsAre(20, 20)) << "it is another value";
}

TEST_F(TensorboardSinkTest, ProcessThatBeginsAnew_HidesAllOfTheOneBefore) {
  for (int process = 0; process < 2; ++process) {
    const auto sink = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 0);
    for (const int64_t step : {0, 5}) ASSERT_OK(sink->Write({step, 0, {{"a", 1.0}}}));
  }
  EXPECT_THAT(ShownSteps(Files()).at("a"), ElementsAre(0, 5));
}

// A case of detectron2's tests.
TEST_F(TensorboardSinkTest, WithoutReports_NoFileIsMade) {
  const auto sink = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 0);

  EXPECT_OK(sink->Flush());

  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(TensorboardSinkTest, EveryRecord_IsInTheFileBeforeTheNext) {
  const auto sink = MakeTensorboardSink(PosixFileSystem(), {directory_, ""}, clock_, 0);

  ASSERT_OK(sink->Write({1, 0, {{"a", 1.0}}}));

  EXPECT_THAT(ReadEvents(Files()[0]), SizeIs(3));
}

TEST_F(TensorboardSinkTest, EveryFailingCall_IsReportedAndTheNextReportStartsAFreshFile) {
  int call = 1;
  for (;; ++call) {
    ASSERT_OK(PosixFileSystem().RemoveAll(directory_));
    FaultFileSystem faults(PosixFileSystem(), root_);
    faults.set_short_writes(true);
    faults.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
    const auto sink = MakeTensorboardSink(faults, {directory_, ""}, clock_, 0);
    const absl::Status first = sink->Write({1, 0, {{"a", 1.0}}});
    if (faults.failed_calls() == 0) break;
    EXPECT_THAT(first, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(directory_)));

    ASSERT_OK(sink->Write({2, 0, {{"a", 2.0}}}));

    const bool was_marked = call == 5;
    const std::vector<Message> events = ReadEvents(Files().back());
    ASSERT_THAT(events, SizeIs(was_marked ? 2 : 3)) << "call " << call;
    EXPECT_EQ(ScalarsOf(events.back()).at("a"), 2.0F);
  }
  EXPECT_EQ(call, 6);  // directory, file, head, directory's fsync and first record were made to fail
}

}  // namespace
}  // namespace ssl
