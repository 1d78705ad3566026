// The metadata of a copied array in another format, or with other chunks, codecs and fill.
#include <tessera/action.h>
#include <tessera/array_plan.h>
#include <tessera/coordinates.h>

#include <fmt/format.h>

#include <tessera/codec.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <utility>

#include "dialects.h"
#include "file_chunks.h"
#include "fill_attribute.h"
#include "format_choice.h"

namespace tessera {

namespace {

FillValue parse_fill(const Dialect& from, const DType& dtype, const ArrayWishes& o) {
    const Value& value = *o.fill;
    FillValue fill{.bytes = std::nullopt, .spelling = value, .error = {}};
    if (!value.is_null()) {
        fill.bytes = in_context([] { return "fill"; }, [&] { return element_from_value(dtype, value, Assign::exact); });
    }
    if (fill.bytes && !from.default_fill(dtype).spelling) fill.spelling.reset();  // as make_metadata does
    return fill;
}

/// A fill as JSON.
std::string fill_text(const DType& dtype, const FillValue& fill) {
    if (!fill.bytes) return "null";
    const VariableSlot slot{reinterpret_cast<const char*>(fill.bytes->data()), fill.bytes->size()};
    const auto* element = dtype.is_variable() ? reinterpret_cast<const std::byte*>(&slot) : fill.bytes->data();
    return element_to_value(dtype, element).dump();
}

void add_masking_note(PlannedArray& plan) {
    if (const auto note = masking_note(*plan.dialect, plan.metadata)) plan.changes.push_back(*note);
}

void add_zstd_note(PlannedArray& plan) {
    if (!uses_unknown_zstd(*plan.dialect, plan.metadata)) return;
    plan.changes.push_back(fmt::format("{} cannot read chunks compressed with zstd", plan.dialect->cannot_read_zstd));
}

/// The lengths of a chunk or shard after a selection, along the kept dimensions.
Shape selected_lengths(const Shape& lengths, const Selection& selection) {
    Shape kept;
    for (int d = 0; d < lengths.rank(); ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        if (!axis.dropped) kept.push_back(axis.count == 0 ? lengths[d] : std::min(lengths[d], axis.count));
    }
    return kept;
}

bool is_transpose(const CodecConfig& codec) {
    return codec.name == "transpose";
}

Order order_of(const std::vector<CodecConfig>& codecs) {
    return std::ranges::any_of(codecs, is_transpose) ? Order::F : Order::C;
}

/// The chain for another rank or order, with new transposes.
std::vector<CodecConfig> reordered(const DType& dtype, int rank, Order order, std::vector<CodecConfig> codecs) {
    std::erase_if(codecs, is_transpose);
    return complete_codecs(dtype, rank, order, std::move(codecs));
}

void select(ArrayMetadata& m, const Selection& selection) {
    ChunkLayout layout = chunk_layout(m);
    layout.edges.clear();  // the longest lengths stay
    layout.chunks = selected_lengths(layout.chunks, selection);
    layout.shards = layout.shards.empty() ? Shape() : selected_lengths(layout.shards, selection);
    for (int d = 0; d < layout.shards.rank(); ++d) {
        layout.shards[d] = ceil_div(layout.shards[d], layout.chunks[d]) * layout.chunks[d];
    }
    m.shape = selection.shape();
    if (m.shape.rank() != selection.rank()) {
        layout.codecs = reordered(m.dtype, m.shape.rank(), order_of(layout.codecs), std::move(layout.codecs));
    }
    std::vector<std::optional<std::string>> names;
    for (std::size_t d = 0; d < m.dimension_names.size(); ++d) {
        if (!selection.axes()[d].dropped) names.push_back(m.dimension_names[d]);
    }
    m.dimension_names = std::move(names);
    set_chunk_layout(m, layout);
}

/// Applies the options for chunks and codecs. Returns whether any is about codecs.
bool apply_layout(ArrayMetadata& m, const ArrayWishes& o, const Dialect& to, std::vector<Note>& changes) {
    if (!o.chunks && !o.shards && !o.edges && !o.shard_edges && !o.codec && !o.order) return false;
    ChunkLayout layout = chunk_layout(m);
    if (o.chunks && !o.shards && !layout.shards.empty() && !to.shards) {
        changes.push_back(
            fmt::format("the shards of {} are left out, because {} has none", layout.shards.to_string(), to.name));
        layout.shards = Shape();
    }
    if (o.edges && !layout.shards.empty() && !o.shard_edges) {
        changes.push_back(fmt::format("the shards of {} are left out, because chunks in shards have one shape",
                                      layout.shards.to_string()));
    }
    set_lengths(layout, m.shape, o.chunks, o.edges, o.shards, o.shard_edges);
    const Order order = o.order.value_or(order_of(layout.codecs));
    if (o.codec) {
        layout.codecs = complete_codecs(m.dtype, m.shape.rank(), order, parse_codecs(*o.codec));
    } else if (o.order) {
        layout.codecs = reordered(m.dtype, m.shape.rank(), order, std::move(layout.codecs));
    }
    set_chunk_layout(m, layout);
    return o.shards || o.shard_edges || o.codec || o.order;
}

/// The attributes as stored: some formats distinguish an empty set from none.
std::optional<Value> stored_attributes(const ArraySource& source) {
    if (const auto* array = as_array(source)) return array->attributes().stored();
    Value values = source.attribute_values();
    return values.as_object().empty() ? std::nullopt : std::optional(std::move(values));
}

/// As convert_metadata, but if the fill cannot be expressed, the error shows one that can.
Conversion convert(const ArrayMetadata& m, const std::optional<Value>& attributes, const Dialect& from,
                   const Dialect& to, const ArrayWishes& o, bool fill_marks) {
    try {
        return convert_metadata(m, attributes, from, to, o.codec.has_value(), fill_marks);
    } catch (const Error& e) {
        if (o.fill || e.code() != ErrorCode::unsupported) throw;
        for (const FillValue& fill :
             {FillValue{}, FillValue{.bytes = zero_element(m.dtype), .spelling = {}, .error = {}}}) {
            ArrayMetadata filled = m;
            filled.fill = fill;
            try {
                (void)convert_metadata(filled, attributes, from, to);
            } catch (const Error&) {
                continue;
            }
            throw e.advising(Action::fill, "works", fill_text(m.dtype, fill));
        }
        throw;
    }
}

/// In v3. An array of no dimensions says that it has no names by an empty list.
void name_dimensions(ArrayMetadata& m, std::vector<std::optional<std::string>> names) {
    if (names.empty()) m.spelling.set("dimension_names", Value::array());
    m.dimension_names = std::move(names);
}

/// Sets dimension names at the dialect's place for them.
void set_dimensions(PlannedArray& plan, const ArrayWishes& o) {
    std::vector<std::optional<std::string>> names = *o.dimension_names;
    const Shape& shape = plan.metadata.shape;
    if (std::cmp_not_equal(names.size(), shape.rank())) {
        throw invalid_argument("{} names were given for {} dimensions", names.size(), shape.rank())
            .advising(Action::dimension_names, "takes one for each");
    }
    if (plan.attributes) plan.attributes->erase(dimensions_attribute);
    if (plan.dialect->dimension_names) {
        name_dimensions(plan.metadata, std::move(names));
        return;
    }
    if (!plan.attributes) plan.attributes = Value::object();
    plan.attributes->set(dimensions_attribute, dimension_names_json(names));
}

bool names_dimensions(const std::optional<Value>& attributes) {
    return attributes && attributes->find(dimensions_attribute) != nullptr;
}

/// The error with the advice to take the newest format for which takes(dialect) is true.
template <class Takes>
Error advise_format(const Error& error, const Takes& takes) {
    for (std::size_t n = dialect_table().size(); n-- > 0;) {
        const Dialect& dialect = *dialect_table()[n];
        try {
            if (takes(dialect)) return error.advising(Action::format, "can", dialect.name);
        } catch (const Error&) {
            continue;
        }
    }
    return error;
}

/// Casts the fill to another dtype. It must fit, as elements must.
void cast_fill(ArrayMetadata& m, const DType& dtype, Cast rule) {
    if (!m.fill.bytes || m.dtype.is_variable()) return;
    NDArray fill(native_dtype(m.dtype), {1});
    fill_elements(fill.view(), m.dtype, m.fill.bytes->data());
    NDArray made(native_dtype(dtype), {1});
    if (cast_packed(fill.dtype(), fill.bytes().data(), made.dtype(), made.bytes().data(), 1, rule)) {
        throw invalid_argument("the fill value {} does not fit {}", element_to_text(fill.dtype(), fill.bytes().data()),
                               dtype.to_string())
            .advising(Action::fill, "gives another");
    }
    NDArray stored(dtype, {1});
    copy_elements(made.view(), stored.view());
    m.fill = {.bytes = ElementBytes(stored.bytes().begin(), stored.bytes().end()), .spelling = {}, .error = {}};
}

/// Changes the dtype of the metadata: keeps compressors, and removes codecs that depend on the elements.
void change_dtype(ArrayMetadata& m, const CastSource& cast, const ArrayWishes& o, std::vector<Note>& changes) {
    const DType dtype = cast.info().dtype;
    if (!o.fill) cast_fill(m, dtype, cast.rule());
    ChunkLayout layout = chunk_layout(m);
    const Order order = order_of(layout.codecs);
    std::vector<CodecConfig> kept;
    for (CodecConfig& codec : layout.codecs) {
        const CodecRow* row = find_codec(codec.name);
        const bool filter = row != nullptr && row->array_to_array != nullptr;
        if (filter && !is_transpose(codec)) {
            changes.push_back(
                fmt::format("the codec {} is left out, because it was made for {}", codec.name, m.dtype.to_string()));
        }
        if (filter || (row != nullptr && row->array_to_bytes != nullptr)) continue;
        codec.configuration.erase("typesize");  // complete_codecs fills it in
        codec.configuration.erase("elementsize");
        kept.push_back(std::move(codec));
    }
    m.dtype = dtype;
    layout.codecs = complete_codecs(dtype, m.shape.rank(), order, std::move(kept));
    set_chunk_layout(m, layout);
}

/// The format of data that have none, if it can express what is asked. Names of dimensions and attributes stay where
/// other programs read them.
const Dialect& usual_format(const ArraySource& from, const ArrayWishes& o) {
    if (o.like_format) return dialect_named(*o.like_format);
    const bool described = o.preferred_format.empty() && !from.attribute_values().as_object().empty();
    return default_format(described ? "v3" : o.preferred_format);
}

/// Names of dimensions move to the dialect's place for them.
void move_dimensions(ArrayMetadata& m, std::optional<Value>& attributes, const Dialect& to) {
    if (!names_dimensions(attributes)) return;
    const Value list = attributes->at(dimensions_attribute);
    std::vector<std::optional<std::string>> names;
    for (std::size_t d = 0; list.is_array() && d < list.as_array().size(); ++d) {
        const Value& name = list.as_array()[d];
        names.push_back(name.is_string() ? std::optional(name.as_string()) : std::nullopt);
    }
    if (std::cmp_not_equal(names.size(), m.shape.rank())) return;
    attributes->set(dimensions_attribute, dimension_names_json(names));
    if (!to.dimension_names) return;
    attributes->erase(dimensions_attribute);
    name_dimensions(m, std::move(names));
}

/// netCDF's fill becomes the fill. The attribute stays, because the fill marks nothing in images and where it is zero.
void take_fill(ArrayMetadata& m, std::optional<Value>& attributes, const Dialect& to) {
    const Value* const given = attributes ? attributes->find(fill_attribute) : nullptr;
    if (given == nullptr) return;
    try {
        m.fill = {.bytes = element_from_value(m.dtype, *given, Assign::exact), .spelling = {}, .error = {}};
    } catch (const Error&) {
        return;  // a fill of another type is only an attribute
    }
    if (to.fill_is_missing) erase_nan_mark(*attributes);
}

/// xarray takes the fill of `to` for missing elements, and not that of `from`: it becomes what the attribute says.
/// Zero, which is the default, becomes null.
void mark_by_fill(const Array& from, const std::optional<Value>& attributes, const Dialect& to, ArrayMetadata& m,
                  std::vector<Note>& changes) {
    if (from.dialect().fill_is_missing || !to.fill_is_missing || !m.fill.bytes || !is_number(m.dtype)) return;
    const bool scalar = m.spelling.find("dimension_names") != nullptr;
    if (m.dimension_names.empty() && !scalar && !names_dimensions(attributes)) return;
    Value stated = attributes.value_or(Value::object());
    if (stated.find(null_fill_attribute) != nullptr) return;
    fill_attribute_as_number(m.dtype, stated);
    FillValue fill = null_fill();
    if (const Value* const marker = stated.find(fill_attribute)) {
        try {
            fill = {.bytes = element_from_value(m.dtype, *marker, Assign::exact), .spelling = {}, .error = {}};
        } catch (const Error&) {  // of another type: xarray takes the attribute beside null
        }
    } else if (*m.fill.bytes != zero_element(m.dtype) || is_below_multiscales(from)) {
        return;
    }
    if (fill.bytes == m.fill.bytes) return;
    changes.push_back(fmt::format("the fill_value {} becomes {}, because xarray takes that of {} for missing elements",
                                  fill_text(m.dtype, m.fill), fill_text(m.dtype, fill), to.name));
    m.fill = std::move(fill);
}

/// Whether each chunk is stored.
bool is_full(const Array& array) {
    const StoredSize stored = array.stored_size(0);
    return stored.known && stored.chunks == stored.chunks_possible;
}

/// What a copy is to be, in the terms of the array's own format.
struct WantedCopy {
    const Dialect& dialect;  ///< that it is to have
    ArrayMetadata metadata;
    std::optional<Value> attributes = {};
    std::vector<Note> changes = {};
    bool codecs_chosen = false;
    bool named = false;  ///< the attributes name its dimensions
};

WantedCopy wanted_copy(const Array& from, const ArrayWishes& o, const std::optional<Selection>& selection,
                       const CastSource* cast) {
    const bool in_file = is_in_file(from);
    const Dialect& dialect = o.format ? dialect_named(*o.format) : in_file ? usual_format(from, o) : from.dialect();
    WantedCopy wanted{.dialect = dialect, .metadata = from.metadata()};
    const DimensionNames names = wanted.metadata.dimension_names;
    if (cast != nullptr) change_dtype(wanted.metadata, *cast, o, wanted.changes);
    if (selection) select(wanted.metadata, *selection);
    wanted.codecs_chosen = apply_layout(wanted.metadata, o, dialect, wanted.changes);
    wanted.attributes = stored_attributes(from);
    if (selection && wanted.attributes) {
        wanted.attributes = attributes_of_part(*std::move(wanted.attributes), *selection, names);
    }
    if (o.fill) {
        wanted.metadata.fill = parse_fill(from.dialect(), wanted.metadata.dtype, o);
        if (wanted.attributes) wanted.attributes->erase(null_fill_attribute);
    }
    wanted.named = names_dimensions(wanted.attributes);
    if (in_file) {  // Zarr v2 is only how it is read
        ArrayMetadata& m = wanted.metadata;
        if (!o.fill) take_fill(m, wanted.attributes, dialect);
        if (!m.fill.bytes && !dialect.fill_is_missing) m.fill = dialect.default_fill(m.dtype);
        move_dimensions(m, wanted.attributes, dialect);
    } else if (!o.fill) {
        mark_by_fill(from, wanted.attributes, dialect, wanted.metadata, wanted.changes);
    }
    return wanted;
}

/// In the format that it is to have. Throws unsupported, with advice, for what that cannot say.
Conversion converted_copy(const Array& from, const WantedCopy& wanted, const ArrayWishes& o) {
    const auto refused = [&](const Error& error) {
        if (o.format) return error;
        return advise_format(error, [&](const Dialect& d) {
            return convert_metadata(wanted.metadata, wanted.attributes, from.dialect(), d, true).metadata.codecs ==
                   wanted.metadata.codecs;
        });
    };
    Conversion made;
    try {
        // In a file Zarr v2 is only how it is read.
        made = convert(wanted.metadata, wanted.attributes, from.dialect(), wanted.dialect, o, !is_in_file(from));
        wanted.dialect.require_expressible(made.metadata);
    } catch (const Error& e) {
        if (!wanted.codecs_chosen || e.code() != ErrorCode::unsupported) throw;
        throw refused(e);
    }
    if ((o.edges || o.shard_edges) && made.metadata.edges.empty()) {
        throw refused(unsupported("{} cannot express chunks that differ in length", wanted.dialect.name));
    }
    if (wanted.codecs_chosen && made.metadata.codecs != wanted.metadata.codecs) {
        throw refused(unsupported("{} cannot store this as asked: {}", wanted.dialect.name, made.changes.back()));
    }
    if (o.structures) name_structures(wanted.dialect, made.metadata, *o.structures);
    if (o.separator) made.metadata.keys = wanted.dialect.default_keys().with_separator(*o.separator);
    return made;
}

std::vector<std::string> codec_texts(const ArrayMetadata& m) {
    std::vector<std::string> found;
    for (const CodecConfig& codec : m.codecs) found.push_back(codec_text(codec));
    return found;
}

/// Why the chunks of an array cannot stay as they are in a copy of all of it; nullopt: they can.
std::optional<std::string> why_chunks_change(const Array& from, const ArrayMetadata& wanted, const ArrayMetadata& made,
                                             const ArrayWishes& o) {
    const ArrayMetadata before = from.metadata();
    std::optional<std::string> why = why_recode(before, made);
    if (why && !o.fill && wanted.fill.bytes != before.fill.bytes) {
        ArrayMetadata same = made;
        same.fill = before.fill;
        // The fill is that of no element.
        if (!why_recode(before, same) && is_full(from)) why.reset();
    }
    // Chunks of another level or compressor may still be valid, but they are not what was asked for.
    if (!why && o.codec && codec_texts(wanted) != codec_texts(before)) why = "another codec is asked for";
    return why;
}

PlannedArray plan_copy_as(const Array& from, const ArrayWishes& o, const std::optional<Selection>& selection,
                          const CastSource* cast) {
    WantedCopy wanted = wanted_copy(from, o, selection, cast);
    Conversion made = converted_copy(from, wanted, o);
    std::optional<std::string> recode = selection         ? "only a part is copied"
                                        : cast != nullptr ? "the dtype changes"
                                                          : why_chunks_change(from, wanted.metadata, made.metadata, o);
    wanted.changes.insert(wanted.changes.end(), made.changes.begin(), made.changes.end());
    PlannedArray plan{&wanted.dialect, std::move(made.metadata), std::move(made.attributes), std::move(wanted.changes),
                      std::move(recode)};
    if (o.codec) add_zstd_note(plan);
    if (o.dimension_names) set_dimensions(plan, o);
    const bool stated = wanted.attributes && wanted.attributes->find(fill_attribute) != nullptr;
    if (!o.fill && !wanted.named && !stated && names_dimensions(plan.attributes)) add_masking_note(plan);
    return plan;
}

PlannedArray plan_copy(const Array& from, const ArrayWishes& o, const std::optional<Selection>& selection,
                       const CastSource* cast) {
    if (o.format || !o.may_take_v3 || !asks_for_a_format(o)) return plan_copy_as(from, o, selection, cast);
    const auto in_v3 = [&](std::string_view why) {
        ArrayWishes wishes = o;
        wishes.format = "v3";
        PlannedArray plan = plan_copy_as(from, wishes, selection, cast);
        plan.changes.insert(plan.changes.begin(), v3_note(why));
        return plan;
    };
    std::optional<PlannedArray> plan;
    try {
        plan = plan_copy_as(from, o, selection, cast);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported && e.code() != ErrorCode::invalid_argument) throw;
        try {
            return in_v3(e.what());
        } catch (const Error&) {
            // It is not the format.
        }
        throw;
    }
    if (!o.dimension_names || names_are_read(*plan->dialect)) return *std::move(plan);
    try {
        return in_v3(no_names_text(*plan->dialect));
    } catch (const Error&) {
        return *std::move(plan);
    }
}

std::set<std::string> named_among(const DimensionNames& names) {
    std::set<std::string> found;
    for (const auto& name : names) {
        if (name) found.insert(*name);
    }
    return found;
}

/// Of an array as it is wished, but for its format.
ArrayOptions options_by_wishes(const ArraySource& from, const ArrayWishes& o,
                               const std::optional<Selection>& selection) {
    ArrayOptions options;
    options.shape = selection ? selection->shape() : from.info().shape;
    options.dtype = from.info().dtype;
    if (o.chunks) options.chunks = *o.chunks;
    if (o.shards) options.shards = *o.shards;
    if (o.edges) options.edges = *o.edges;
    if (o.shard_edges) options.shard_edges = *o.shard_edges;
    if (o.codec) options.codec = *o.codec;
    if (o.fill) options.fill_value = *o.fill;
    if (o.order) options.order = *o.order;
    if (o.separator) options.separator = *o.separator;
    if (o.structures) options.structures = *o.structures;
    return options;
}

/// Sets the format of `options`.
FormatChoice choose_new_format(ArrayOptions& options, const ArraySource& from, const ArrayWishes& o) {
    FormatChoice choice;
    if (o.format) {
        options.format = *o.format;
    } else if (o.may_take_v3) {
        const bool names = o.dimension_names.has_value() && !o.like_format;
        choice = chosen(options, names, usual_format(from, o));
        options.format = choice.dialect->name;
    } else {
        options.format = usual_format(from, o).name;
    }
    return choice;
}

/// The fill of data that had none, and what marks missing elements in them.
void set_fill_of_new(PlannedArray& plan, const ArraySource& from, const ArrayWishes& o) {
    ArrayMetadata& m = plan.metadata;
    const Dialect& dialect = *plan.dialect;
    // Data without a fill have none: xarray and GDAL would take values that equal it for missing ones.
    if (!o.fill && dialect.fill_is_missing) m.fill = null_fill();
    // What is not stored need not be stored in the copy.
    const auto absent = o.fill || dialect.fill_is_missing ? std::nullopt : from.absent_element();
    if (absent && from.info().dtype == m.dtype && *absent != zero_element(m.dtype)) {
        m.fill = {.bytes = absent, .spelling = {}, .error = {}};
    }
    if (plan.attributes) fill_attribute_as_number(m.dtype, *plan.attributes);
    if (!o.fill) take_fill(m, plan.attributes, dialect);
    if (plan.attributes) fill_attribute_for(dialect, m.dtype, *plan.attributes);
}

PlannedArray plan_new(const ArraySource& from, const ArrayWishes& o, const std::optional<Selection>& selection) {
    ArrayOptions options = options_by_wishes(from, o, selection);
    FormatChoice choice = choose_new_format(options, from, o);
    const Dialect& dialect = dialect_named(options.format);
    std::vector<std::string> changes;
    ArrayMetadata elements;
    elements.dtype = options.dtype;
    dialect.adapt(elements, changes);
    options.dtype = elements.dtype;
    PlannedArray plan{&dialect,
                      metadata_of_new(options, o.format.has_value()),
                      stored_attributes(from),
                      {changes.begin(), changes.end()},
                      "it is no array yet"};
    set_fill_of_new(plan, from, o);
    if (selection && plan.attributes) plan.attributes = attributes_of_part(*std::move(plan.attributes), *selection);
    move_dimensions(plan.metadata, plan.attributes, dialect);
    if (choice.note) plan.changes.push_back(*std::move(choice.note));
    if (o.codec) add_zstd_note(plan);
    if (o.dimension_names) set_dimensions(plan, o);
    return plan;
}

}  // namespace

