// SPDX-License-Identifier: Apache-2.0
//
// An options struct with a field of every type, for the tests of this package.
//
//   TestingOptions options;
//   EXPECT_OK(ReadOptions(node, "config.LOSS", UnknownKeys::kError, &options));
#ifndef SSL_CONFIG_TESTING_OPTIONS_H_
#define SSL_CONFIG_TESTING_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

struct TestingSection : public Options {
  int64_t num_iters = 3;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("num_iters", &num_iters, Doc("Rounds.").AtLeast(1));
  }
};

struct TestingOptions : public Options {
  bool normalize = true;
  int64_t queue_length = 0;
  double temperature = 0.1;
  std::string name = "swav";
  std::vector<int64_t> crops = {2, 6};
  std::vector<double> scales = {0.5};
  std::vector<std::string> devices = {"cpu"};
  ConfigNode params;
  TestingSection sinkhorn;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("normalize", &normalize, Doc("Unit rows."));
    visitor.Field("queue_length", &queue_length, Doc("Kept samples.").Between(0, 100));
    visitor.Field("temperature", &temperature, Doc("Divides scores.").Above(0));
    visitor.Field("name", &name, Doc("The method."));
    visitor.Field("crops", &crops, Doc("Crops per size.").AtLeast(1));
    visitor.Field("scales", &scales, Doc("Area.").Between(0, 1));
    visitor.Field("devices", &devices, Doc("Where.").OneOf({"cpu", "gpu"}));
    visitor.Field("params", &params, Doc("Anything."));
    visitor.Section("sinkhorn", &sinkhorn, Doc("Balancing."));
  }
};

}  // namespace ssl

#endif  // SSL_CONFIG_TESTING_OPTIONS_H_
