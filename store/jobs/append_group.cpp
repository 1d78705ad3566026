#include <tessera/append_group.h>

#include <tessera/array_file.h>
#include <tessera/calendar.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/measure.h>
#include <tessera/write_computed.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "converted_source.h"

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

/// What the conventions make of the numbers: the attributes that are applied to them, and a unit that is not of time.
Value meaning_of(std::unique_ptr<ArraySource> array) {
    Value meaning = Value::object();
    const Value attributes = decode_cf(std::move(array))->attribute_values();
    for (const std::string_view word : {"units", "calendar"}) {
        if (const Value* const value = attributes.find(word)) meaning.set(std::string(word), *value);
    }
    if (const Value* const applied = attributes.find(cf_encoding_attribute)) {
        for (const auto& [name, value] : applied->as_object()) {
            if (name != "dtype") meaning.set(name, value);
        }
    }
    return meaning;
}

/// Numbers that are equal are, whatever spells them: 1 and 1.0, or a list of one.
bool same_value(const Value* a, const Value* b) {
    const auto plain = [](const Value* value) -> Value {
        if (value == nullptr) return {};
        const bool single = value->is_array() && value->as_array().size() == 1;
        const Value& one = single ? value->as_array().front() : *value;
        return one.is_number() ? Value(one.as_double()) : one;
    };
    return plain(a).dump() == plain(b).dump();
}

/// Throws unless the same numbers mean the same. Returns whether they are times that are counted another way.
bool counts_otherwise(const SourceArrays& source, const Array& array, const std::string& path) {
    const Value there = meaning_of(std::make_unique<Array>(array));
    const Value here = meaning_of(source.open(path));
    std::set<std::string> words;
    for (const auto& entry : there.as_object()) words.insert(entry.first);
    for (const auto& entry : here.as_object()) words.insert(entry.first);
    const auto is_time = [](const Value& meaning) {
        const Value* const units = meaning.find("units");
        const Value* const calendar = meaning.find("calendar");
        const std::string name = calendar != nullptr && calendar->is_string() ? calendar->as_string() : "";
        const auto time =
            units == nullptr || !units->is_string() ? std::nullopt : parse_cf_time(units->as_string(), name);
        return time && (time->calendar == Calendar::standard || time->calendar == Calendar::proleptic_gregorian);
    };
    const bool times = is_time(there) && is_time(here);
    bool otherwise = false;
    for (const std::string& word : words) {
        const Value* const a = there.find(word);
        const Value* const b = here.find(word);
        const bool fill = word == fill_attribute && a != nullptr && b != nullptr;
        if (fill &&
            missing_elements(Value{{word, *a}}, array.dtype()) == missing_elements(Value{{word, *b}}, array.dtype())) {
            continue;  // however it is written
        }
        // A fill that only the array names concerns missing elements, which the other may not have.
        if (same_value(a, b) || (word == fill_attribute && b == nullptr)) continue;
        if (times && (word == "units" || word == "calendar")) {
            otherwise = true;
            continue;
        }
        throw invalid_argument(
            "{}: its attribute {} is {}, but that of {} in {} is {}: appended, the values would mean others",
            array.name(), word, a == nullptr ? "not there" : a->dump(), path, source.name(),
            b == nullptr ? "not there" : b->dump());
    }
    return otherwise;
}

/// Times as the array counts them.
std::unique_ptr<ArraySource> counted_as(const Array& array, std::unique_ptr<ArraySource> times) {
    const Value encoding = decode_cf(std::make_unique<Array>(array))->attribute_values().at(cf_encoding_attribute);
    const std::shared_ptr<const ArraySource> decoded = decode_cf(std::move(times));
    Value attributes = decoded->attribute_values();
    attributes.set(cf_encoding_attribute, encoding);
    return encode_cf(shared_source(decoded, std::move(attributes)));
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
    std::set<std::string> recounted;  ///< those whose times are counted another way in the source
    std::set<std::string> names;      ///< of dimensions of these arrays
    std::set<std::string> all;        ///< arrays of the group
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
        if (counts_otherwise(source, array, node.path)) growth.recounted.insert(node.path);
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

std::unique_ptr<ArraySource> fitting_source(std::unique_ptr<ArraySource> more, const Array& array,
                                            const std::optional<Cast>& cast) {
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
        std::unique_ptr<ArraySource> added = more.open(one.path);
        if (growth.recounted.contains(one.path)) {
            added = counted_as(group.open_array(one.path), std::move(added));
        }
        array.append(*fitting_source(std::move(added), array, options.cast), one.axis, options.io);
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
