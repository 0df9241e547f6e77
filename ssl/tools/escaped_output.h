// SPDX-License-Identifier: Apache-2.0
//
// Makes an output stream safe to look at: whatever is printed on it, such as the name of a stranger's file in a table,
// no terminal takes it for a command (EscapeForTerminal). Passes whole lines on, and what there is of one at a flush.
// Not thread-safe, as a stream is not.
//
//   const EscapedOutput escaped(std::cout);
#ifndef SSL_TOOLS_ESCAPED_OUTPUT_H_
#define SSL_TOOLS_ESCAPED_OUTPUT_H_

#include <ostream>
#include <streambuf>
#include <string>

namespace ssl {

class EscapedOutput : private std::streambuf {
 public:
  // The stream outlives it, and is as before after it.
  explicit EscapedOutput(std::ostream& stream);
  ~EscapedOutput() override;
  EscapedOutput(const EscapedOutput&) = delete;
  EscapedOutput& operator=(const EscapedOutput&) = delete;

 private:
  int_type overflow(int_type byte) override;
  int sync() override;

  bool PassOn();

  std::ostream& stream_;
  std::streambuf* const target_;
  std::string line_;  // begun
};

}  // namespace ssl

#endif  // SSL_TOOLS_ESCAPED_OUTPUT_H_
