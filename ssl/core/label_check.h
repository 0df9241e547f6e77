// SPDX-License-Identifier: Apache-2.0
//
// Labels against what is done with them, without a look at an image: whether a split has any, and whether its class
// numbers are among the outputs. What needs labels says so (Method::needs_labels), and so does who has none
// (BatchSource::has_labels). Stateless; safe from any thread.
#ifndef SSL_CORE_LABEL_CHECK_H_
#define SSL_CORE_LABEL_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/method.h"

namespace ssl {

// In all of these: source is of config.DATA.<split>, "TRAIN" or "TEST", of the tree `config`; errors are
// InvalidArgument and name the keys, with file:line.

// who: what needs labels, for the message: "full_tune needs labels".
absl::Status CheckHasLabels(absl::string_view who, const std::string& split, const BatchSource& source,
                            const ConfigNode& config);

// The classes of `source`, but for the number `ignored`, are below `limit`; OK when it cannot tell them. what: what the
// limit is, for the message: "the outputs of config.MODEL.HEAD.PARAMS".
absl::Status CheckClassesBelow(int64_t limit, absl::string_view what, int64_t ignored, const std::string& split,
                               const BatchSource& source, const ConfigNode& config);

// What `method` asks of labels: that there are some, and that each has an output of the last head, as far as
// config.MODEL.HEAD.PARAMS tells these. method: the one that config.LOSS.name names.
absl::Status CheckLabels(const Method& method, const std::string& split, const BatchSource& source,
                         const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_CORE_LABEL_CHECK_H_
