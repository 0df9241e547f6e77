// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/register_data.h"

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/batch_source.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/counts_broken.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/datasets/named_files.h"
#include "ssl/data/datasets/npy_dataset.h"
#include "ssl/data/datasets/synthetic_dataset.h"
#include "ssl/data/datasets/tar_dataset.h"
#include "ssl/data/datasets/torchvision_dataset.h"
#include "ssl/data/loader/data_source_builder.h"
#include "ssl/data/transforms/register_transforms.h"

namespace ssl {
namespace {

// The defaults of a split differ in the part of the data set only.
OptionCatalog::Factory SplitOptions(const char* split) {
  return [split] {
    auto options = std::make_unique<DataSplitOptions>();
    options->split = split;
    return options;
  };
}

using MakeDataset = absl::StatusOr<std::unique_ptr<Dataset>> (*)(const ConfigNode& data_split,
                                                                 const BuildContext& context);

// The data sets of all phases and engines of a program name a broken file once.
Registry<Dataset>::Factory NamingOnce(MakeDataset make, std::shared_ptr<NamedFiles> named) {
  return [make, named](const ConfigNode& data_split,
                       const BuildContext& context) -> absl::StatusOr<std::unique_ptr<Dataset>> {
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, make(data_split, context));
    if (BrokenImages* broken = CountOf(*dataset); broken != nullptr) broken->NameOnce(named, dataset->description());
    return dataset;
  };
}

}  // namespace

absl::Status RegisterData(Registries* registries) {
  if (!registries->AddPackage("data")) return absl::OkStatus();

  SSL_RETURN_IF_ERROR(registries->batch_sources.Register("generic_ssl", MakePhaseSource));

  const auto named = std::make_shared<NamedFiles>();
  SSL_RETURN_IF_ERROR(registries->datasets.Register("disk_filelist", NamingOnce(MakeDiskFilelist, named)));
  SSL_RETURN_IF_ERROR(registries->datasets.Register("disk_folder", NamingOnce(MakeDiskFolder, named)));
  SSL_RETURN_IF_ERROR(registries->datasets.Register("npy_images", MakeNpyImages));
  SSL_RETURN_IF_ERROR(registries->datasets.Register("synthetic", MakeSyntheticDataset));
  SSL_RETURN_IF_ERROR(registries->datasets.Register("tar_shards", NamingOnce(MakeTarShards, named)));
  SSL_RETURN_IF_ERROR(registries->datasets.Register("torchvision_dataset", MakeTorchvisionDataset));

  SSL_RETURN_IF_ERROR(RegisterTransforms(registries));

  SSL_RETURN_IF_ERROR(registries->options.Add("DATA", [] { return std::make_unique<DataOptions>(); }));
  // What a run is tested on does not change what it learns.
  SSL_RETURN_IF_ERROR(registries->options.Add("DATA.TEST", SplitOptions("test"), AtResume::kMayChange));
  SSL_RETURN_IF_ERROR(registries->options.Add("DATA.TRAIN", SplitOptions("train")));
  return absl::OkStatus();
}

}  // namespace ssl
