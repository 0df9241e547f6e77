// SPDX-License-Identifier: Apache-2.0
//
// Prints the page docs/transforms.md:
//
//   ./bazelw run //ssl/tools:print_transforms_page > docs/transforms.md
#include <iostream>

#include "ssl/data/transforms_page.h"

int main() {
  std::cout << ssl::TransformsPage();
  return 0;
}
