// SPDX-License-Identifier: Apache-2.0
//
// Settings that contradict each other and that no single component of a run can see before training starts. Stateless;
// safe from any thread.
#ifndef SSL_CHECK_SETTING_CHECKS_H_
#define SSL_CHECK_SETTING_CHECKS_H_

#include <string>
#include <vector>

#include "ssl/config/node.h"

namespace ssl {

// config: the resolved tree under "config". "file:line: what is wrong" for
// - a batch that leaves batch norm a single sample,
// - virtual ranks that the processes do not divide,
// - an accuracy of more classes than the last head has outputs,
// - a transform_type other than none and augly,
// - a key that is allowed to change at resume and that nothing has,
// - where something is trained, a folder of one image, and images of one channel,
// - where something is trained, a test phase on fewer or more views of an image than training has.
// What one method asks for is its resolver's to check. Values of a wrong type are left to OptionCatalog::Check.
std::vector<std::string> ContradictingSettings(const ConfigNode& config, bool trains);

}  // namespace ssl

#endif  // SSL_CHECK_SETTING_CHECKS_H_
