// What a job's arrays are made of, and whether that is still what it was. Private to the store module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/job.h>
#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/recipe.h>
#include <tessera/selection.h>
#include <tessera/value.h>

namespace tessera {

/// Notes what is read of arrays in folders.
class WhatWasRead;

struct WatchedRecipe {
    std::unique_ptr<ArraySource> source;
    std::shared_ptr<WhatWasRead> read;  ///< of arrays in folders
    /// Arrays behind HTTP and in S3, by their paths; not the parts of a join, which are opened again and again.
    std::vector<std::pair<std::string, std::shared_ptr<KeyValueStore>>> far;
};
/// Opens what a recipe makes and notes what is read of its ingredients. Throws as open_recipe().
[[nodiscard]] WatchedRecipe open_watched(const Recipe& recipe, const IoOptions& io);
/// What the units of an array are copied from.
struct UnitSource {
    WatchedRecipe opened;
    Selection selection;  ///< of all units
};
/// Throws SourceChanged if it has another shape than the array.
[[nodiscard]] UnitSource unit_source(const JobArray& array, const IoOptions& io);
/// Throws SourceChanged if a chunk that was read since the last call, or its place in a folder, has changed since the
/// job was planned, as the identities of its sources tell. Of a source far away: if any that was read has, by the
/// server's Last-Modified, so that a change in the second of the plan goes unseen.
void require_unchanged_chunks(const WatchedRecipe& opened, const Value& sources);

/// What identifies a source: its kind, and a hash of an array's documents, or the size and time of a file.
[[nodiscard]] Value source_identity(const std::string& path);
/// The time of the file system of a source, of which everything that changes later has a later one. `marker` was just
/// written by this process. Of a source far away the second of the server's last answer; 0 if it tells none.
[[nodiscard]] std::int64_t present_time(const Value& identity, const std::filesystem::path& marker);
/// Throws SourceChanged if a source is not what it was. `whole`: looks at every file of an array, not only at its
/// documents.
void require_same_source(const Value& identity, bool whole);

}  // namespace tessera
