// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/escaped_output.h"

#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(EscapedOutput, WholeLinesPass_AndWhatIsLeftAtAFlush) {
  std::ostringstream stream;
  {
    const EscapedOutput escaped(stream);
    stream << "table\n" << 12;
    EXPECT_EQ(stream.rdbuf()->pubsync(), 0);
    stream << "3\nthe end";
  }
  EXPECT_EQ(stream.str(), "table\n123\nthe end");
}

TEST(EscapedOutput, NoCommandReachesTheTerminal) {
  std::ostringstream stream;
  {
    const EscapedOutput escaped(stream);
    // A letter in two pieces is a letter.
    stream << "\x1B[31m\a\xC3"
           << "\xA4\xE2\x80\xAE\xFF\r\n";
  }
  EXPECT_EQ(stream.str(), "\\x1b[31m\\x07\xC3\xA4\\u202e\\xff\\r\n");
  stream << "\x1B";
  EXPECT_EQ(stream.str().back(), '\x1B');
}

TEST(EscapedOutput, PrintedConfiguration_ReadsTheSame) {
  ConfigNode root = ConfigNode::Map();
  root.Set("path", ConfigNode::FromString("/data/\xC3\xA4\x1B\xE2\x80\xAE\xC2\x85.jpg"));
  std::ostringstream stream;
  {
    const EscapedOutput escaped(stream);
    stream << WriteYaml(root);
  }
  std::vector<std::string> warnings;
  ASSERT_OK_AND_ASSIGN(const ConfigNode read, ParseYaml(stream.str(), "printed", &warnings));
  EXPECT_EQ(read.FindPath("path")->text(), root.FindPath("path")->text()) << stream.str();
}

TEST(EscapedOutput, StreamThatTakesNothing_IsBadAtTheFlush) {
  std::ostringstream target;
  std::ostream stream(target.rdbuf());
  {
    const EscapedOutput escaped(stream);
    stream << "a";
    EXPECT_TRUE(stream.flush());
  }
  class FullBuffer : public std::streambuf {};
  FullBuffer full;
  std::ostream nowhere(&full);
  const EscapedOutput escaped(nowhere);
  nowhere << "lost\n";
  EXPECT_FALSE(nowhere.flush());
}

}  // namespace
}  // namespace ssl