std::optional<std::string> undefined_chunks_note(const ArrayMetadata& m, std::int64_t missing) {
    if (m.fill.bytes || !m.fill.error.empty() || missing <= 0) return {};
    return fmt::format(
        "the fill value is null and {} {} never stored, so that the elements there have no value: zarr-python reads "
        "them as whatever is in its memory, and Tessera as zeros",
        missing, missing == 1 ? "chunk was" : "chunks were");
}

std::optional<std::string> undefined_growth_note(const ArrayMetadata& m, const Shape& before) {
    if (m.fill.bytes || !m.fill.error.empty() || element_count(m.shape) == 0) return {};
    if (std::ranges::equal(m.shape, before, std::ranges::less_equal())) return {};
    return "the fill value is null, so that the new elements have no value before they are written: zarr-python reads "
           "them as whatever is in its memory, and Tessera as zeros";
}

bool asks_for_a_format(const ArrayWishes& wishes) {
    return wishes.edges || wishes.shard_edges || wishes.codec || wishes.structures || wishes.dimension_names ||
           (wishes.shards && !wishes.shards->empty());
}

ArrayMetadata metadata_of_new(const ArrayOptions& options, bool format_chosen) {
    const auto made = [&](const Dialect& dialect) { return expressed(options, dialect); };
    try {
        return made(*choose_format(options).dialect);
    } catch (const Error& e) {
        if (format_chosen) throw;
        throw advise_format(e, [&](const Dialect& dialect) {
            (void)made(dialect);
            return true;
        });
    }
}

