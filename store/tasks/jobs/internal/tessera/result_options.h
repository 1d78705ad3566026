// What may be asked of the result of a copy or of any other recipe: how it is stored, and how it is made.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tessera/array_plan.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy.h>
#include <tessera/option.h>
#include <tessera/recipe.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

struct ResultOptions {
    std::optional<GivenLengths> chunks = {};
    std::optional<ChunkLengths> shards = {};
    std::optional<std::string> codec = {}, format = {}, separator = {}, structures = {};
    std::vector<Value> fills = {};  ///< one for all arrays, and texts NAME=VALUE of single ones
    std::optional<std::vector<std::optional<std::string>>> dimensions = {};
    std::optional<Order> order = {};
    std::int64_t deflate = 0;
    std::vector<std::string> unlimited = {};
    bool object_strings = false;
    bool drop_attributes = false, skip_unreadable = false;
    bool link = false, verify = false;
    bool overwrite = false, resume = false, dry_run = false;
};

/// What the new arrays are. In the help, {edges}, {shards}, {separators} and {formats} stand for the formats that have
/// these.
template <OptionsOf<ResultOptions> R, class Visit>
void visit_array_options(R& r, const Visit& visit) {
    visit({"chunks", "chunks", "--chunks", "SHAPE",
           "lengths of a chunk: 64,64, or time=6,lat=2 by the names of dimensions, or where they differ along\n"
           "one '[10,10,5]*4,32' ({edges})",
           false, false, only_arrays},
          r.chunks);
    visit({"codec", "codec", "--codec", "CODECS", "codecs in order, such as blosc:zstd:5:shuffle, delta,zstd:3 or none",
           false, false, only_arrays},
          r.codec);
    visit({"shards", "shards", "--shard,--shards", "SHAPE",
           "lengths of a shard, a multiple of chunks ({shards}); none removes sharding", false, false, only_arrays},
          r.shards);
    visit({"fill", "fill_value", "--fill", "VALUE",
           "fill value, JSON or text; NAME=VALUE of one array of a group (repeatable)", false, false, only_arrays},
          r.fills);
    visit({"format", "format", "--format", "FORMAT",
           "{formats} (default: that of the group around the destination, else the source's, for array files what the "
           "settings name or zmeta; v3 for netCDF, HDF5, TIFF and what the others cannot express)",
           false, false, only_arrays},
          r.format);
    visit({"dims", "dims", "--dims", "NAMES",
           "names of the dimensions: time,y,x; where the source has these in another order, it is transposed; a table\n"
           "with columns of these names becomes arrays with these coordinates",
           false, false, only_arrays},
          r.dimensions);
    visit({"separator", "separator", "--separator", ".|/", "between the indices of chunk keys: . or / ({separators})",
           false, false, only_arrays},
          r.separator);
    visit({"structures", "structures", "--structures", "NAME",
           "v3: the name of structures: struct, or structured for zarr-python before 3.3", false, false, only_arrays},
          r.structures);
    visit({"order", "order", "--order", "C|F", "order of the elements in a chunk, or in an array file"}, r.order);
}

/// How they are made.
template <OptionsOf<ResultOptions> R, class Visit>
void visit_making_options(R& r, const Visit& visit) {
    visit({"dry_run", "dry_run", "--dry-run", "",
           "say what would be made, and whether chunk files stay valid; make nothing", false, false, only_now},
          r.dry_run);
    visit({"resume", "resume", "--resume", "", "go on with an unfinished copy, and leave one when interrupted", false,
           false, only_arrays | only_copies | only_now},
          r.resume);
    visit({"link", "link", "--link", "",
           "hard links in place of copies of chunk files that stay valid: two names of one file, so that a\n"
           "program that writes into chunk files changes both arrays (Tessera replaces them)",
           false, false, only_arrays | only_copies | only_chunks | only_now},
          r.link);
    visit({"verify", "verify", "--verify", "",
           "decode chunk files that stay valid before they are copied or linked, so that no damage is copied", false,
           false, only_copies | only_chunks | only_now},
          r.verify);
    visit({"deflate", "deflate", "--deflate", "LEVEL", "compress an .npz or .h5: 1 to 9 (default 0, stored)", false,
           false, only_files},
          r.deflate);
    visit({"unlimited", "unlimited", "--unlimited", "NAMES",
           "netCDF and HDF5: dimensions that may grow later, beside those that may in the source: time", false, false,
           only_files | only_copies},
          r.unlimited);
    visit({"object_strings", "object_strings", "--object-strings", "",
           "strings of variable length as Python objects in .npy and .npz, not padded to the longest", false, false,
           only_files | only_copies},
          r.object_strings);
    visit({"overwrite", "overwrite", "--overwrite", "",
           "replace what lies at the destination, once the new one is complete"},
          r.overwrite);
    visit({"drop_attributes", "drop_attributes", "--drop-attributes", "",
           "for a group: leave out its attributes if the new format has no place for them", false, false, only_copies},
          r.drop_attributes);
    visit({"skip_unreadable", "skip_unreadable", "--skip-bad", "",
           "for a group: replace the destination even if some arrays cannot be read", false, false, only_copies},
          r.skip_unreadable);
}

template <OptionsOf<ResultOptions> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit_array_options(r, visit);
    visit_making_options(r, visit);
}

/// What new arrays are wished to be, except fills.
[[nodiscard]] ArrayWishes wishes_of(const ResultOptions& result);

/// Throws invalid_argument for what does not apply to such a destination, or not together.
void require_fitting(const Recipe& recipe, const ResultOptions& result, const std::string& destination);

/// Throws invalid_argument for what is done at once, and not by a job.
void require_planned(const ResultOptions& result);

/// The same recipe, whose view rounds for this result.
[[nodiscard]] Recipe rounded_for(Recipe recipe, const ResultOptions& result, const std::string& destination);

/// The options of a copy to `destination`, or of another recipe's result there, which has its view already. `io`,
/// `store` and what depends on settings are the caller's. `say` is called with sentences about the view.
[[nodiscard]] HierarchyOptions hierarchy_options(const Recipe& recipe, const ResultOptions& result,
                                                 const std::string& destination, const IoOptions& io,
                                                 const std::function<void(const Note& note)>& say);

}  // namespace tessera
