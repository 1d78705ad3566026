#include <tessera/write_computed.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <tessera/apart.h>
#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/derived_source.h>
#include <tessera/destination.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/locate.h>
#include <tessera/multiscales.h>
#include <tessera/node_facts.h>
#include <tessera/part_source.h>
#include <tessera/place.h>
#include <tessera/shared_source.h>

#include "file_chunks.h"

namespace tessera {

namespace {

/// Whether its dimensions have names, also where it has none: xarray requires an empty list there.
bool says_names(const ArraySource& array) {
    const auto* const chunked = as_array(array);
    return !dimension_names_of(array).empty() || array.attribute_values().find(dimensions_attribute) != nullptr ||
           (chunked != nullptr && chunked->metadata().spelling.find("dimension_names") != nullptr);
}

/// Whether a result has an operand's dimensions, of which reductions leave one index.
bool has_dimensions_of(const Shape& operand, const Shape& result) {
    return std::ranges::equal(operand, result, [](auto length, auto made) { return made == length || made == 1; });
}

}  // namespace

ComputedFrom calculated_from(const std::vector<CalcOperand>& operands, const ArraySource& made) {
    const ArrayInfo result = made.info();
    ComputedFrom from{.like = operands.empty() ? nullptr : operands.front().array.get(), .chunks = result.chunks};
    from.dimension_names = dimension_names_of(made);
    from.named = !from.dimension_names.empty();
    for (const CalcOperand& operand : operands) {
        if (!from.dimension_names.empty() || !has_dimensions_of(operand.array->info().shape, result.shape)) continue;
        from.dimension_names = dimension_names_of(*operand.array);
        from.named = says_names(*operand.array);
    }
    return from;
}

ComputedFrom reduced_from(const ArraySource& array, const ReduceOptions& options) {
    ComputedFrom from{.like = &array, .named = says_names(array)};
    const auto names = dimension_names_of(array);
    const auto rank = static_cast<int>(names.size());
    for (int d = 0; d < rank; ++d) {
        const bool goes = options.axes.empty() ||
                          std::ranges::count(options.axes, d) + std::ranges::count(options.axes, d - rank) > 0;
        if (options.groups != nullptr) {
            const bool word = std::ranges::count(grouping_words(), options.groups->by) > 0;
            const std::optional<std::string> by = word ? std::optional(options.groups->by) : std::nullopt;
            from.dimension_names.push_back(d == options.groups->axis ? by : names[static_cast<std::size_t>(d)]);
            continue;
        }
        if (options.keep_dimensions || !goes) from.dimension_names.push_back(names[static_cast<std::size_t>(d)]);
    }
    return from;
}

ComputedFrom coarsened_from(const ArraySource& array, const Shape& result) {
    ComputedFrom from{.like = &array, .chunks = array.info().chunks, .dimension_names = dimension_names_of(array)};
    if (from.chunks.rank() != result.rank()) from.chunks = {};
    for (int d = 0; d < from.chunks.rank(); ++d) {
        from.chunks[d] = std::clamp<std::int64_t>(result[d], 1, from.chunks[d]);
    }
    return from;
}

ComputedFrom regridded_from(const ArraySource& array) {
    return {.like = &array, .dimension_names = dimension_names_of(array), .named = says_names(array)};
}

ComputedFrom joined_from(const ArraySource& first, const JoinOptions& options) {
    ComputedFrom from{.like = &first, .dimension_names = dimension_names_of(first), .named = says_names(first)};
    const bool all_named = from.named && std::cmp_equal(from.dimension_names.size(), first.info().shape.rank());
    if (options.new_axis && all_named) {
        from.dimension_names.insert(from.dimension_names.begin() + options.axis, std::nullopt);
    }
    if (const auto* array = as_array(first)) {
        const ArrayMetadata m = array->metadata();
        if (m.fill.bytes && !m.dtype.is_variable()) from.fill = element_to_value(m.dtype, m.fill.bytes->data());
    }
    return from;
}

Value attributes_of_joined(const ArraySource& first, const Shape& shape, const JoinOptions& options) {
    Value attributes = first.attribute_values();
    if (auto place = geo_reference_in(attributes); place && place->shape && !options.new_axis) {
        const auto [y, x] = geo_dimensions(*place, dimension_names_of(first), shape.rank());
        if (options.axis == y) (*place->shape)[0] = shape[y];
        if (options.axis == x) (*place->shape)[1] = shape[x];
        set_geo_reference(attributes, *place);
    }
    attributes.erase(dimensions_attribute);
    attributes.erase(null_fill_attribute);
    attributes.erase("actual_range");
    return attributes;
}

void complete_wishes(ArrayWishes& wishes, const std::string& destination, int rank, const ComputedFrom& from) {
    if (!wishes.format) {
        const Dialect* above = format_above(destination);
        const auto* like = from.like == nullptr ? nullptr : as_array(before_cast(whole_of(*from.like)));
        if (above != nullptr) {
            wishes.format = above->name;
        } else if (like != nullptr && !is_in_file(*like)) {
            wishes.like_format = like->dialect().name;
        }
    }
    if (!wishes.fill) wishes.fill = from.fill;
    if (rank > 0 && !wishes.chunks && !wishes.edges && from.chunks.rank() == rank) wishes.chunks = from.chunks;
    if (!wishes.dimension_names && (rank > 0 || from.named) && std::cmp_equal(from.dimension_names.size(), rank)) {
        wishes.dimension_names = from.dimension_names;
    }
}

Value attributes_in_file(const ArraySource& source, const ComputedFrom& from) {
    Value attributes = source.attribute_values();
    attributes.erase(dimensions_attribute);
    const bool named =
        !from.dimension_names.empty() && std::cmp_equal(from.dimension_names.size(), source.info().shape.rank());
    if (named) attributes.set(dimensions_attribute, dimension_names_json(from.dimension_names));
    return attributes;
}

CopiedHierarchy write_computed(const ArraySource& source, const std::string& destination, const ComputedFrom& from,
                               HierarchyOptions options) {
    require_apart(from.paths, destination);
    if (named_array_file_format(destination) == nullptr) {
        complete_wishes(options.arrays, destination, source.info().shape.rank(), from);
        return copy_hierarchy(source, destination, options);
    }
    return copy_hierarchy(*borrowed_source(source, attributes_in_file(source, from)), destination, options);
}

std::int64_t computing_memory(const IoOptions& io) {
    constexpr std::int64_t least = std::int64_t{1} << 18;
    constexpr std::uint64_t usual = std::uint64_t{256} << 20;
    const std::uint64_t all = io.max_memory == 0 ? usual : io.max_memory;
    return std::max(least, static_cast<std::int64_t>(all / 4) / thread_count(io));
}

}  // namespace tessera
