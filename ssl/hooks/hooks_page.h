// SPDX-License-Identifier: Apache-2.0
//
// The page docs/hooks.md: every hook and sink with its options, made from their declarations.
#ifndef SSL_HOOKS_HOOKS_PAGE_H_
#define SSL_HOOKS_HOOKS_PAGE_H_

#include <string>

#include "ssl/core/registries.h"

namespace ssl {

std::string HooksPage(const Registries& registries);

}  // namespace ssl

#endif  // SSL_HOOKS_HOOKS_PAGE_H_
