#include <tessera/array.h>

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/parallel.h>
#include <tessera/place.h>
#include <tessera/shard.h>
#include <tessera/slices.h>
#include <algorithm>
#include <array>

#include "array_access.h"
#include "array_state.h"
#include "batch.h"
#include "dialects.h"
#include "many_regions.h"
#include "picked_part.h"
#include "points.h"
#include "region_io.h"
#include "resize.h"
#include "shard_io.h"
#include "stored_chunks.h"

namespace tessera {

// ---- Attributes

std::optional<Value> Attributes::stored() const {
    return state_->attributes();
}

Value Attributes::all() const {
    return stored().value_or(Value::object());
}

std::optional<Value> Attributes::get(std::string_view key) const {
    const Value values = all();
    const Value* found = values.find(key);
    return found == nullptr ? std::nullopt : std::optional<Value>(*found);
}

void Attributes::set(std::string_view key, Value value) {
    state_->change_documents([&] {
        Value values = all();
        values.set(key, value);
        state_->save_attributes(values);
    });
}

bool Attributes::erase(std::string_view key) {
    bool erased = false;
    state_->change_documents([&] {
        Value values = all();
        erased = values.erase(key);
        if (erased) state_->save_attributes(values);
    });
    return erased;
}

void Attributes::rename(std::string_view key, std::string_view new_key) {
    state_->change_documents([&] {
        const Value values = all();
        if (values.find(key) == nullptr) throw not_found("{}: no attribute '{}'", state_->name, key);
        if (key == new_key) return;
        if (values.find(new_key) != nullptr) {
            throw already_exists("{}: there is an attribute '{}' already", state_->name, new_key);
        }
        Value renamed = Value::object();
        for (const auto& [name, value] : values.as_object()) renamed.set(name == key ? new_key : name, value);
        state_->save_attributes(renamed);
    });
}

void Attributes::merge(const Value& attributes) {
    state_->change_documents([&] {
        Value values = all();
        for (const auto& [name, value] : attributes.as_object()) values.set(name, value);
        state_->save_attributes(values);
    });
}

void Attributes::replace(const Value& attributes) {
    (void)attributes.as_object();
    state_->change_documents([&] { state_->save_attributes(attributes); });
}

// ---- opening and creating

Array Array::open(const std::filesystem::path& path, const StoreOptions& options) {
    return at_place(path, options, [](const Place& place) { return open(place); });
}

Array Array::open(Place place) {
    return ArrayAccess::open_settled(settle_batch(std::move(place)));
}

void Array::set_dimension_names(const std::vector<std::optional<std::string>>& names) {
    state_->change_documents([&] {
        ArrayMetadata m = state_->refresh()->metadata;
        if (!names.empty() && std::cmp_not_equal(names.size(), m.shape.rank())) {
            throw invalid_argument("{}: {} names were given for {} dimensions", name(), names.size(), m.shape.rank());
        }
        in_context([&] { return name(); }, [&] { require_distinct_names(names); });
        if (dialect().dimension_names) {
            m.dimension_names = names;
            state_->save(std::make_shared<const LoadedArray>(std::move(m)));
            state_->sync();
            return;
        }
        Value values = state_->attributes().value_or(Value::object());
        values.erase(dimensions_attribute);
        if (!names.empty()) values.set(dimensions_attribute, dimension_names_json(names));
        state_->save_attributes(values);
    });
}

Array Array::create(Place place, const ArrayOptions& options) {
    const StoreLock building = place.store->lock_destination(place.prefix);
    return ArrayAccess::create_whole(std::move(place), options);
}

Array Array::create(Place place, const Dialect& dialect, ArrayMetadata metadata, bool publish) {
    if (probe_dialect(place) != nullptr) {
        throw already_exists("{}: an array is there already", place.name());
    }
    // As it will be read back: zarr 0.4 shows padding as fields, and the array must not change when it is reopened.
    in_context([&] { return place.name(); },
               [&] {
                   const auto there_and_back = memory_store();
                   dialect.save(*there_and_back, metadata, nullptr);
                   metadata = load_metadata(dialect, *there_and_back);
               });
    auto state = std::make_shared<ArrayState>(std::move(place.store), place.prefix, dialect);
    state->published = false;
    state->set_loaded(in_context([&] { return state->name; },
                                 [&] { return std::make_shared<const LoadedArray>(std::move(metadata)); }));
    Array array(std::move(state));
    if (publish) array.publish();
    return array;
}

void Array::publish() {
    const auto versions = state_->store->begin_change(state_->prefix, false);
    if (versions != nullptr && probe_dialect(*state_) != nullptr) {
        throw already_exists("{}: an array is there already", state_->name);
    }
    state_->published = true;
    state_->save(state_->loaded());
    state_->refresh();
    state_->sync();
}

// ---- what it is

ArrayInfo Array::info() const {
    return array_info(*state_->loaded());
}

const std::string& Array::name() const {
    return state_->name;
}
Attributes Array::attributes() const {
    return Attributes(state_);
}
const Dialect& Array::dialect() const {
    return *state_->dialect;
}
ArrayMetadata Array::metadata() const {
    return state_->loaded()->metadata;
}
void Array::refresh() {
    state_->refresh();
}

void Array::store_fill() {
    state_->stores_fill = true;
    ArrayMetadata m = state_->loaded()->metadata;
    m.fill.always_stored = true;
    state_->set_loaded(std::make_shared<const LoadedArray>(std::move(m)));
}

StoredSize Array::stored_size(std::int64_t exactly) const {
    const auto l = state_->loaded();
    StoredSize size{.chunks_possible = l->grid.chunk_count()};
    if (!state_->store->lists() && exactly != INT64_MAX) {
        size.known = false;
        return size;
    }
    constexpr std::int64_t sample = 64;
    const auto count = [&](const Index& chunk, const std::string&, const KeyValueStore::ValueSize& bytes) {
        if (!in_grid(l->grid, chunk)) {
            ++size.strays;
            return;
        }
        const std::int64_t beyond = size.chunks++ - exactly;
        if (beyond >= 0 && beyond % sample != 0) return;
        ++size.sized;
        size.bytes += bytes() * (beyond < 0 ? 1 : sample);
    };
    for_each_stored(*state_, *l,
                    {.each = count,
                     .stray =
                         [&](const std::string& name) {
                             if (!state_->dialect->owns(l->metadata, name)) ++size.strays;
                         },
                     .in_the_way =
                         [&](const Index* chunk, const std::string& key, const std::string&) {
                             if (chunk != nullptr) return count(*chunk, key, [] { return 0U; });
                             ++size.strays;
                         }});
    return size;
}

Blocks Array::blocks(const Shape& halo) const {
    const ArrayInfo now = info();
    return {now.shape, now.shards.empty() ? now.chunks : now.shards, halo};
}

bool Array::is_stored(const Region& region) const {
    const auto l = state_->loaded();
    require_inside(region, l->grid.shape());
    const Region overlapped = l->grid.overlapping(region);
    for (std::int64_t n = 0; n < overlapped.count(); ++n) {
        const auto value = state_->store->open(state_->chunk_key(*l, chunk_part(l->grid, region, overlapped, n).chunk));
        // A power failure can leave an empty file, if that was never synced.
        if (value == nullptr || value->size() == 0) return false;
    }
    return true;
}

// ---- reading

NDArray Array::read(SelectionText selection, const IoOptions& io) const {
    return read(parse_selection(selection, *this), io);
}

NDArray Array::read_as(const DType& wanted, SelectionText selection, Cast rule, const IoOptions& io) const {
    const Selection picked = parse_selection(selection, *this);
    if (native_dtype(dtype()) != native_dtype(wanted)) {
        return read_selection(CastSource(std::make_unique<Array>(*this), wanted, rule), picked, io);
    }
    NDArray out(wanted, picked.shape());
    read_into(picked, out.view(), io);
    return out;
}

NDArray Array::read(const Selection& selection, const IoOptions& io) const {
    NDArray out(dtype(), selection.shape());
    read_into(selection, out.view(), io);
    return out;
}

NDArray Array::read(const Region& region, const IoOptions& io) const {
    const auto l = state_->loaded();
    in_context([&] { return name(); }, [&] { require_inside(region, l->grid.shape()); });
    NDArray out(l->metadata.dtype, region.extent);
    read_region(*state_, *l, region, out.view(), io);
    return out;
}

void Array::read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
    if (state_->watch) state_->watch(region);
    read_region(*state_, *state_->loaded(), region, out, io);
}

