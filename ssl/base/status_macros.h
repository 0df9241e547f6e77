// SPDX-License-Identifier: Apache-2.0
//
// Early returns for functions that return absl::Status or absl::StatusOr<T>.
//
//   absl::StatusOr<int> Load(const std::string& path) {
//     SSL_RETURN_IF_ERROR(CheckReadable(path));
//     SSL_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
//     SSL_RET_CHECK(!text.empty(), "ReadText returned an empty text");
//     return text.size();
//   }
//
// Each macro evaluates its expression once. SSL_ASSIGN_OR_RETURN declares variables, so it
// cannot be the only statement of an if or a loop without braces.

#ifndef SSL_BASE_STATUS_MACROS_H_
#define SSL_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/status_util.h"

// Returns the error of an absl::Status expression from the enclosing function.
#define SSL_RETURN_IF_ERROR(...)                 \
  do {                                           \
    absl::Status ssl_status_ = (__VA_ARGS__);    \
    if (ABSL_PREDICT_FALSE(!ssl_status_.ok())) { \
      return ssl_status_;                        \
    }                                            \
  } while (false)

// Moves the value of an absl::StatusOr expression into `declaration`, or returns its error.
#define SSL_ASSIGN_OR_RETURN(declaration, ...) \
  SSL_INTERNAL_ASSIGN_OR_RETURN(SSL_INTERNAL_CONCAT(ssl_status_or_, __COUNTER__), declaration, (__VA_ARGS__))

// Returns an InternalError with file:line when an invariant of our own code is broken.
#define SSL_RET_CHECK(condition, message)                                            \
  do {                                                                               \
    if (ABSL_PREDICT_FALSE(!(condition))) {                                          \
      return ::ssl::BrokenInvariantError(__FILE__, __LINE__, #condition, (message)); \
    }                                                                                \
  } while (false)

#define SSL_INTERNAL_CONCAT_(a, b) a##b
#define SSL_INTERNAL_CONCAT(a, b) SSL_INTERNAL_CONCAT_(a, b)
#define SSL_INTERNAL_ASSIGN_OR_RETURN(result, declaration, expression) \
  auto result = expression;                                            \
  if (ABSL_PREDICT_FALSE(!result.ok())) {                              \
    return std::move(result).status();                                 \
  }                                                                    \
  declaration = *std::move(result)

#endif  // SSL_BASE_STATUS_MACROS_H_
