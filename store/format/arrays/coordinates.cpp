#include <tessera/coordinates.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <type_traits>
#include <utility>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/derived_source.h>
#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/ndarray.h>
#include <tessera/number_text.h>
#include <tessera/numbers.h>
#include <tessera/parallel.h>
#include <tessera/part_source.h>
#include <tessera/slices.h>

#include "array_access.h"
#include "dialects.h"
#include "fill_attribute.h"
#include "keys.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// What stands before the last '/' of a name, with it.
std::string_view group_of(std::string_view name) {
    const std::size_t slash = name.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash + 1);
}

bool could_be_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

std::unique_ptr<ArraySource> open_member_beside(const std::string& member, const std::string& name);

/// The path of an array that is a store of its own.
std::string path_of(const ArrayState& state) {
    std::string path = state.name;
    if (!is_local(path)) return path;
    path = fs::absolute(path).lexically_normal().string();
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
}

std::unique_ptr<ArraySource> open_beside(const Array& array, const std::string& name) {
    const ArrayState& state = *ArrayAccess::state(array);
    // The chunks of a member of a file (file_chunks.h).
    if (split_array_path(state.name).member) return open_member_beside(state.name, name);
    if (!state.prefix.empty()) {
        const std::string there = std::string(group_of(state.prefix)) + name;
        if (!find_array({*state.store, there})) return nullptr;
        return std::make_unique<Array>(Array::open({state.store, there}));
    }
    const std::string path = path_of(state);
    const std::string_view folder = group_of(path);
    if (folder.empty()) return nullptr;
    const auto opened = [](const Located& at) -> std::unique_ptr<ArraySource> {
        if (at.kind != PathKind::array) return nullptr;
        return std::make_unique<Array>(at.array());
    };
    return at_located(std::string(folder) + name, opened, state.store->options_beside());
}

/// Beside a member of a file, or beside the array that a field or what is computed has the name of.
std::unique_ptr<ArraySource> open_member_beside(const std::string& member, const std::string& name) {
    const Located at = locate(member);
    if (at.place && (at.kind == PathKind::part || at.kind == PathKind::array)) return open_beside(at.array(), name);
    if (at.kind != PathKind::part) return nullptr;
    ArrayPath path = at.file;
    const std::string there = std::string(group_of(*path.member)) + name;
    const std::vector<std::string> members = array_members(*at.format, path);
    if (std::ranges::find(members, there) == members.end()) return nullptr;
    path.member = there;
    return open_array_file(path);
}

std::string text_of(const Value& attributes, std::string_view name) {
    const Value* value = attributes.find(name);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

bool is_text_kind(const DType& dtype) {
    return dtype.kind() == tessera::Kind::bytes || dtype.kind() == tessera::Kind::text || dtype.is_variable();
}

template <class T, class Each>
void for_each_as(const NDArray& elements, const Each& each) {
    NDArray wide(DType::of<T>(), elements.shape());
    (void)cast_packed(elements.dtype(), elements.bytes().data(), wide.dtype(), wide.bytes().data(), elements.count(),
                      Cast::unsafe);
    for (const T v : wide.values<T>()) each(v);
}

/// The numbers and counts of time as std::int64_t, std::uint64_t or double, whichever holds them without loss.
template <class Each>
void for_each_number(const NDArray& elements, const Each& each) {
    switch (elements.dtype().kind()) {
        case Kind::datetime:
        case Kind::timedelta:
            for (std::int64_t i = 0; i < elements.count(); ++i) {
                std::int64_t v = 0;
                std::memcpy(&v, elements.bytes().data() + i * 8, 8);
                each(v);
            }
            return;
        case Kind::unsigned_integer:
            return for_each_as<std::uint64_t>(elements, each);
        case Kind::boolean:
        case Kind::integer:
            return for_each_as<std::int64_t>(elements, each);
        default:
            return for_each_as<double>(elements, each);
    }
}

template <class Number>
bool is_nan(Number v) {
    if constexpr (std::is_floating_point_v<Number>) return std::isnan(v);
    return false;
}

}  // namespace

