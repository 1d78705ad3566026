#include <tessera/append_group.h>

#include <tessera/action.h>
#include <tessera/array_file.h>
#include <tessera/calendar.h>
#include <tessera/coordinates.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/joined_meaning.h>
#include <tessera/measure.h>
#include <tessera/part_source.h>

#include <algorithm>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "group_access.h"
#include "group_growth.h"

namespace tessera {

namespace {

/// What is appended.
DataSet data_set_at(const Located& at) {
    if (auto set = DataSet::of(at)) return *std::move(set);
    throw invalid_argument(
        "{}: a group grows by another group or by a file of several arrays, and this is one array; name the array that "
        "is to grow",
        at.path);
}

/// The number of the dimension; nullopt for an array without it.
std::optional<int> axis_of(const ArraySource& array, const std::string& dimension) {
    const DimensionNames names = dimension_names_of(array);
    const auto found = std::ranges::find(names, std::optional(dimension));
    if (found == names.end()) return std::nullopt;
    return static_cast<int>(found - names.begin());
}

/// What is appended, as the array means it.
std::unique_ptr<ArraySource> fitting_meaning(std::unique_ptr<ArraySource> more, const Array& array, int axis,
                                             std::int64_t begin) {
    const JoinedMeaning meaning(array, {Action::decode_cf, "in a copy of it makes an array that takes these", {}});
    meaning.require_place(*more, axis, begin);
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

Growth plan(const Group& group, const DataSet& source, const std::string& dimension) {
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
                dimension, source.path(), node.path);
        }
        const auto more = source.open(node.path);
        if (axis_of(*more, dimension) != axis) {
            throw invalid_argument("{}: has no dimension {} where that of {} is", more->name(), dimension,
                                   array.name());
        }
        (void)fitting_meaning(source.open(node.path), array, *axis, array.shape()[*axis]);
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

void require_nothing_left(const Group& group, const DataSet& source, const Growth& growth, const std::string& dimension,
                          const IoOptions& io) {
    for (const std::string& path : source.names()) {
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

namespace {

/// What is appended at an index of the array.
std::unique_ptr<ArraySource> fitting_at(std::int64_t begin, std::unique_ptr<ArraySource> more, const Array& array,
                                        int axis, const std::optional<Cast>& cast) {
    more = fitting_meaning(std::move(more), array, axis, begin);
    const DType dtype = more->info().dtype;
    if (dtype.equal_but_order(array.dtype()) || dtype.with_padding_named().equal_but_order(array.dtype())) return more;
    if (!cast) {
        throw invalid_argument("{} holds {}, but {} holds {}", more->name(), dtype.to_string(), array.name(),
                               array.dtype().to_string())
            .advising(Action::cast, "converts values: safe, same_kind, unsafe (as NumPy's astype), round or clip");
    }
    return std::make_unique<CastSource>(std::move(more), array.dtype(), *cast);
}

}  // namespace

std::unique_ptr<ArraySource> fitting_source(std::unique_ptr<ArraySource> more, const Array& array, int axis,
                                            const std::optional<Cast>& cast) {
    return fitting_at(array.shape()[axis], std::move(more), array, axis, cast);
}

namespace {

/// The values of a coordinate in order, as they are compared: numbers, or times as attoseconds.
template <class Key>
struct Ends {
    std::optional<Key> first, last;  ///< nullopt: there are none, or they are missing
    static Ends of(const Coordinate& coordinate) {
        Ends ends;
        const std::int64_t n = coordinate.length();
        if (n == 0) return ends;
        coordinate.for_each<Key>(0, 1, [&](const auto& key) { ends.first = key; });
        coordinate.for_each<Key>(n - 1, 1, [&](const auto& key) { ends.last = key; });
        return ends;
    }
};

std::string key_text(const Coordinate& /*of*/, long double number) {
    return fmt::format("{}", static_cast<double>(number));
}
std::string key_text(const Coordinate& of, Int128 time) {
    return time_text(of.calendar(), time);
}

/// Where what is appended begins: after the values that are there, and after those of the sources before.
template <class Key>
class GoingOn {
public:
    GoingOn(const Coordinate& there, const AppendGroupOptions& options) : name_(there.name()), options_(options) {
        const Ends<Key> ends = Ends<Key>::of(there);
        last_ = ends.last;
        if (std::is_same_v<Key, Int128>) falls_ = false;  // time goes on, unless it is there the other way round
        if (there.length() > 1 && ends.first && ends.last) falls_ = *ends.last < *ends.first;
    }

    /// How many of a source's first indices are there already.
    std::int64_t skipped(const Coordinate& more) {
        std::int64_t old = 0, index = 0;
        std::optional<Key> before = last_;
        more.for_each<Key>(0, more.length(), [&](const std::optional<Key>& key) {
            const std::int64_t at = index++;
            if (!key) throw invalid_argument("{}: its element {} is missing, so that it has no place", more.name(), at);
            if (before && !comes_after(*key, *before)) {
                if (!options_.skip_old || old != at || (last_ && comes_after(*key, *last_)))
                    refuse(more, *key, *before);
                old = at + 1;
                return;
            }
            if (before) falls_ = *key < *before;
            before = key;
        });
        if (before) last_ = before, name_ = more.name();
        return old;
    }

private:
    [[nodiscard]] bool comes_after(const Key& key, const Key& before) const {
        return falls_.has_value() ? (*falls_ ? key < before : before < key) : key != before;
    }
    [[noreturn]] void refuse(const Coordinate& more, const Key& key, const Key& before) const {
        const Error error = invalid_argument("{}: {} does not go on from {}, which {} ends with", more.name(),
                                             key_text(more, key), key_text(more, before), name_);
        if (options_.skip_old) throw error;
        throw error.advising(Action::skip_old, "takes what comes after it");
    }

    std::string name_;
    AppendGroupOptions options_;
    std::optional<Key> last_;
    std::optional<bool> falls_;  ///< whether values fall; nullopt: one is not enough to tell
};

template <class Key>
std::vector<std::int64_t> skipped_of(const Coordinate& there, const std::vector<DataSet>& sources,
                                     const std::string& dimension, const AppendGroupOptions& options) {
    GoingOn<Key> going(there, options);
    std::vector<std::int64_t> skipped;
    for (const DataSet& source : sources) skipped.push_back(going.skipped(Coordinate(source.open(dimension))));
    return skipped;
}

bool has_array(const Group& group, const std::string& path) {
    return std::ranges::any_of(group.nodes(),
                               [&](const Node& node) { return node.kind == NodeKind::array && node.path == path; });
}

/// How many of the first indices of each source are left out.
std::vector<std::int64_t> left_out(const Group& group, const std::vector<DataSet>& sources,
                                   const std::string& dimension, const AppendGroupOptions& options) {
    const std::vector<std::int64_t> none(sources.size(), 0);
    const bool has = has_array(group, dimension) && group.open_array(dimension).shape().rank() == 1 &&
                     std::ranges::all_of(sources, [&](const DataSet& set) { return set.has(dimension); });
    if (!has) {
        if (!options.skip_old) return none;
        throw invalid_argument("{}: it has no coordinate {}, by which what is old could be told", group.name(),
                               dimension)
            .advising(Action::skip_old);
    }
    const Coordinate there(std::make_unique<Array>(group.open_array(dimension)));
    if (there.kind() == Coordinate::Kind::texts) return none;
    if (there.kind() == Coordinate::Kind::times) return skipped_of<Int128>(there, sources, dimension, options);
    return skipped_of<long double>(there, sources, dimension, options);
}

}  // namespace

namespace {

/// What is appended to arrays of a group, and how.
class Additions {
public:
    /// Throws, as append_group(), for what does not fit. The caller keeps others from changing the shapes.
    Additions(const Group& group, std::span<const Located> sources, std::string dimension,
              const AppendGroupOptions& options)
        : dimension_(std::move(dimension)), options_(options) {
        for (const Located& source : sources) {
            sets_.push_back(data_set_at(source));
            growth_ = plan(group, sets_.back(), dimension_);
            require_nothing_left(group, sets_.back(), growth_, dimension_, options.io);
        }
        if (sets_.empty()) throw invalid_argument("{}: nothing is named that is to be appended", group.name());
        skipped_ = left_out(group, sets_, dimension_, options);
    }

    [[nodiscard]] std::vector<AppendedArray>& arrays() { return growth_.arrays; }

    /// The parts for an array that has not grown yet. All are fitted to what the array means before it grows, because
    /// its coordinate grows by itself.
    [[nodiscard]] std::vector<std::unique_ptr<ArraySource>> parts_of(const AppendedArray& one,
                                                                     const Array& array) const {
        std::vector<std::unique_ptr<ArraySource>> parts;
        std::int64_t begin = array.shape()[one.axis];
        for (std::size_t i = 0; i < sets_.size(); ++i) {
            auto more = sets_[i].open(one.path);
            if (skipped_[i] == more->info().shape[one.axis]) continue;
            if (skipped_[i] > 0) more = part_source(std::move(more), fmt::format("{}@{}:", dimension_, skipped_[i]));
            const std::int64_t length = more->info().shape[one.axis];
            parts.push_back(fitting_at(begin, std::move(more), array, one.axis, options_.cast));
            begin += length;
        }
        return parts;
    }

private:
    std::string dimension_;
    const AppendGroupOptions& options_;
    std::vector<DataSet> sets_;
    Growth growth_;
    std::vector<std::int64_t> skipped_;
};

/// Where a batch is made on the disk, and holds all that is new.
std::vector<AppendedArray> append_here(const Group& group, std::span<const Located> sources,
                                       const std::string& dimension, const AppendGroupOptions& options) {
    Edit batch(group, options.edit);
    Additions additions(group, sources, dimension, options);
    for (AppendedArray& one : additions.arrays()) {
        Array& array = batch.array(one.path);
        for (const auto& part : additions.parts_of(one, array)) array.append(*part, one.axis, options.io);
        one.after = array.shape();
    }
    batch.commit();
    return std::move(additions.arrays());
}

/// Where elements are written in their places, beyond the shapes, which then change together.
std::vector<AppendedArray> append_far(const Group& group, std::span<const Located> sources,
                                      const std::string& dimension, const AppendGroupOptions& options) {
    GroupGrowth growth(group);
    Additions additions(group, sources, dimension, options);
    for (AppendedArray& one : additions.arrays()) {
        const auto parts = additions.parts_of(one, group.open_array(one.path));
        one.after = parts.empty() ? one.before : growth.append(one.path, one.before, one.axis, parts, options.io);
    }
    growth.commit();
    return std::move(additions.arrays());
}

}  // namespace

std::vector<AppendedArray> append_group(const Group& group, std::span<const Located> sources,
                                        const std::string& dimension, const AppendGroupOptions& options) {
    const bool consolidated = group.consolidated_state().present;
    const auto append = GroupAccess::state(group)->store->is_far() ? append_far : append_here;
    std::vector<AppendedArray> grown = append(group, sources, dimension, options);
    try {
        if (consolidated) Group(group).consolidate();
    } catch (const Error& e) {
        throw Error(ErrorCode::recorded,
                    fmt::format("{}: the arrays have grown, and must not be appended to again, but the consolidated "
                                "metadata are not renewed: {}",
                                group.name(), e.what()));
    }
    return grown;
}

}  // namespace tessera
