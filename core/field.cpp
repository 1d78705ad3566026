#include <tessera/derived_source.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

std::string field_names(const DType& dtype) {
    std::string names;
    for (const Field& field : dtype.fields()) {
        if (!field.unnamed) names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
    }
    return names;
}

const Field* field_named(const DType& dtype, std::string_view name) {
    if (dtype.kind() != Kind::structure) return nullptr;
    const auto fields = dtype.fields();
    const auto found = std::ranges::find(fields, name, &Field::name);
    return found == fields.end() ? nullptr : &*found;
}

FieldPlace place_of(const Field& field) {
    return {field.dtype, field.shape, field.offset};
}

Shape joined(const Shape& a, const Shape& b) {
    Shape both = a;
    for (const std::int64_t n : b) both.push_back(n);
    return both;
}

template <class View>
View view_of(const View& structures, const FieldPlace& place) {
    View view = structures;
    view.data += place.offset;
    view.dtype = place.dtype;
    view.shape = joined(structures.shape, place.shape);
    for (const std::int64_t stride : contiguous_strides(place.shape, place.dtype.size())) {
        view.strides.push_back(stride);
    }
    return view;
}

class FieldSource final : public ArraySource {
public:
    FieldSource(std::unique_ptr<ArraySource> array, std::string_view name)
        : array_(std::move(array)),
          from_(array_->info()),
          place_(find_field(from_.dtype, name, array_->name())),
          name_(fmt::format("{}::{}", array_->name(), name)) {}

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = from_;
        info.working += slice_memory(from_, from_.dtype.size());
        info.dtype = place_.dtype;
        info.shape = joined(from_.shape, place_.shape);
        const bool chunked = from_.chunks.rank() == from_.shape.rank() && from_.shape.rank() > 0;
        if (chunked) info.chunks = joined(from_.chunks, place_.shape);
        if (!from_.shards.empty()) info.shards = joined(from_.shards, place_.shape);
        if (!place_.shape.empty()) info.order = Order::C;
        return info;
    }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override { return array_->attribute_values(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, joined(from_.shape, place_.shape));
        const int rank = from_.shape.rank();
        Region structures = Region::whole(from_.shape);
        Region inner = Region::whole(place_.shape);
        for (int d = 0; d < region.rank(); ++d) {
            Region& side = d < rank ? structures : inner;
            side.start[d < rank ? d : d - rank] = region.start[d];
            side.extent[d < rank ? d : d - rank] = region.extent[d];
        }
        for_each_slice(from_, from_.dtype.size(), structures, io.stop, [&](const Region& slice) {
            NDArray elements(from_.dtype, slice.extent, from_.order);
            array_->read_into(slice, elements.view(), io);
            const Region place = within(structures, slice);
            copy_elements(
                view_of(ArrayView(elements.view()), place_).part(extended(Region::whole(slice.extent), inner)),
                out.part(extended(place, Region::whole(inner.extent))));
        });
    }

private:
    static Region extended(const Region& region, const Region& inner) {
        return {joined(region.start, inner.start), joined(region.extent, inner.extent)};
    }

    std::unique_ptr<ArraySource> array_;
    ArrayInfo from_;
    FieldPlace place_;
    std::string name_;
};

/// The names in "a,b"; nullopt if a field has the whole name, or there is no comma.
std::optional<std::vector<std::string_view>> several_names(const DType& dtype, std::string_view text) {
    if (text.find(',') == std::string_view::npos || field_named(dtype, text) != nullptr) return {};
    std::vector<std::string_view> names;
    for (;;) {
        const std::size_t comma = text.find(',');
        std::string_view name = text.substr(0, comma);
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        names.push_back(name);
        if (comma == std::string_view::npos) return names;
        text.remove_prefix(comma + 1);
    }
}

/// Several fields of structures, as structures of these fields without gaps.
class FieldsSource final : public ArraySource {
public:
    FieldsSource(std::unique_ptr<ArraySource> array, std::string_view text, std::span<const std::string_view> names)
        : array_(std::move(array)), from_(array_->info()), name_(fmt::format("{}::{}", array_->name(), text)) {
        std::vector<Field> fields;
        std::int64_t size = 0;
        for (const std::string_view name : names) {
            if (std::ranges::count(names, name) > 1) {
                throw invalid_argument("{}: the field '{}' is named twice", name_, name);
            }
            const FieldPlace place = find_field(from_.dtype, name, array_->name());
            places_.emplace_back(place, FieldPlace{place.dtype, place.shape, size});
            fields.push_back({.name = std::string(name),
                              .title = std::nullopt,
                              .dtype = place.dtype,
                              .shape = place.shape,
                              .offset = size});
            size += byte_count(place.shape, place.dtype.size());
        }
        dtype_ = DType::structure(std::move(fields), size);
    }

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = from_;
        info.working += slice_memory(from_, from_.dtype.size());
        info.dtype = dtype_;
        return info;
    }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override { return array_->attribute_values(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, from_.shape);
        for_each_slice(from_, from_.dtype.size(), region, io.stop, [&](const Region& slice) {
            NDArray elements(from_.dtype, slice.extent, from_.order);
            array_->read_into(slice, elements.view(), io);
            const MutableArrayView part = out.part(within(region, slice));
            const std::span<const Field> into = part.dtype.fields();
            for (std::size_t i = 0; i < places_.size(); ++i) {
                FieldPlace to = places_[i].second;
                to.dtype = into[i].dtype;  // perhaps in another byte order
                to.offset = into[i].offset;
                copy_elements(view_of(ArrayView(elements.view()), places_[i].first), view_of(part, to));
            }
        });
    }

private:
    std::unique_ptr<ArraySource> array_;
    ArrayInfo from_;
    std::string name_;
    DType dtype_;
    std::vector<std::pair<FieldPlace, FieldPlace>> places_;  ///< in the array, and in what is made of it
};

}  // namespace

FieldPlace find_field(const DType& dtype, std::string_view name, std::string_view array) {
    if (dtype.kind() != Kind::structure) {
        throw invalid_argument("{} is a single array of {}, without fields; leave out '::{}'", array, dtype.to_string(),
                               name);
    }
    if (const Field* field = field_named(dtype, name)) return place_of(*field);
    // Names may contain dots: the longest name that exists is the outer field.
    for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
        const Field* outer = field_named(dtype, name.substr(0, dot));
        if (outer == nullptr) continue;
        FieldPlace place = find_field(outer->dtype, name.substr(dot + 1), fmt::format("{}::{}", array, outer->name));
        if (!outer->shape.empty()) {
            throw unsupported("{}::{}: {} is a sub-array of structures; pick that", array, name, outer->name);
        }
        place.offset += outer->offset;
        return place;
    }
    throw not_found("{} has no field '{}'; its fields are: {}", array, name, field_names(dtype));
}

ArrayView field_view(const ArrayView& structures, std::string_view name) {
    return view_of(structures, find_field(structures.dtype, name, "the array"));
}

MutableArrayView field_view(const MutableArrayView& structures, std::string_view name) {
    return view_of(structures, find_field(structures.dtype, name, "the array"));
}

std::unique_ptr<ArraySource> field_source(std::unique_ptr<ArraySource> array, std::string_view name) {
    const DType dtype = array->info().dtype;
    if (const auto names = several_names(dtype, name)) {
        return std::make_unique<FieldsSource>(std::move(array), name, *names);
    }
    return std::make_unique<FieldSource>(std::move(array), name);
}

}  // namespace tessera