void Array::read_into(const Selection& selection, const MutableArrayView& out, const IoOptions& io) const {
    const MutableArrayView full = with_dropped(selection, out, name());
    if (state_->watch) state_->watch(selection.bounds());
    read_selected(*state_, *state_->loaded(), selection, full, io);
}

void Array::read_many(std::span<const RegionRead> parts, const IoOptions& io) const {
    tessera::read_many(*state_, *state_->loaded(), parts, io);
}

namespace {

/// Each element of a 1-d view as a region of one element.
template <class Part, class View>
std::vector<Part> at_points(std::span<const Index> points, const View& elements, const std::string& name) {
    if (!(elements.shape == Shape{static_cast<std::int64_t>(points.size())})) {
        throw invalid_argument("{}: the elements given have shape {}, but there are {} places", name,
                               elements.shape.to_string(), points.size());
    }
    std::vector<Part> parts;
    parts.reserve(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        View element = elements;
        element.data += static_cast<std::int64_t>(i) * elements.strides[0];
        element.shape = Shape::filled(points[i].rank(), 1);
        element.strides = Strides::filled(points[i].rank(), 0);
        parts.push_back({Region(points[i], element.shape), element});
    }
    return parts;
}

}  // namespace

NDArray Array::read_points(std::span<const Index> points, const IoOptions& io) const {
    const auto l = state_->loaded();
    const int rank = l->grid.shape().rank();
    std::vector<std::int64_t> indices;
    indices.reserve(points.size() * static_cast<std::size_t>(rank));
    for (const Index& point : points) {
        if (point.rank() != rank) throw invalid_argument("{}: {} is no index", name(), point.to_string());
        indices.insert(indices.end(), point.begin(), point.end());
    }
    NDArray out(l->metadata.dtype, {static_cast<std::int64_t>(points.size())});
    tessera::read_points(*state_, *l, indices, out.view(), io);
    return out;
}

