// SPDX-License-Identifier: Apache-2.0
//
// The opposite of reader.h: the values of an options struct as a config tree.
//
//   std::string text = WriteYaml(WriteOptions(options));
#ifndef SSL_CONFIG_WRITER_H_
#define SSL_CONFIG_WRITER_H_

#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

// A map with every field, in the order of declaration; ReadOptions of it gives equal options.
// Free-form fields are marked free_form(). Does not change `options`.
ConfigNode WriteOptions(Options& options);

}  // namespace ssl

#endif  // SSL_CONFIG_WRITER_H_
