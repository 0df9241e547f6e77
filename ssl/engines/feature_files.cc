// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_files.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/surrogate_escape.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/engines/broken_rows.h"
#include "ssl/engines/results_file.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/npy.h"

namespace ssl {
namespace {

constexpr char kFeatures[] = "features";
constexpr char kTargets[] = "targets";
constexpr char kIndices[] = "inds";

struct ChunkName {
  int64_t rank = 0;
  int64_t chunk = 0;
  std::string split;
  std::string layer;

  std::string File(absl::string_view kind) const {
    return absl::StrCat("rank", rank, "_chunk", chunk, "_", split, "_", layer, "_", kind, ".npy");
  }
};

std::string ClassFile(const std::string& directory, const std::string& split) {
  return absl::StrCat(directory, "/", split, "_classes.json");
}

std::string ImageFile(const std::string& directory, const std::string& split) {
  return absl::StrCat(directory, "/", split, "_files.json");
}

std::string ReplacementNote(const std::string& directory, const std::string& split) {
  return absl::StrCat(directory, "/", split, "_features.replacing");
}

// Takes "<prefix><digits>" off the front.
bool TakeNumber(absl::string_view prefix, absl::string_view* text, int64_t* number) {
  if (!absl::ConsumePrefix(text, prefix)) return false;
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  const bool parsed = absl::SimpleAtoi(text->substr(0, digits), number);
  text->remove_prefix(digits);
  return parsed;
}

// Nothing for the names of other files, of other splits and kinds.
std::optional<ChunkName> ParseName(absl::string_view file, const std::string& split, absl::string_view kind) {
  ChunkName name;
  name.split = split;
  if (!TakeNumber("rank", &file, &name.rank) || !TakeNumber("_chunk", &file, &name.chunk) ||
      !absl::ConsumePrefix(&file, absl::StrCat("_", split, "_")) ||
      !absl::ConsumeSuffix(&file, absl::StrCat("_", kind, ".npy")) || file.empty()) {
    return std::nullopt;
  }
  name.layer = std::string(file);
  return name;
}

// In the order of rank and chunk.
absl::StatusOr<std::vector<ChunkName>> FindChunks(const std::string& directory, const std::string& split,
                                                  FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> files, file_system.List(directory));
  const std::string note = ReplacementNote(directory, split);
  if (file_system.Exists(note)) {
    return absl::DataLossError(absl::StrCat(note, ": the features of ", split, " are being replaced, or an extraction ",
                                            "was interrupted while it replaced them; extract them again"));
  }
  std::vector<ChunkName> chunks;
  for (const std::string& file : files) {
    if (std::optional<ChunkName> name = ParseName(file, split, kFeatures)) chunks.push_back(*std::move(name));
  }
  std::sort(chunks.begin(), chunks.end(), [](const ChunkName& left, const ChunkName& right) {
    return std::tie(left.rank, left.chunk) < std::tie(right.rank, right.chunk);
  });
  return chunks;
}

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// Positions of the rows of ascending, different indices.
std::vector<int64_t> AscendingOrder(absl::Span<const int64_t> indices) {
  std::vector<int64_t> order(indices.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return indices[a] < indices[b]; });
  const auto end =
      std::unique(order.begin(), order.end(), [&](int64_t a, int64_t b) { return indices[a] == indices[b]; });
  order.erase(end, order.end());
  return order;
}

at::Tensor Rows(const at::Tensor& tensor, const at::Tensor& order) {
  return order.defined() ? tensor.index_select(0, order) : tensor;
}

// The three arrays of a chunk, mapped.
struct Chunk {
  NpyArray features;
  NpyArray targets;
  std::vector<int64_t> indices;
};

absl::Status CheckShape(const NpyArray& array, int64_t rows, absl::Span<const int64_t> row_shape) {
  const bool fits = !array.shape.empty() && array.shape[0] == rows &&
                    std::equal(array.shape.begin() + 1, array.shape.end(), row_shape.begin(), row_shape.end());
  if (fits) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(array.path, ": shape is ", ShapeText(array.shape), ", expected [", rows,
                                          row_shape.empty() ? "" : ", ", absl::StrJoin(row_shape, ", "),
                                          "] as its other files have"));
}

