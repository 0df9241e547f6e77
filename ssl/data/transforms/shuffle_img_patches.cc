// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/shuffle_img_patches.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/transform_options.h"
#include "ssl/io/npy.h"

namespace ssl {
namespace {

struct ShuffleImgPatchesOptions : public Options {
  std::string perm_file;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("perm_file", &perm_file, Doc("Permutations of the views, one a row: a .npy file."));
  }
};

// The views while they change places.
struct ShuffledViews {
  std::vector<View> views;
};

// numbers: from `first` on, each once, or the row is none.
absl::StatusOr<std::vector<int>> ReadRow(absl::Span<const int64_t> numbers, int64_t first, int64_t row) {
  std::vector<bool> seen(numbers.size());
  std::vector<int> permutation;
  for (const int64_t number : numbers) {
    const int64_t place = number - first;
    const bool fits = place >= 0 && place < static_cast<int64_t>(numbers.size()) && !seen[place];
    if (!fits) {
      return absl::DataLossError(absl::StrCat("row ", row, " is [", absl::StrJoin(numbers, ", "),
                                              "], expected each number from ", first, " to ",
                                              first + static_cast<int64_t>(numbers.size()) - 1, " once"));
    }
    seen[place] = true;
    permutation.push_back(static_cast<int>(place));
  }
  return permutation;
}

absl::StatusOr<std::vector<std::vector<int>>> ReadPermutations(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(file_system, path));
  if (array.shape.size() != 2 || array.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape is [", absl::StrJoin(array.shape, ", "), "], expected [permutations, views]"));
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, NpyInts(array));
  const size_t columns = static_cast<size_t>(array.shape[1]);
  const int64_t first = *std::min_element(numbers.begin(), numbers.end()) == 1 ? 1 : 0;
  std::vector<std::vector<int>> permutations;
  for (int64_t row = 0; row < array.shape[0]; ++row) {
    SSL_ASSIGN_OR_RETURN(std::vector<int> permutation,
                         ReadRow(absl::MakeConstSpan(numbers).subspan(row * columns, columns), first, row));
    permutations.push_back(std::move(permutation));
  }
  return permutations;
}

}  // namespace

absl::Status ShuffleImgPatches::Apply(const TransformContext& context, Sample* sample) const {
  const int count = static_cast<int>(permutations_.front().size());
  if (sample->num_views() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("orders ", count, " views, as perm_file has columns, but gets ", sample->num_views()));
  }
  CounterRandom random = context.Random(0);
  sample->SetLabel(random.UniformInt(0, num_label_classes() - 1));
  const std::vector<int>& permutation = permutations_[sample->label];
  std::vector<View>& views = context.scratch.Get<ShuffledViews>().views;
  views.resize(count);
  for (int v = 0; v < count; ++v) std::swap(views[v], sample->view(permutation[v]));
  for (int v = 0; v < count; ++v) std::swap(views[v], sample->view(v));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeShuffleImgPatches(const ConfigNode& entry, const BuildContext& context) {
  ShuffleImgPatchesOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  if (options.perm_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(TransformKey(entry, "perm_file"), " is missing, expected the path of a .npy file"));
  }
  absl::StatusOr<std::vector<std::vector<int>>> permutations = ReadPermutations(context.file_system, options.perm_file);
  if (!permutations.ok()) {
    return Annotate(permutations.status(), absl::StrCat(TransformKey(entry, "perm_file"), ", ", options.perm_file));
  }
  return std::make_unique<ShuffleImgPatches>(*std::move(permutations));
}

std::unique_ptr<Options> MakeShuffleImgPatchesOptions() { return std::make_unique<ShuffleImgPatchesOptions>(); }

}  // namespace ssl
