#include <tessera/append_group.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/joined_meaning.h>
#include <tessera/measure.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace tessera {

namespace {

/// The arrays of what is appended.
class SourceArrays {
public:
    explicit SourceArrays(const Located& at) : at_(at), group_(group_at(at)) {
        if (group_) {
            for (const Node& node : group_->nodes()) {
                if (node.kind == NodeKind::array) paths_.insert(node.path);
            }
            return;
        }
        const std::vector<std::string> members = several_members(at);
        if (members.empty()) {
            throw invalid_argument(
                "{}: a group grows by another group or by a file of several arrays, and this is one array; name the "
                "array that is to grow",
                at.path);
        }
        paths_.insert(members.begin(), members.end());
    }

    [[nodiscard]] const std::set<std::string>& paths() const { return paths_; }
    [[nodiscard]] bool has(const std::string& path) const { return paths_.contains(path); }
    [[nodiscard]] std::unique_ptr<ArraySource> open(const std::string& path) const {
        if (group_) return std::make_unique<Array>(group_->open_array(path));
        ArrayPath part = at_.file;
        part.member = path;
        return open_array_file(part);
    }
    [[nodiscard]] const std::string& name() const { return at_.path; }

private:
    Located at_;
    std::optional<Group> group_;
    std::set<std::string> paths_;
};

/// The number of the dimension; nullopt for an array without it.
std::optional<int> axis_of(const ArraySource& array, const std::string& dimension) {
    const DimensionNames names = dimension_names_of(array);
    const auto found = std::ranges::find(names, std::optional(dimension));
    if (found == names.end()) return std::nullopt;
    return static_cast<int>(found - names.begin());
}

/// What is appended, as the array means it.
std::unique_ptr<ArraySource> fitting_meaning(std::unique_ptr<ArraySource> more, const Array& array, int axis) {
    const JoinedMeaning meaning(array, {Action::decode_cf, "in a copy of it makes an array that takes these", {}});
    meaning.require_place(*more, axis, array.shape()[axis]);
    return meaning.joined(std::move(more));
}

/// Throws if the coordinate of a dimension that does not grow is another one there.
void require_same_coordinate(const ArraySource& array, const ArraySource& more, const IoOptions& io) {
    if (array.info().shape == more.info().shape && difference(array, more, {}, 1, io).different == 0) return;
    throw invalid_argument("{}: this coordinate is not that of {}", more.name(), array.name())
        .advising(Action::diff, "shows where");
}

/// What is to be done, found before anything is.
struct Growth {
    std::vector<AppendedArray> arrays;
    std::set<std::string> names;  ///< of dimensions of these arrays
    std::set<std::string> all;    ///< arrays of the group
};

Growth plan(const Group& group, const SourceArrays& source, const std::string& dimension) {
    Growth growth;
    std::set<std::string> known;
    for (const Node& node : group.nodes()) {
        if (node.kind != NodeKind::array) continue;
        growth.all.insert(node.path);
        const Array array = group.open_array(node.path);
        const DimensionNames names = dimension_names_of(array);
        for (const auto& name : names) {
            if (name) known.insert(*name);
        }
        const auto axis = axis_of(array, dimension);
        if (!axis) continue;
        if (!source.has(node.path)) {
            throw invalid_argument(
                "{}: is along {}, but {} has no array {}, so that it would be shorter than the others", array.name(),
                dimension, source.name(), node.path);
        }
        const auto more = source.open(node.path);
        if (axis_of(*more, dimension) != axis) {
            throw invalid_argument("{}: has no dimension {} where that of {} is", more->name(), dimension,
                                   array.name());
        }
        (void)fitting_meaning(source.open(node.path), array, *axis);
        for (const auto& name : names) {
            if (name) growth.names.insert(*name);
        }
        growth.arrays.push_back({node.path, *axis, array.shape(), {}});
    }
    if (growth.arrays.empty()) {
        throw invalid_argument("{}: no array has a dimension '{}'; {}", group.name(), dimension, names_there(known));
    }
    return growth;
}

void require_nothing_left(const Group& group, const SourceArrays& source, const Growth& growth,
                          const std::string& dimension, const IoOptions& io) {
    for (const std::string& path : source.paths()) {
        if (std::ranges::find(growth.arrays, path, &AppendedArray::path) != growth.arrays.end()) continue;
        const auto more = source.open(path);
        if (axis_of(*more, dimension)) {
            throw invalid_argument(
                "{}: is along {}, but {} has no array {} along it; copy it there first, or leave it out", more->name(),
                dimension, group.name(), path);
        }
        const bool is_coordinate =
            growth.names.contains(path) && dimension_names_of(*more) == DimensionNames{std::optional(path)};
        if (is_coordinate && growth.all.contains(path)) require_same_coordinate(group.open_array(path), *more, io);
    }
}

}  // namespace

std::unique_ptr<ArraySource> fitting_source(std::unique_ptr<ArraySource> more, const Array& array, int axis,
                                            const std::optional<Cast>& cast) {
    more = fitting_meaning(std::move(more), array, axis);
    const DType dtype = more->info().dtype;
    if (dtype.equal_but_order(array.dtype()) || dtype.with_padding_named().equal_but_order(array.dtype())) return more;
    if (!cast) {
        throw invalid_argument("{} holds {}, but {} holds {}", more->name(), dtype.to_string(), array.name(),
                               array.dtype().to_string())
            .advising(Action::cast, "converts values: safe, same_kind, unsafe (as NumPy's astype), round or clip");
    }
    return std::make_unique<CastSource>(std::move(more), array.dtype(), *cast);
}

std::vector<AppendedArray> append_group(const Group& group, const Located& source, const std::string& dimension,
                                        const AppendGroupOptions& options) {
    const SourceArrays more(source);
    Growth growth = plan(group, more, dimension);
    require_nothing_left(group, more, growth, dimension, options.io);
    const bool consolidated = group.consolidated_state().present;
    Edit batch(group, options.edit);
    for (AppendedArray& one : growth.arrays) {
        Array& array = batch.array(one.path);
        one.before = array.shape();
        array.append(*fitting_source(more.open(one.path), array, one.axis, options.cast), one.axis, options.io);
        one.after = array.shape();
    }
    batch.commit();
    try {
        if (consolidated) Group(group).consolidate();
    } catch (const Error& e) {
        throw Error(ErrorCode::recorded,
                    fmt::format("{}: the arrays have grown, and must not be appended to again, but the consolidated "
                                "metadata are not renewed: {}",
                                group.name(), e.what()));
    }
    return std::move(growth.arrays);
}

}  // namespace tessera