absl::StatusOr<std::vector<Chunk>> ReadChunks(const std::string& directory, const std::vector<ChunkName>& names,
                                              FileSystem& file_system) {
  std::vector<Chunk> chunks;
  for (const ChunkName& name : names) {
    Chunk chunk;
    SSL_ASSIGN_OR_RETURN(chunk.features, ReadNpy(file_system, absl::StrCat(directory, "/", name.File(kFeatures))));
    SSL_ASSIGN_OR_RETURN(chunk.targets, ReadNpy(file_system, absl::StrCat(directory, "/", name.File(kTargets))));
    SSL_ASSIGN_OR_RETURN(const NpyArray indices,
                         ReadNpy(file_system, absl::StrCat(directory, "/", name.File(kIndices))));
    SSL_ASSIGN_OR_RETURN(chunk.indices, NpyInts(indices));
    chunks.push_back(std::move(chunk));
    const Chunk& first = chunks.front();
    if (first.features.shape.empty() || first.targets.shape.empty()) {
      return absl::DataLossError(absl::StrCat(first.features.path, ": a single number, expected rows of features"));
    }
    const int64_t rows = static_cast<int64_t>(chunks.back().indices.size());
    SSL_RETURN_IF_ERROR(CheckShape(chunks.back().features, rows, absl::MakeSpan(first.features.shape).subspan(1)));
    SSL_RETURN_IF_ERROR(CheckShape(chunks.back().targets, rows, absl::MakeSpan(first.targets.shape).subspan(1)));
  }
  return chunks;
}

// [rows of all chunks, row_shape] in the order of the chunks, converted to T.
template <class T, class Values>
absl::StatusOr<at::Tensor> Concatenate(const std::vector<Chunk>& chunks, NpyArray Chunk::*member, Values values,
                                       at::ScalarType type) {
  std::vector<int64_t> shape = (chunks.front().*member).shape;
  shape[0] = 0;
  for (const Chunk& chunk : chunks) shape[0] += (chunk.*member).shape[0];
  at::Tensor all = at::empty(shape, type);
  T* next = all.mutable_data_ptr<T>();
  for (const Chunk& chunk : chunks) SSL_RETURN_IF_ERROR(values(chunk.*member, &next));
  return all;
}

absl::Status AppendFloats(const NpyArray& array, float** next) {
  if (array.dtype == NpyDtype::kFloat64) {
    SSL_ASSIGN_OR_RETURN(const absl::Span<const double> values, NpyValues<double>(array));
    *next = std::transform(values.begin(), values.end(), *next, [](double value) { return static_cast<float>(value); });
    return absl::OkStatus();
  }
  SSL_ASSIGN_OR_RETURN(const absl::Span<const float> values, NpyValues<float>(array));
  *next = std::copy(values.begin(), values.end(), *next);
  return absl::OkStatus();
}

absl::Status AppendInts(const NpyArray& array, int64_t** next) {
  SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> values, NpyInts(array));
  *next = std::copy(values.begin(), values.end(), *next);
  return absl::OkStatus();
}

// Nothing when the rows are in order already, which saves a copy of everything.
at::Tensor OrderTensor(absl::Span<const int64_t> indices) {
  const bool ascending =
      std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<int64_t>()) == indices.end();
  return ascending ? at::Tensor() : at::tensor(AscendingOrder(indices), at::kLong);
}

}  // namespace

absl::StatusOr<WrittenArray> WriteArray(const std::string& directory, const std::string& file, const at::Tensor& array,
                                        FileSystem& file_system) {
  const std::string path = absl::StrCat(directory, "/", file);
  const at::Tensor values = array.contiguous();
  const std::vector<int64_t> shape = values.sizes().vec();
  const size_t count = static_cast<size_t>(values.numel());
  if (values.scalar_type() == at::kLong) {
    SSL_RETURN_IF_ERROR(
        WriteNpy<int64_t>(file_system, path, shape, absl::MakeSpan(values.const_data_ptr<int64_t>(), count)));
  } else {
    SSL_RETURN_IF_ERROR(
        WriteNpy<float>(file_system, path, shape, absl::MakeSpan(values.const_data_ptr<float>(), count)));
  }
  return WrittenArray{file, shape, static_cast<int64_t>(values.nbytes())};
}