GroupAround group_around(const Array& array) {
    const ArrayState& state = *ArrayAccess::state(array);
    const std::string path = state.prefix.empty() ? path_of(state) : state.prefix;
    const std::string above(group_of(path));
    try {
        const Group group = state.prefix.empty()
                                ? Group::open(fs::path(above), state.store->options_beside())
                                : Group::open({state.store, above.substr(0, above.empty() ? 0 : above.size() - 1)});
        return {group.attributes().all(), path.substr(above.size())};
    } catch (const Error&) {
        return {};  // there is no group
    }
}

std::unique_ptr<ArraySource> array_beside(const ArraySource& array, const std::string& name) {
    if (!could_be_name(name)) return nullptr;
    bool is_part = false;
    if (auto beside = beside_part(array, name, is_part); is_part) return beside;
    const ArraySource& stored = model_of(before_cast(array));
    const auto* const chunked = as_array(stored);
    return chunked != nullptr ? open_beside(*chunked, name) : open_member_beside(stored.name(), name);
}

bool is_below_multiscales(const Array& array) {
    const Value attributes = group_around(array).attributes;
    return attributes.find("multiscales") != nullptr || attributes.find("ome") != nullptr;
}

Value attributes_as_meant(const ArraySource& source) {
    Value values = source.attribute_values();  // once, because an array looks whether they changed
    const auto* const array = as_array(model_of(source));
    const ArrayMetadata m = array != nullptr ? array->metadata() : ArrayMetadata{};
    const DimensionNames names = array != nullptr ? m.dimension_names : dimension_names_of(source);
    if (!names.empty()) values.set(dimensions_attribute, dimension_names_json(names));
    if (array == nullptr || values.find(dimensions_attribute) == nullptr) return values;
    auto fill = missing_by_fill(m, array->dialect(), values);
    if (fill && !is_below_multiscales(*array)) values.set(fill_attribute, *std::move(fill));
    return values;
}

std::optional<Coordinate> Coordinate::find(const ArraySource& array, const std::string& dimension,
                                           std::int64_t length) {
    if (!could_be_name(dimension)) return std::nullopt;
    std::unique_ptr<ArraySource> values = array_beside(array, dimension);
    if (values == nullptr) return std::nullopt;
    const Shape shape = values->info().shape;
    if (shape.rank() != 1 || shape[0] != length) {
        throw invalid_argument("{}: a coordinate of {} needs the shape ({}), and it has {}; select by indices: {}@4:9",
                               values->name(), dimension, length, shape.to_string(), dimension);
    }
    return Coordinate(std::move(values));
}

Coordinate::Coordinate(std::unique_ptr<ArraySource> values) : values_(std::move(values)) {
    const DType dtype = values_->info().dtype;
    const Value attributes = values_->attribute_values();
    if (dtype.kind() == tessera::Kind::datetime) {
        kind_ = Kind::times;
    } else if (is_text_kind(dtype)) {
        kind_ = Kind::texts;
    } else if (!is_number(dtype) && dtype.kind() != tessera::Kind::timedelta) {
        throw invalid_argument("{}: elements of {} have no order, so that it is no coordinate", values_->name(),
                               dtype.to_string());
    } else if (dtype.kind() == tessera::Kind::complex) {
        throw invalid_argument("{}: complex numbers have no order, so that it is no coordinate", values_->name());
    } else if (dtype.kind() != tessera::Kind::timedelta) {
        cf_ = parse_cf_time(text_of(attributes, "units"), text_of(attributes, "calendar"));
        if (cf_) kind_ = Kind::times;
        packing_ = packing_of(attributes).value_or(Packing());
    }
}

void Coordinate::read(std::int64_t first, std::int64_t count,
                      const std::function<void(const NDArray& elements)>& take) const {
    const ArrayInfo info = values_->info();
    const IoOptions io;
    for_each_slice(info, info.dtype.size(), Region({first}, {count}), io.stop, [&](const Region& slice) {
        require_not_stopped();
        NDArray elements(native_dtype(info.dtype), slice.extent);
        values_->read_into(slice, elements.view(), io);
        take(elements);
    });
}

