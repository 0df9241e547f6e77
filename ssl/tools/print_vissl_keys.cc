// SPDX-License-Identifier: Apache-2.0
//
// Prints the page docs/vissl_keys.md:
//
//   ./bazelw run //ssl/tools:print_vissl_keys > docs/vissl_keys.md
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/builtins.h"
#include "ssl/core/registries.h"
#include "ssl/vissl/compatibility_page.h"
#include "ssl/vissl/vissl_keys.h"

namespace {

// `bazel run` starts the program in its runfiles.
constexpr char kDefaultKeys[] = "ssl/vissl/testdata/default_keys.yaml";

absl::StatusOr<std::string> Page() {
  std::ifstream file(kDefaultKeys);
  if (!file) return absl::NotFoundError(std::string(kDefaultKeys) + " cannot be read; start this with bazelw run");
  std::ostringstream text;
  text << file.rdbuf();
  SSL_ASSIGN_OR_RETURN(const ssl::VisslDefaults vissl_defaults, ssl::ParseVisslDefaults(text.str()));
  ssl::Registries registries;
  SSL_RETURN_IF_ERROR(ssl::RegisterBuiltins(&registries));
  SSL_RETURN_IF_ERROR(ssl::RegisterVisslKeys(&registries));
  return ssl::CompatibilityPage(registries.options.Entries(), vissl_defaults);
}

}  // namespace

int main() {
  const absl::StatusOr<std::string> page = Page();
  if (page.ok()) {
    std::cout << *page;
    return 0;
  }
  std::cerr << page.status().message() << "\n";
  return 1;
}
