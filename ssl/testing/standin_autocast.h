// SPDX-License-Identifier: Apache-2.0
//
// Autocast on the stand-in device: the CPU's lists of operators, so that results are the CPU's there, too.
#ifndef SSL_TESTING_STANDIN_AUTOCAST_H_
#define SSL_TESTING_STANDIN_AUTOCAST_H_

namespace torch {
class Library;
}

namespace ssl {

// library: of "_" under AutocastPrivateUse1: operators that autocast leaves alone.
void RegisterStandinAutocastFallthrough(torch::Library* library);

// library: of "aten" under AutocastPrivateUse1.
void RegisterStandinAutocast(torch::Library* library);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_AUTOCAST_H_
