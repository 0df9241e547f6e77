// SPDX-License-Identifier: Apache-2.0
//
// Which accelerators a process sees. A scheduler may show each process of a host one of its own, under the same index.
#ifndef SSL_CORE_VISIBLE_DEVICES_H_
#define SSL_CORE_VISIBLE_DEVICES_H_

#include <string>

namespace ssl {

// Equal for processes of a host that see the same ones in the same order: the UUIDs of the GPUs. "" in a program that
// was built without CUDA, and for a device that a host program has registered (accelerator.h), which all processes are
// taken to see alike. May throw LibTorch exceptions.
std::string VisibleDevices();

}  // namespace ssl

#endif  // SSL_CORE_VISIBLE_DEVICES_H_
