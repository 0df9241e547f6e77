// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/testing/check_tokens.h"

#include <utility>

#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/config/compose.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {

ConfigReport CheckTokens(std::vector<std::string> tokens) {
  static const Registries& registries = []() -> const Registries& {
    auto* const made = new Registries;
    EXPECT_OK(RegisterBuiltins(made));
    return *made;
  }();
  ComposeRequest request = MakeRunRequest(registries);
  request.tokens = std::move(tokens);
  request.search_dirs = {"configs", "."};
  return CheckConfig(request, registries);
}

}  // namespace ssl
