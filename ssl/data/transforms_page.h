// SPDX-License-Identifier: Apache-2.0
//
// The page docs/transforms.md: every transform and collator with its parameters, and the keys of the samplers, made
// from their declarations.
#ifndef SSL_DATA_TRANSFORMS_PAGE_H_
#define SSL_DATA_TRANSFORMS_PAGE_H_

#include <string>

namespace ssl {

std::string TransformsPage();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_PAGE_H_
