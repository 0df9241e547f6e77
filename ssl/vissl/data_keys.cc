// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/key_tables.h"

#include "ssl/vissl/key_table_builder.h"

namespace ssl {

std::vector<CompatibilityKey> DataKeys() {
  KeyTableBuilder table;
  table.Ignored("DATA", "threads write batches in place", {{"PIN_MEMORY", "true"}});
  table.Ignored("DATA", "batches lie where the model lies", {{"ENABLE_ASYNC_GPU_COPY", "true"}});
  table.Ignored("DATA", "typo in VISSL's files", {{"TRANSFORMS", "[]"}});
  table.Ignored("DATA.TRAIN", "file lists are read once and shared by the threads", {{"MMAP_MODE", "true"}});
  table.Ignored("DATA.TRAIN", "images are read from where they lie",
                {{"COPY_TO_LOCAL_DISK", "false"}, {"COPY_DESTINATION_DIR", "\"\""}});
  table.NotYet("DATA.TRAIN", "synthetic images have one pattern for each class",
               {{"RANDOM_SYNTHETIC_IMAGES", "false"}});
  table.Ignored("DATA.TEST", "file lists are read once and shared by the threads", {{"MMAP_MODE", "true"}});
  table.Ignored("DATA.TEST", "images are read from where they lie",
                {{"COPY_TO_LOCAL_DISK", "false"}, {"COPY_DESTINATION_DIR", "\"\""}});
  table.NotYet("DATA.TEST", "synthetic images have one pattern for each class", {{"RANDOM_SYNTHETIC_IMAGES", "false"}});
  return table.Take();
}

}  // namespace ssl