template <>
void Coordinate::for_each<long double>(std::int64_t first, std::int64_t count, const Take<long double>& take) const {
    const bool time = values_->info().dtype.kind() == tessera::Kind::timedelta;
    read(first, count, [&](const NDArray& elements) {
        for_each_number(elements, [&](auto v) {
            const bool missing = is_nan(v) || (time && static_cast<std::int64_t>(v) == INT64_MIN);
            if (missing) {
                take(std::nullopt);
            } else if (packing_.scaled) {
                take(static_cast<long double>(packing_.decoded(static_cast<double>(v))));
            } else {
                take(static_cast<long double>(v));
            }
        });
    });
}

template <>
void Coordinate::for_each<Int128>(std::int64_t first, std::int64_t count, const Take<Int128>& take) const {
    const TimeUnit unit = values_->info().dtype.time_unit();
    std::int64_t at = first;
    const auto countable = [&](const std::optional<Int128>& time, bool missing) {
        if (!time && !missing) {
            throw invalid_argument("{}: the time at {} is beyond what can be counted", values_->name(), at);
        }
        take(time);
        ++at;
    };
    read(first, count, [&](const NDArray& elements) {
        for_each_number(elements, [&](auto v) {
            using Number = decltype(v);
            if (!cf_) {
                const auto ticks = static_cast<std::int64_t>(v);
                countable(time_of_datetime(ticks, unit), ticks == INT64_MIN);
            } else if (std::is_floating_point_v<Number> || packing_.scaled) {
                const double number = packing_.decoded(static_cast<double>(v));
                countable(cf_->time(number), std::isnan(number));
            } else if (std::is_unsigned_v<Number> && static_cast<std::uint64_t>(v) > INT64_MAX) {
                countable(std::nullopt, false);
            } else {
                countable(cf_->time(static_cast<std::int64_t>(v)), false);
            }
        });
    });
}

template <>
void Coordinate::for_each<std::string>(std::int64_t first, std::int64_t count, const Take<std::string>& take) const {
    read(first, count, [&](const NDArray& elements) {
        const std::byte* p = elements.bytes().data();
        for (std::int64_t i = 0; i < elements.count(); ++i, p += elements.dtype().size()) {
            take(element_to_text(elements.dtype(), p));
        }
    });
}

namespace {

template <class T>
std::optional<T> whole_text(std::string_view text) {
    T value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = number_from_text(text.data(), end, value);
    return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// The nearest value that elements of this type have: 0.1 is what float32 has for it.
double as_stored(double value, const DType& dtype) {
    NDArray one(dtype, Shape());
    (void)cast_packed(DType::of<double>(), reinterpret_cast<const std::byte*>(&value), dtype, one.bytes().data(), 1,
                      Cast::unsafe);
    (void)cast_packed(dtype, one.bytes().data(), DType::of<double>(), reinterpret_cast<std::byte*>(&value), 1,
                      Cast::unsafe);
    return value;
}

}  // namespace

long double Coordinate::number_of(std::string_view text) const {
    const DType dtype = native_dtype(values_->info().dtype);
    if (dtype.kind() == tessera::Kind::timedelta) {
        const ElementBytes element = element_from_text(dtype, text);
        std::int64_t count = 0;
        std::memcpy(&count, element.data(), sizeof count);
        return static_cast<long double>(count);
    }
    const bool real = dtype.kind() == tessera::Kind::real || dtype.kind() == tessera::Kind::bfloat16;
    if (!real && !packing_.scaled) {
        if (const auto whole = whole_text<std::int64_t>(text)) return static_cast<long double>(*whole);
        if (const auto large = whole_text<std::uint64_t>(text)) return static_cast<long double>(*large);
    }
    const std::string_view digits = text.size() > 1 && text.front() == '+' ? text.substr(1) : text;
    const auto parsed = whole_text<double>(digits);
    if (!parsed || std::isnan(*parsed)) {
        throw invalid_argument("'{}' is no value of the coordinate, whose elements are {}", text, dtype.to_string());
    }
    if (std::isinf(*parsed)) return static_cast<long double>(*parsed);
    return static_cast<long double>(as_stored(*parsed, real && !packing_.scaled ? dtype : DType::of<double>()));
}

}  // namespace tessera
