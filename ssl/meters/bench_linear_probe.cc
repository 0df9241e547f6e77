// SPDX-License-Identifier: Apache-2.0
//
// Time of a linear probe on random features of the size of Fashion-MNIST, with the default settings.
//
//   ./bazelw run //ssl/meters:bench_linear_probe -- 1000        # features of that size
#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "ssl/base/clock.h"
#include "ssl/base/stop_token.h"
#include "ssl/meters/linear_probe.h"

int main(int argc, char** argv) {
  int64_t dimensions = 1000;
  if (argc > 2 || (argc == 2 && (!absl::SimpleAtoi(argv[1], &dimensions) || dimensions < 1))) {
    std::cerr << "usage: bench_linear_probe [FEATURES]\n";
    return 2;
  }
  const at::Tensor train = at::randn({60000, dimensions});
  const at::Tensor test = at::randn({10000, dimensions});
  const at::Tensor train_labels = at::randint(10, {60000}, at::kLong);
  const at::Tensor test_labels = at::randint(10, {10000}, at::kLong);
  const ssl::LinearProbeOptions options;
  const absl::Time begin = ssl::Clock::Real().Now();
  const auto result = ssl::TrainLinearProbe(train, train_labels, test, test_labels, options, ssl::StopToken());
  if (!result.ok()) {
    std::cerr << result.status().message() << "\n";
    return 1;
  }
  std::cout << dimensions << " features, " << options.learning_rates.size() << " rates, " << options.num_epochs
            << " epochs: " << absl::ToDoubleSeconds(ssl::Clock::Real().Now() - begin) << " s\n";
  return 0;
}