void Array::read_points(std::span<const std::int64_t> indices, const MutableArrayView& out, const IoOptions& io) const {
    tessera::read_points(*state_, *state_->loaded(), indices, out, io);
}

// ---- writing

namespace {

NDArray cast_given(const ArrayView& in, const DType& dtype, Cast rule, const std::string& name, const IoOptions& io) {
    return in_context([&] { return name; }, [&] { return cast_elements(in, dtype, rule, io); });
}

}  // namespace

void Array::read_into(SelectionText selection, const MutableArrayView& out, const IoOptions& io) const {
    read_into(parse_selection(selection, *this), out, io);
}

void Array::write(const Region& region, const ArrayView& in, const IoOptions& io) {
    const StopScope scope(io.stop);
    const StoreLock lock = state_->lock_shape(LockMode::shared);
    const auto l = state_->refresh();
    require_writable(*state_, *l);
    write_region(*state_, *l, region, in, io);
    state_->sync();
}

void Array::write_many(std::span<const RegionWrite> parts, const IoOptions& io) {
    const StopScope scope(io.stop);
    const StoreLock lock = state_->lock_shape(LockMode::shared);
    const auto l = state_->refresh();
    require_writable(*state_, *l);
    tessera::write_many(*state_, *l, parts, io);
    state_->sync();
}

void Array::write_points(std::span<const Index> points, const ArrayView& values, const IoOptions& io) {
    const auto parts = at_points<RegionWrite>(points, values, name());
    write_many(parts, io);
}

std::unique_ptr<ArraySink> Array::open_shard(const Region& region) {
    StoreLock lock = state_->lock_shape(LockMode::shared);
    return shard_sink(*state_, state_->refresh(), region, std::move(lock));
}

void Array::write(const Selection& selection, const ArrayView& in, const IoOptions& io) {
    const ArrayView full = with_dropped(selection, in, name());
    const StopScope scope(io.stop);
    const StoreLock lock = state_->lock_shape(LockMode::shared);
    const auto l = state_->refresh();
    require_writable(*state_, *l);
    write_selected(*state_, *l, selection, full, io);
    state_->sync();
}