std::string FormatArrayTable(const std::string& directory, const std::vector<WrittenArray>& arrays,
                             const std::string& sum, int64_t bytes_elsewhere) {
  size_t width = std::max<size_t>(4, sum.size());
  for (const WrittenArray& array : arrays) width = std::max(width, array.file.size());
  std::string table = absl::StrFormat("%-*s  %18s  %9s   in %s\n", width, "file", "shape", "MiB", directory);
  int64_t bytes = bytes_elsewhere;
  for (const WrittenArray& array : arrays) {
    absl::StrAppendFormat(&table, "%-*s  %18s  %9.2f\n", width, array.file, ShapeText(array.shape),
                          static_cast<double>(array.bytes) / (1 << 20));
    bytes += array.bytes;
  }
  absl::StrAppendFormat(&table, "%-*s  %18s  %9.2f\n", width, sum, "", static_cast<double>(bytes) / (1 << 20));
  return table;
}

FeatureFileWriter::FeatureFileWriter(FeatureFilesOptions options, FileSystem& file_system)
    : options_(std::move(options)), file_system_(file_system) {}

absl::Status FeatureFileWriter::Add(const FeatureBatch& batch) {
  if (batch.labels.defined() && batch.labels.scalar_type() != at::kLong) {
    return absl::InvalidArgumentError(
        absl::StrCat("features of ", options_.split, ": labels are weights of classes, expected class numbers"));
  }
  // Labels and indices may lie in the loader's buffers, which the next batch overwrites.
  batches_.push_back(
      {batch.features, batch.labels.defined() ? batch.labels.clone() : batch.labels, batch.indices.clone()});
  samples_ += batch.indices.size(0);
  const bool full = options_.chunk_threshold >= 0 && samples_ >= options_.chunk_threshold;
  return full ? WriteChunk() : absl::OkStatus();
}

absl::Status FeatureFileWriter::Finish() { return samples_ > 0 ? WriteChunk() : absl::OkStatus(); }

absl::Status FeatureFileWriter::WriteChunk() {
  std::vector<at::Tensor> labels;
  std::vector<at::Tensor> indices;
  for (const FeatureBatch& batch : batches_) {
    if (batch.labels.defined()) labels.push_back(batch.labels.dim() == 1 ? batch.labels.unsqueeze(1) : batch.labels);
    indices.push_back(batch.indices);
  }
  const at::Tensor all_indices = at::cat(indices);
  const at::Tensor order = OrderTensor({all_indices.const_data_ptr<int64_t>(), static_cast<size_t>(samples_)});
  const at::Tensor kept_indices = Rows(all_indices, order);
  rows_ += kept_indices.size(0);
  const at::Tensor all_labels = labels.empty() ? at::Tensor() : Rows(at::cat(labels), order);
  for (size_t i = 0; i < options_.layers.size(); ++i) {
    std::vector<at::Tensor> features;
    for (FeatureBatch& batch : batches_) features.push_back(std::exchange(batch.features[i], at::Tensor()));
    SSL_RETURN_IF_ERROR(WriteLayer(options_.layers[i], Rows(at::cat(features), order), all_labels, kept_indices));
  }
  batches_.clear();
  samples_ = 0;
  ++chunk_;
  return absl::OkStatus();
}

absl::Status FeatureFileWriter::WriteLayer(const std::string& layer, const at::Tensor& features,
                                           const at::Tensor& targets, const at::Tensor& indices) {
  const ChunkName name{options_.rank, chunk_, options_.split, layer};
  const std::vector<std::pair<const char*, at::Tensor>> arrays = {
      {kFeatures, features}, {kTargets, targets}, {kIndices, indices}};
  for (const auto& [kind, array] : arrays) {
    if (!array.defined()) continue;
    SSL_ASSIGN_OR_RETURN(arrays_.emplace_back(), WriteArray(options_.directory, name.File(kind), array, file_system_));
  }
  return absl::OkStatus();
}

absl::Status WriteClassNames(const std::string& directory, const std::string& split,
                             const std::vector<std::string>& names, FileSystem& file_system) {
  if (names.empty()) return absl::OkStatus();
  return WriteFileAtomically(file_system, ClassFile(directory, split), ToJson(ConfigNode::FromStrings(names)));
}

