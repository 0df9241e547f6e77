// SPDX-License-Identifier: Apache-2.0
//
// Sessions of fakes (fakes.h), for tests.
#ifndef SSL_CORE_TESTING_FAKE_SESSION_H_
#define SSL_CORE_TESTING_FAKE_SESSION_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {

inline Registries FakeRegistries() {
  Registries registries;
  EXPECT_OK(RegisterFakes(&registries));
  return registries;
}

inline absl::StatusOr<std::unique_ptr<Session>> MakeSession(const ConfigNode& config, SessionOptions options = {}) {
  return Session::Create(config, FakeRegistries(), std::move(options));
}

}  // namespace ssl

#endif  // SSL_CORE_TESTING_FAKE_SESSION_H_
