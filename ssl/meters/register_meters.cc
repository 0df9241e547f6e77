// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/register_meters.h"

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/meter.h"
#include "ssl/core/registries.h"
#include "ssl/meters/mean_ap_meter.h"
#include "ssl/meters/meter_options.h"
#include "ssl/meters/meters_resolver.h"
#include "ssl/meters/top_k_meter.h"

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<Meter>> MakeMeanAp(const ConfigNode& params, const BuildContext& context) {
  MeanApMeterOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.METERS.mean_ap_list_meter", UnknownKeys::kIgnore, &options));
  return MeanApMeter::Make(options);
}

absl::Status RegisterTopK(const TopKRule& rule, Registries* registries) {
  const std::string section = absl::StrCat("METERS.", rule.name);
  const auto make = [rule, section](const ConfigNode& params,
                                    const BuildContext& context) -> absl::StatusOr<std::unique_ptr<Meter>> {
    TopKMeterOptions options;
    SSL_RETURN_IF_ERROR(ReadOptions(params, absl::StrCat("config.", section), UnknownKeys::kIgnore, &options));
    return TopKMeter::Make(rule, options);
  };
  SSL_RETURN_IF_ERROR(registries->meters.Register(std::string(rule.name), make));
  return registries->options.Add(section, [] { return std::make_unique<TopKMeterOptions>(); });
}

}  // namespace

absl::Status RegisterMeters(Registries* registries) {
  if (!registries->AddPackage("meters")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(registries->options.Add("METERS", [] { return std::make_unique<MetersOptions>(); }));
  for (const TopKRule& rule : TopKRules()) SSL_RETURN_IF_ERROR(RegisterTopK(rule, registries));
  SSL_RETURN_IF_ERROR(registries->meters.Register("mean_ap_list_meter", &MakeMeanAp));
  SSL_RETURN_IF_ERROR(
      registries->options.Add("METERS.mean_ap_list_meter", [] { return std::make_unique<MeanApMeterOptions>(); }));
  registries->resolvers.push_back([](const Registries&, ConfigNode* config) { return ResolveMeters(config); });
  return absl::OkStatus();
}

}  // namespace ssl
