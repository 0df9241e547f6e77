// SPDX-License-Identifier: Apache-2.0
//
// GoogleTest macros and matchers for absl::Status and absl::StatusOr<T>.
//
//   EXPECT_OK(Save(path));
//   ASSERT_OK_AND_ASSIGN(const std::string text, Read(path));
//   EXPECT_THAT(Read("gone"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone")));

#ifndef SSL_TESTING_STATUS_MATCHERS_H_
#define SSL_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#define EXPECT_OK(...) EXPECT_THAT((__VA_ARGS__), ::ssl::IsOk())
#define ASSERT_OK(...) ASSERT_THAT((__VA_ARGS__), ::ssl::IsOk())

// Moves the value of a StatusOr into `declaration`, or fails and leaves the test function.
#define ASSERT_OK_AND_ASSIGN(declaration, ...)                                                               \
  SSL_INTERNAL_ASSERT_OK_AND_ASSIGN(SSL_INTERNAL_TEST_CONCAT(ssl_test_status_or_, __COUNTER__), declaration, \
                                    (__VA_ARGS__))

#define SSL_INTERNAL_TEST_CONCAT_(a, b) a##b
#define SSL_INTERNAL_TEST_CONCAT(a, b) SSL_INTERNAL_TEST_CONCAT_(a, b)
#define SSL_INTERNAL_ASSERT_OK_AND_ASSIGN(result, declaration, expression) \
  auto result = expression;                                                \
  ASSERT_THAT(result, ::ssl::IsOk());                                      \
  declaration = *std::move(result)

namespace ssl {

// The status of either type.
inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P(HasCode, code, "has the code " + absl::StatusCodeToString(code)) {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

// Code and message of a Status or StatusOr; the message is matched without the code.
MATCHER_P2(StatusIs, code, message_matcher,
           "has the code " + absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message_matcher)) {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code && ::testing::Value(std::string(StatusOf(arg).message()), message_matcher);
}

inline auto StatusIs(absl::StatusCode code) { return HasCode(code); }

}  // namespace ssl

#endif  // SSL_TESTING_STATUS_MATCHERS_H_