std::optional<Note> masking_note(const Dialect& dialect, const ArrayMetadata& m) {
    const bool nan = m.fill.bytes && m.dtype.kind() == Kind::real && fill_text(m.dtype, m.fill) == "NaN";
    if (!dialect.fill_is_missing || !m.fill.bytes || nan) return {};
    return Note(
        fmt::format("xarray shows elements that equal the fill_value {} as missing", fill_text(m.dtype, m.fill)),
        {{Action::fill, "keeps them", "null"}});
}

std::optional<Note> large_chunk_note(const ArrayMetadata& m, std::uint64_t max_memory) {
    const Shape chunks = chunk_layout(m).chunks;
    const auto bytes = static_cast<std::uint64_t>(byte_count(chunks, m.dtype.size()));
    if (max_memory == 0 || bytes <= max_memory / 2) return {};
    return Note(
        fmt::format("a chunk of {} holds {}, and to write one takes twice that, more than the {} of memory allowed",
                    chunks.to_string(), memory_text(bytes), memory_text(max_memory)),
        {{Action::chunks, "makes smaller ones"}, {Action::max_memory, "allows more each time"}});
}

bool uses_unknown_zstd(const Dialect& dialect, const ArrayMetadata& m) {
    if (dialect.cannot_read_zstd.empty()) return false;
    return std::ranges::any_of(m.codecs, [](const CodecConfig& codec) {
        const Value* cname = codec.configuration.find("cname");
        return cname != nullptr && *cname == Value("zstd");
    });
}

