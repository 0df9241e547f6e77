// SPDX-License-Identifier: Apache-2.0
//
// Makes a program know every key of VISSL's configurations, so that its files bring no warning about unknown keys, and
// so that OptionCatalog::Unsupported can tell which of their settings would change the run and do not.
//
//   SSL_RETURN_IF_ERROR(RegisterVisslKeys(&registries));  // after the packages whose structs declare keys
#ifndef SSL_VISSL_VISSL_KEYS_H_
#define SSL_VISSL_VISSL_KEYS_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

// Adds the keys of key_tables.h, once, but for those that a registered struct declares: a host may read what this
// program does not.
absl::Status RegisterVisslKeys(Registries* registries);

// Gives a root of defaults the keys that VISSL has beside `config`: VERSION 1 and node_id 0; and `engine` and
// DISTRIBUTED, which files of VISSL have there by mistake.
void AddVisslRootKeys(ConfigNode* root);

// root: the composed tree with `config` in it. InvalidArgument, with the place, for a VERSION other than 1.
absl::Status CheckVisslVersion(const ConfigNode& root);

}  // namespace ssl

#endif  // SSL_VISSL_VISSL_KEYS_H_
