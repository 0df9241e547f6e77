// SPDX-License-Identifier: Apache-2.0
//
// How the stand-in device computes: every operator without a kernel of its own runs the CPU's in the device's memory.
#ifndef SSL_TESTING_STANDIN_FALLBACK_H_
#define SSL_TESTING_STANDIN_FALLBACK_H_

namespace torch {
class Library;
}

namespace ssl {

// library: of "_", all operators without a kernel.
void RegisterStandinFallback(torch::Library* library);

// library: of "aten". Operators that LibTorch would take apart otherwise than on the CPU, or check before the device
// sees them, in words that name neither operator nor argument.
void RegisterStandinOperators(torch::Library* library);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_FALLBACK_H_