void Array::write(const Region& region, const ArrayView& in, Cast rule, const IoOptions& io) {
    const DType wanted = dtype();
    if (in.dtype.equal_but_order(wanted)) return write(region, in, io);
    write(region, cast_given(in, wanted, rule, name(), io), io);
}

void Array::write(const Selection& selection, const ArrayView& in, Cast rule, const IoOptions& io) {
    const DType wanted = dtype();
    if (in.dtype.equal_but_order(wanted)) return write(selection, in, io);
    write(selection, cast_given(in, wanted, rule, name(), io), io);
}

void Array::write(SelectionText selection, const ArrayView& in, Cast rule, const IoOptions& io) {
    refresh();
    write(parse_selection(selection, *this), in, rule, io);
}

void Array::update(const Selection& selection, const Change& change, const IoOptions& io) {
    const StopScope scope(io.stop);
    const StoreLock lock = state_->lock_shape(LockMode::shared);
    const auto l = state_->refresh();
    require_writable(*state_, *l);
    update_selected(*state_, *l, selection, change, io);
    state_->sync();
}

void Array::finish() {
    state_->sync();
}

void Array::write(SelectionText selection, const ArrayView& in, const IoOptions& io) {
    state_->refresh();
    write(parse_selection(selection, *this), in, io);
}

void Array::update(SelectionText selection, const Change& change, const IoOptions& io) {
    state_->refresh();
    update(parse_selection(selection, *this), change, io);
}

void Array::fill(SelectionText selection, const Value& value, const IoOptions& io) {
    state_->refresh();
    fill(parse_selection(selection, *this), value, io);
}

void Array::fill(const Selection& selection, const Value& value, const IoOptions& io) {
    const RepeatedElement element(info().dtype, value, name());
    write(selection, element.view(selection.full_shape()), io);
}

void Array::fill(const Selection& selection, const ArrayView& element, const IoOptions& io) {
    // By its value only where the bytes are others: the fields of a structure have no units of their own.
    if (element.dtype.kind() == Kind::structure || element.dtype.equal_but_order(dtype())) {
        const Shape shape = selection.full_shape();
        return write(selection, {element.data, element.dtype, shape, Strides::filled(shape.rank(), 0)}, io);
    }
    fill(selection, element_to_assign(element.dtype, element.data), io);
}

void Array::require_direct(const Selection& selection) const {
    if (element_count(selection.shape()) == 0) return;
    tessera::require_direct(*state_, *state_->loaded(), selection.bounds());
}

// ---- changing the shape

namespace {

/// The attributes spatial:shape and spatial:bbox of an array with a georeference, whose shape has changed.
void renew_place(Array& array) {
    const Shape shape = array.shape();
    if (shape.rank() < 2) return;
    const Value attributes = array.attributes().all();
    auto place = geo_reference_in(attributes);
    if (!place || !place->shape) return;
    const DimensionNames names = dimension_names_of(array);
    std::array<std::int64_t, 2> lengths{shape[shape.rank() - 2], shape[shape.rank() - 1]};
    for (std::size_t d = 0; d < 2; ++d) {
        const auto named = std::ranges::find(names, std::optional(place->dimensions[d]));
        if (named != names.end()) lengths[d] = shape[static_cast<int>(named - names.begin())];
    }
    if (place->shape == lengths) return;
    place->shape = lengths;
    Value renewed = attributes;
    set_geo_reference(renewed, *place);
    Value changed = Value::object();
    for (const char* const name : {"spatial:shape", "spatial:bbox"}) {
        const Value* const value = renewed.find(name);
        if (value != nullptr && attributes.find(name) != nullptr) changed.set(name, *value);
    }
    array.attributes().merge(changed);
}

}  // namespace

void Array::resize(const Shape& shape, const IoOptions& io) {
    resize_array(*state_, shape, io);
    renew_place(*this);
}

std::int64_t Array::append(const ArraySource& in, int axis, const IoOptions& io) {
    const std::int64_t at = append_array(*state_, in, axis, io);
    renew_place(*this);
    return at;
}

std::int64_t Array::append(const ArrayView& in, int axis, const IoOptions& io) {
    return append(*view_source(in, "the elements given"), axis, io);
}

const Array* as_array(const ArraySource& source) {
    return dynamic_cast<const Array*>(&source);
}

}  // namespace tessera
