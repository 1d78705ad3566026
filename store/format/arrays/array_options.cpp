#include <tessera/array.h>

#include <tessera/action.h>
#include <tessera/chunk_grid.h>
#include <tessera/chunk_layout.h>
#include <tessera/element.h>
#include <tessera/error_text.h>

#include "dialects.h"
#include "format_choice.h"

namespace tessera {

const Dialect& default_format(std::string_view preferred) {
    return dialect_named(preferred.empty() ? "zmeta" : preferred);
}

FormatChoice choose_format(const ArrayOptions& options, std::string_view preferred) {
    if (!options.format.empty()) return {.dialect = &dialect_named(options.format)};
    return chosen(options, !options.dimension_names.empty(), default_format(preferred));
}

FillValue null_fill() {
    return {.bytes = std::nullopt, .spelling = Value(), .error = {}};
}

std::optional<Note> undefined_note(const Dialect& dialect, const ArrayMetadata& m) {
    if (!dialect.fill_is_missing || m.fill.bytes || !m.fill.error.empty()) return {};
    return Note(
        "the fill value is null, so that elements that were never written have no value: zarr-python reads them as "
        "whatever is in its memory; write all of them",
        {{Action::fill, "gives them one"}});
}

namespace {

FillValue fill_of(const ArrayOptions& options, const Dialect& dialect, const DType& dtype) {
    const bool named = !options.dimension_names.empty() || options.attributes.find(dimensions_attribute) != nullptr;
    if (!options.fill_value) return named && dialect.fill_is_missing ? null_fill() : dialect.default_fill(dtype);
    FillValue fill{.bytes = std::nullopt, .spelling = *options.fill_value, .error = {}};
    if (!options.fill_value->is_null()) {
        // Only NumPy's rule allows one value for all fields of a structure.
        const Assign rule = dtype.kind() == Kind::structure ? Assign::numpy : Assign::exact;
        fill.bytes = in_context([] { return "fill value"; },
                                [&] { return element_from_value(dtype, *options.fill_value, rule); });
    }
    // v2 and v3 have their own notation: a bare NaN is not JSON.
    if (fill.bytes && !dialect.default_fill(dtype).spelling) fill.spelling.reset();
    return fill;
}

}  // namespace

ArrayMetadata make_metadata(const ArrayOptions& options) {
    const Dialect& dialect = *choose_format(options).dialect;
    ArrayMetadata m;
    m.dtype = options.dtype;
    m.shape = options.shape;
    if (m.dtype.size() == 0) {
        throw invalid_argument("the dtype is missing, or has elements of no bytes: it is {}", m.dtype.to_string());
    }
    if (m.dtype.kind() == Kind::object) throw unsupported("dtype O (Python objects) cannot be stored");
    (void)byte_count(m.shape, m.dtype.size());
    m.chunks = options.chunks.empty() && !m.shape.empty() ? choose_chunks(m.shape, m.dtype.size()) : options.chunks;
    m.fill = fill_of(options, dialect, m.dtype);
    m.codecs = complete_codecs(m.dtype, m.shape.rank(), options.order, parse_codecs(options.codec));
    ChunkLayout layout{.chunks = m.chunks, .shards = options.shards, .codecs = std::move(m.codecs)};
    const auto given = [](const auto& lengths) { return lengths.empty() ? std::nullopt : std::optional(lengths); };
    set_lengths(layout, m.shape, given(options.chunks), given(options.edges), given(options.shards),
                given(options.shard_edges));
    set_chunk_layout(m, layout);
    if (!options.dimension_names.empty() &&
        options.dimension_names.size() != static_cast<std::size_t>(m.shape.rank())) {
        throw invalid_argument("{} dimension names were given for {} dimensions", options.dimension_names.size(),
                               m.shape.rank());
    }
    require_distinct_names(options.dimension_names);
    if (dialect.dimension_names) m.dimension_names = options.dimension_names;
    m.keys = dialect.default_keys();
    if (!options.separator.empty()) m.keys = m.keys.with_separator(options.separator);
    if (!options.structures.empty()) name_structures(dialect, m, options.structures);
    return m;
}

Value new_attributes(const ArrayOptions& options) {
    Value attributes = options.attributes;
    if (!options.dimension_names.empty() && !choose_format(options).dialect->dimension_names) {
        attributes.set(dimensions_attribute, dimension_names_json(options.dimension_names));
    }
    return attributes;
}

}  // namespace tessera
