#include "set_grids.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/array_io.h>
#include <tessera/error_text.h>

#include "grid_axes.h"

namespace tessera {

namespace {

/// The coordinates of the grid that an array lies on: latitudes, longitudes; empty if it lies on none.
std::vector<std::string> grid_of(const DataSet& set, const std::string& name) {
    const DataSet::Member& member = set.member(name);
    const auto named = std::ranges::count_if(member.dimensions, [](const auto& one) { return one.has_value(); });
    if (named < 2) return {};
    const std::unique_ptr<ArraySource> array = set.open(name);
    std::vector<std::string> grid;
    for (const auto find : {latitudes_of, longitudes_of}) {
        const auto axis = find(*array);
        const auto& dimension = axis ? member.dimensions[static_cast<std::size_t>(axis->dimension)] : std::nullopt;
        const auto coordinate = dimension ? set.beside(name, *dimension) : std::nullopt;
        if (!coordinate) return {};
        grid.push_back(*coordinate);
    }
    return grid;
}

}  // namespace

SetGrids grids_of(const DataSet& set, const std::set<std::string>& names) {
    SetGrids grids;
    for (const std::string& name : names) {
        if (!set.is_data(name)) continue;
        const std::vector<std::string> grid = grid_of(set, name);
        if (grid.empty()) continue;
        grids.arrays.insert(name);
        for (const std::string& coordinate : grid) grids.coordinates.emplace(coordinate, name);
    }
    return grids;
}

std::string grid_at(const std::string& path) {
    const auto set = DataSet::at(path);
    if (!set) return path;
    std::map<std::vector<std::string>, std::string> found;
    for (const std::string& name : set->names()) {
        std::vector<std::string> grid = set->is_coordinate(name) ? std::vector<std::string>() : grid_of(*set, name);
        if (!grid.empty()) found.emplace(std::move(grid), name);
    }
    if (found.size() == 1) return set->path_of(found.begin()->second);
    if (found.empty()) {
        throw invalid_argument("{}: none of its arrays has latitudes and longitudes along dimensions", path);
    }
    std::vector<std::string> paths;
    std::ranges::transform(found, std::back_inserter(paths), [&](const auto& one) { return set->path_of(one.second); });
    throw invalid_argument("{}: it has several grids: name an array on one of them: {}", path, fmt::join(paths, ", "));
}

}  // namespace tessera