absl::StatusOr<std::vector<std::string>> ReadClassNames(const std::string& directory, const std::string& split,
                                                        FileSystem& file_system) {
  const std::string path = ClassFile(directory, split);
  std::vector<std::string> names;
  if (!file_system.Exists(path)) return names;
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system.Read(path));
  // JSON is a subset of YAML.
  SSL_ASSIGN_OR_RETURN(const ConfigNode list, ParseYaml(UnmarkBytes(MarkEscapes(text)), path, nullptr));
  for (const ConfigNode& name : list.items()) names.push_back(name.text());
  if (!names.empty()) return names;
  return absl::DataLossError(absl::StrCat(path, " holds no list of class names; extract the features again"));
}

absl::Status WriteImageFiles(const std::string& directory, const std::string& split, const Dataset& dataset,
                             FileSystem& file_system) {
  if (dataset.size() == 0 || dataset.ImagePath(0).empty()) return absl::OkStatus();
  // Not by way of a tree, which would take many times the memory of ten million names.
  std::string json = "[";
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const nlohmann::json name = MarkBytes(dataset.ImagePath(i));
    absl::StrAppend(&json, i == 0 ? "\n " : ",\n ", EscapeMarks(name.dump()));
  }
  json.append("\n]\n");
  return WriteFileAtomically(file_system, ImageFile(directory, split), json);
}

absl::Status NoteReplacement(const std::string& directory, const std::string& split, FileSystem& file_system) {
  return WriteFileAtomically(file_system, ReplacementNote(directory, split), "");
}

absl::Status RemoveReplacementNote(const std::string& directory, const std::string& split, FileSystem& file_system) {
  const std::string note = ReplacementNote(directory, split);
  if (!file_system.Exists(note)) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(file_system.RemoveFile(note));
  return file_system.SyncDirectory(directory);
}

absl::Status RemoveFeatureFiles(const std::string& directory, const std::string& split, FileSystem& file_system) {
  for (const std::string& list :
       {ClassFile(directory, split), ImageFile(directory, split), BrokenRowsFile(directory, split)}) {
    if (file_system.Exists(list)) SSL_RETURN_IF_ERROR(file_system.RemoveFile(list));
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> files, file_system.List(directory));
  for (const std::string& file : files) {
    for (const char* kind : {kFeatures, kTargets, kIndices}) {
      if (!ParseName(file, split, kind).has_value()) continue;
      SSL_RETURN_IF_ERROR(file_system.RemoveFile(absl::StrCat(directory, "/", file)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FeatureFileLayers(const std::string& directory, const std::string& split,
                                                           FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(const std::vector<ChunkName> chunks, FindChunks(directory, split, file_system));
  std::set<std::string> layers;
  for (const ChunkName& chunk : chunks) layers.insert(chunk.layer);
  return std::vector<std::string>(layers.begin(), layers.end());
}

absl::StatusOr<FeatureSet> LoadFeatures(const std::string& directory, const std::string& split,
                                        const std::string& layer, FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(std::vector<ChunkName> names, FindChunks(directory, split, file_system));
  names.erase(std::remove_if(names.begin(), names.end(), [&](const ChunkName& name) { return name.layer != layer; }),
              names.end());
  if (names.empty()) {
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> known, FeatureFileLayers(directory, split, file_system));
    return absl::NotFoundError(absl::StrCat(directory, " has no features of layer '", layer, "' of ", split,
                                            "; layers there: ", absl::StrJoin(known, ", ")));
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<Chunk> chunks, ReadChunks(directory, names, file_system));
  std::vector<int64_t> indices;
  for (const Chunk& chunk : chunks) indices.insert(indices.end(), chunk.indices.begin(), chunk.indices.end());
  SSL_ASSIGN_OR_RETURN(const at::Tensor features,
                       Concatenate<float>(chunks, &Chunk::features, AppendFloats, at::kFloat));
  SSL_ASSIGN_OR_RETURN(const at::Tensor targets, Concatenate<int64_t>(chunks, &Chunk::targets, AppendInts, at::kLong));
  const at::Tensor order = OrderTensor(indices);
  FeatureSet set;
  set.features = {Rows(features, order)};
  set.labels = Rows(targets.dim() == 2 && targets.size(1) == 1 ? targets.squeeze(1) : targets, order);
  set.indices = Rows(at::tensor(indices, at::kLong), order);
  SSL_ASSIGN_OR_RETURN(const auto broken, ReadBrokenRows(directory, split, file_system));
  SSL_RETURN_IF_ERROR(DropRows(broken, absl::StrCat(directory, ", features of ", split), &set));
  return set;
}

}  // namespace ssl
