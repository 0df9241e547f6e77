// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/escaped_output.h"

#include "ssl/base/utf8.h"

namespace ssl {

EscapedOutput::EscapedOutput(std::ostream& stream) : stream_(stream), target_(stream.rdbuf()) {
  const std::ios::iostate state = stream.rdstate();
  stream.rdbuf(this);
  stream.setstate(state);
}

EscapedOutput::~EscapedOutput() {
  const std::ios::iostate state = stream_.rdstate();
  const bool passed = PassOn();
  stream_.rdbuf(target_);
  stream_.setstate(passed ? state : state | std::ios::badbit);
}

EscapedOutput::int_type EscapedOutput::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  line_.push_back(traits_type::to_char_type(byte));
  return line_.back() != '\n' || PassOn() ? byte : traits_type::eof();
}

int EscapedOutput::sync() { return PassOn() && target_->pubsync() == 0 ? 0 : -1; }

bool EscapedOutput::PassOn() {
  const std::string escaped = EscapeForTerminal(line_);
  line_.clear();
  return target_->sputn(escaped.data(), static_cast<std::streamsize>(escaped.size())) ==
         static_cast<std::streamsize>(escaped.size());
}

}  // namespace ssl
