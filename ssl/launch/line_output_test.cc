// SPDX-License-Identifier: Apache-2.0
//
// Lines however they arrive, and outputs that take little or nothing.
#include "ssl/launch/line_output.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "ssl/launch/pipe.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(LineSplitterTest, LinesArriveInPieces) {
  LineSplitter lines("[3] ");
  std::string out;
  lines.Append("epo", &out);
  EXPECT_EQ(out, "");
  lines.Append("ch 1\n\nepoch", &out);
  EXPECT_EQ(out, "[3] epoch 1\n[3] \n");
  lines.Append(" 2", &out);
  lines.Finish(&out);
  EXPECT_EQ(out, "[3] epoch 1\n[3] \n[3] epoch 2\n");
  lines.Finish(&out);
  EXPECT_EQ(out, "[3] epoch 1\n[3] \n[3] epoch 2\n");
}

TEST(LineSplitterTest, AnEndlessLineIsCut) {
  LineSplitter lines("> ");
  std::string out;
  lines.Append(std::string(LineSplitter::kMaxLine + 1, 'a'), &out);
  EXPECT_EQ(out, "> " + std::string(LineSplitter::kMaxLine, 'a') + "\n");
  lines.Finish(&out);
  EXPECT_EQ(out.substr(out.size() - 4), "> a\n");
}

TEST(LineSplitterTest, ALineOfTheLargestSizeIsWhole) {
  LineSplitter lines("");
  std::string out;
  const std::string line = std::string(LineSplitter::kMaxLine, 'a') + "\n";
  lines.Append(line, &out);
  EXPECT_EQ(out, line);
}

TEST(OutputStreamTest, WritesNoMoreThanAPipeTakesAtOnce) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, Pipe::Create());
  OutputStream out(pipe.write_fd());
  *out.pending() = std::string(PIPE_BUF, 'a') + "b";
  out.WriteSome();
  EXPECT_EQ(*out.pending(), "b");
  out.WriteSome();
  EXPECT_TRUE(out.is_empty());
  std::string read_back(2 * PIPE_BUF, ' ');
  EXPECT_EQ(read(pipe.read_fd(), read_back.data(), read_back.size()), PIPE_BUF + 1);
}

TEST(OutputStreamTest, KeepsWhatAFullPipeDoesNotTake) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, Pipe::Create());
  SetNonBlocking(pipe.write_fd());
  const std::string page(PIPE_BUF, 'a');
  while (write(pipe.write_fd(), page.data(), page.size()) > 0) {
  }
  OutputStream out(pipe.write_fd());
  *out.pending() = "line\n";
  out.WriteSome();
  EXPECT_EQ(*out.pending(), "line\n");
}

TEST(OutputStreamTest, AReaderThatIsGoneEndsNothing) {
  std::signal(SIGPIPE, SIG_IGN);
  ASSERT_OK_AND_ASSIGN(Pipe pipe, Pipe::Create());
  pipe.CloseRead();
  OutputStream out(pipe.write_fd());
  *out.pending() = "line\n";
  out.WriteSome();
  EXPECT_TRUE(out.is_empty());
}

}  // namespace
}  // namespace ssl
