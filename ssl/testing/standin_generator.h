// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of the stand-in device: the CPU's numbers for the same seed, from a state of the device's own, which
// seeding the CPU's generator does not touch.
#ifndef SSL_TESTING_STANDIN_GENERATOR_H_
#define SSL_TESTING_STANDIN_GENERATOR_H_

#include <ATen/core/Generator.h>

namespace ssl {

// What operators without a generator draw from; one for the process.
const at::Generator& DefaultStandinGenerator();

at::Generator MakeStandinGenerator();

// The generator of the CPU that holds the state of a generator of the device. A LibTorch exception for any other.
const at::Generator& HostGenerator(const at::Generator& generator);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_GENERATOR_H_