Shape chunks_by_names(const std::vector<std::pair<std::string, std::int64_t>>& named, const DimensionNames& names,
                      const Shape& shape, Shape usual, bool all) {
    for (const auto& [name, length] : named) {
        const auto found = std::ranges::find(names, std::optional(name));
        if (found == names.end()) {
            if (!all) continue;
            throw invalid_argument("no dimension has the name '{}'; {}", name, names_there(named_among(names)));
        }
        const auto d = static_cast<int>(found - names.begin());
        usual[d] = std::max<std::int64_t>(std::min(length, shape[d]), 1);
    }
    return usual;
}

namespace {

/// Lengths by names as those of an array's dimensions; the others are those of the source, or the usual ones.
ArrayWishes with_lengths(const ArraySource& source, const ArrayWishes& options,
                         const std::optional<Selection>& selection) {
    ArrayWishes wishes = options;
    const auto named = std::exchange(wishes.named_chunks, {});
    const ArrayInfo info = source.info();
    DimensionNames names;
    Shape chunks = options.chunks.value_or(info.chunks);
    if (options.dimension_names) {
        names = *options.dimension_names;
    } else {
        names = dimension_names_of(source);
        for (std::size_t d = names.size(); selection && d-- > 0;) {
            if (selection->axes()[d].dropped) names.erase(names.begin() + static_cast<std::ptrdiff_t>(d));
        }
    }
    if (std::ranges::none_of(names, [&](const auto& name) {
            return name && std::ranges::find(named, *name, &std::pair<std::string, std::int64_t>::first) != named.end();
        })) {
        return wishes;
    }
    const Shape shape = selection ? selection->shape() : info.shape;
    if (selection && !options.chunks && chunks.rank() == selection->rank())
        chunks = selected_lengths(chunks, *selection);
    if (chunks.rank() != shape.rank()) chunks = choose_chunks(shape, info.dtype.size());
    wishes.chunks = chunks_by_names(named, names, shape, chunks, false);
    return wishes;
}

}  // namespace

PlannedArray plan_array(const ArraySource& source, const ArrayWishes& options,
                        const std::optional<Selection>& selection) {
    if (!options.named_chunks.empty()) {
        return plan_array(source, with_lengths(source, options, selection), selection);
    }
    if (const ArraySource* model = source.model()) {
        PlannedArray plan = plan_array(*model, options, selection);
        const Value added = attributes_beside_model(source);
        if (!plan.attributes && !added.as_object().empty()) plan.attributes = Value::object();
        const Value of_part =
            selection ? attributes_of_part(source.attribute_values(), *selection, dimension_names_of(source)) : added;
        for (const auto& [name, value] : added.as_object()) {
            if (const Value* const there = of_part.find(name)) plan.attributes->set(name, *there);
        }
        plan.recode = "the values change";
        return plan;
    }
    const CastSource* const cast = as_cast(source);
    const Array* const array = as_array(cast != nullptr ? cast->array() : source);
    return array != nullptr ? plan_copy(*array, options, selection, cast) : plan_new(source, options, selection);
}

}  // namespace tessera
