// SPDX-License-Identifier: Apache-2.0
//
// Whether the files of a run stay out of the folders of images that it reads: whoever starts a command in his own
// folder of photographs gets runs/<name> there, which the next scan takes for a class.
#ifndef SSL_TOOLS_APART_FROM_DATA_H_
#define SSL_TOOLS_APART_FROM_DATA_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// InvalidArgument, with the key that chooses another, where CHECKPOINT.DIR of the composed tree `root` is a folder that
// DATA.TRAIN or DATA.TEST reads images of (DATA_SOURCES disk_folder), or lies in one. A directory below a name that
// begins with a dot is passed over when a folder is scanned, and may lie there; and a folder of images may lie in the
// run directory, where a run that starts anew removes only what runs leave. Links are followed; changes nothing.
absl::Status CheckApartFromData(const ConfigNode& root);

}  // namespace ssl

#endif  // SSL_TOOLS_APART_FROM_DATA_H_
