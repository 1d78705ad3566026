// An OME-Zarr image or a pyramid of GeoZarr: a group of an array, its overviews and their metadata.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/reduce.h>

namespace tessera {

/// What a pyramid of GeoZarr says otherwise than the array's attributes.
struct GeoWishes {
    /// a, b, c, d, e, f: x = a·column + b·row + c, y = d·column + e·row + f. Column and row 0 are the outer edges of
    /// the first elements.
    std::optional<std::array<double, 6>> transform = std::nullopt;
    std::optional<std::string> crs = std::nullopt;  ///< "EPSG:4326", a text of WKT2, or PROJJSON
};

struct PyramidOptions {
    std::string name = {};               ///< of the image
    std::vector<std::string> axes = {};  ///< empty: the array's names if OME-NGFF knows all, else the last of t c z y x
    Shape by = {2};                      ///< the factor between levels, along dimensions of space; or one for each
    std::optional<int> levels = std::nullopt;  ///< nullopt: until no dimension that shrinks is longer than 256
    Coarsening with = Coarsening::mean;
    bool keep_missing = false;       ///< a missing element makes its result missing; else it is left out
    bool raw = false;                ///< compute with codes, not with what they stand for
    std::vector<double> scale = {};  ///< the distance between neighbours along each axis; empty: 1 each
    std::vector<std::optional<std::string>> units = {};  ///< "micrometer"; empty, or one for each axis
    /// For all levels. The format is v2 (OME-NGFF 0.4) or v3 (0.5, 0.6); without one that of `ome`, else the array's if
    /// that is v2, else v3.
    ArrayWishes arrays = {};
    std::optional<OmeVersion> ome = std::nullopt;  ///< nullopt: 0.5 in v3, 0.4 in v2
    /// GeoZarr's conventions in place of OME-Zarr's, in v3; with `ome` both. The array's attributes have a
    /// georeference, or these wishes. `by` is then the factor along y and x, and `axes` are any names.
    std::optional<GeoWishes> geo = std::nullopt;
    bool overwrite = false;  ///< replace the levels of a pyramid that is there
    bool dry_run = false;
    IoOptions io = {};
    StoreOptions store = {};
};

/// Makes the pyramid in a directory or a zip, and returns its levels, `planned` and `made`. `source` names the array in
/// reports. The first level is the array bit for bit. Throws invalid_argument for axes, scale, units and factors that
/// do not fit the array, already_exists for a place that is not free, and the errors of copying.
CopiedHierarchy make_pyramid(const std::shared_ptr<const ArraySource>& array, const std::string& source,
                             const std::string& destination, const PyramidOptions& options);

/// Gives the group at `path`, and the groups below it, OME-Zarr metadata of a newer version, 0.5 or 0.6. No array is
/// touched. Returns the paths of the groups that changed, "" for the first; a second call finds none. Consolidated
/// metadata are made anew. Throws as upgraded_ome() before anything changes, unsupported for a group of another format
/// than v3, and not_found if there are no OME-Zarr metadata.
std::vector<std::string> upgrade_ome(const std::string& path, OmeVersion to, const StoreOptions& options = {});

}  // namespace tessera
