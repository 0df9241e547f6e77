// SPDX-License-Identifier: Apache-2.0
//
// Prints the page docs/hooks.md:
//
//   ./bazelw run //ssl/tools:print_hooks_page > docs/hooks.md
#include <iostream>

#include "absl/status/status.h"
#include "ssl/core/registries.h"
#include "ssl/hooks/hooks_page.h"
#include "ssl/hooks/register_hooks.h"

int main() {
  ssl::Registries registries;
  const absl::Status status = ssl::RegisterHooks(&registries);
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 1;
  }
  std::cout << ssl::HooksPage(registries);
  return 0;
}
