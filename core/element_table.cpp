#include <tessera/element.h>

#include <algorithm>

#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/view.h>

#include "element_rows.h"

namespace tessera {

using namespace element;

namespace {

// ---- the table

void assign_object(const DType&, const Value&, Assign, std::byte*) {
    throw unsupported("Python objects (dtype O) cannot be written element by element");
}

Value object_value(const DType&, const std::byte*) {
    throw unsupported("Python objects (dtype O) cannot be read element by element");
}

// The operations of one kind, on host-order bytes of any alignment. `assign` gets size() zero bytes; it is null if the
// content has no fixed size (element_from_value). `to_text` is null if plain_text of `to_value` is the text.
struct Operations {
    Kind kind;
    void (*assign)(const DType&, const Value&, Assign, std::byte* out);
    Value (*to_value)(const DType&, const std::byte*);
    std::string (*to_text)(const DType&, const std::byte*);
};

constexpr Operations table[] = {
    {Kind::boolean, assign_boolean, boolean_value, nullptr},
    {Kind::integer, assign_integer, integer_value, nullptr},
    {Kind::unsigned_integer, assign_integer, integer_value, nullptr},
    {Kind::real, assign_real, real_value, nullptr},
    {Kind::complex, assign_complex, complex_value, complex_text},
    {Kind::bfloat16, assign_real, real_value, nullptr},
    {Kind::extended, assign_real, real_value, nullptr},
    {Kind::extended_complex, assign_complex, complex_value, complex_text},
    {Kind::datetime, assign_time, time_value, datetime_text},
    {Kind::timedelta, assign_time, time_value, timedelta_text},
    {Kind::bytes, assign_bytes, bytes_value, nullptr},
    {Kind::text, assign_text, text_value, nullptr},
    {Kind::raw, assign_raw, raw_value, nullptr},
    {Kind::structure, assign_structure, structure_value, structure_text},
    {Kind::object, assign_object, object_value, nullptr},
    {Kind::variable_text, nullptr, variable_text_value, nullptr},
    {Kind::variable_bytes, nullptr, variable_bytes_value, nullptr},
};

const Operations& operations_of(const DType& dtype) {
    return table[static_cast<std::size_t>(dtype.kind())];
}

bool is_foreign(const DType& dtype) {
    return dtype.order() != ByteOrder::none && dtype.order() != native_order;
}

// Calls `read` with host-order bytes of the element.
template <class Read>
auto with_host_order(const DType& dtype, const std::byte* p, Read read) {
    if (!is_foreign(dtype)) return read(p);
    ElementBytes copy(p, p + dtype.size());
    swap_elements(dtype, copy.data(), 1);
    return read(copy.data());
}

/// Reverses `parts` adjacent units of sizeof(T) bytes, `count` times, `step` bytes apart.
template <class T, class Swapped>
void swap_units(std::byte* p, std::int64_t step, std::int64_t count, std::int64_t parts, Swapped swapped) {
    constexpr std::int64_t unit = sizeof(T);
    const auto swap_row = [&](std::byte* row, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) store(row + i * unit, swapped(load<T>(row + i * unit)));
    };
    if (step == parts * unit) return swap_row(p, count * parts);
    if (parts == 1) {
        for (std::int64_t i = 0; i < count; ++i) store(p + i * step, swapped(load<T>(p + i * step)));
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) swap_row(p + i * step, parts);
}

/// Swaps `items` adjacent structures, `count` times, `step` bytes apart. It goes field by field, so that the operation
/// for each field is looked up once.
void swap_items(const DType& dtype, std::byte* p, std::int64_t step, std::int64_t count, std::int64_t items) {
    for (const Field& f : dtype.fields()) {
        for (std::int64_t k = 0; k < items; ++k) {
            swap_items(f.dtype, p + k * dtype.size() + f.offset, step, count, element_count(f.shape));
        }
    }
    const std::int64_t unit = dtype.swap_unit();
    if (unit <= 1) return;
    const std::int64_t parts = items * (dtype.size() / unit);
    switch (unit) {
        case 2:
            return swap_units<std::uint16_t>(p, step, count, parts,
                                             [](std::uint16_t v) { return __builtin_bswap16(v); });
        case 4:
            return swap_units<std::uint32_t>(p, step, count, parts,
                                             [](std::uint32_t v) { return __builtin_bswap32(v); });
        case 8:
            return swap_units<std::uint64_t>(p, step, count, parts,
                                             [](std::uint64_t v) { return __builtin_bswap64(v); });
        default:
            for (std::int64_t i = 0; i < count; ++i) {
                for (std::int64_t k = 0; k < parts; ++k)
                    std::reverse(p + i * step + k * unit, p + i * step + (k + 1) * unit);
            }
    }
}

std::string shown(const Value& v) {
    auto text = v.dump({.ascii = true});
    if (text.size() > 60) text.replace(57, std::string::npos, "...");
    return text;
}

}  // namespace

// ---- for the rows

void element::cannot(const DType& dtype, const Value& v, std::string_view why) {
    throw invalid_argument("{} cannot be an element of dtype {}: {}", shown(v), dtype.to_string(), why);
}

void element::assign(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    if (v.is_null()) cannot(dtype, v, "null is no value");
    operations_of(dtype).assign(dtype, v, rule, out);
    if (is_foreign(dtype)) swap_elements(dtype, out, 1);
}

ElementBytes element_from_value(const DType& dtype, const Value& value, Assign rule) {
    if (dtype.is_variable()) return variable_content(dtype, value, rule);
    auto bytes = zero_element(dtype);
    assign(dtype, value, rule, bytes.data());
    return bytes;
}

ElementBytes element_from_text(const DType& dtype, std::string_view text) {
    Value value{text};
    try {
        auto parsed = Value::parse(text);
        const bool takes_text = dtype.kind() == Kind::bytes || dtype.kind() == Kind::text || dtype.is_variable();
        if (!takes_text || parsed.is_string()) value = std::move(parsed);
    } catch (const Error&) {
        // Not JSON: plain text.
    }
    return element_from_value(dtype, value, Assign::exact);
}

Value element_to_value(const DType& dtype, const std::byte* p) {
    return with_host_order(dtype, p, [&](const std::byte* at) { return operations_of(dtype).to_value(dtype, at); });
}

std::string element_to_text(const DType& dtype, const std::byte* p) {
    const auto& operations = operations_of(dtype);
    if (operations.to_text == nullptr) return plain_text(element_to_value(dtype, p));
    return with_host_order(dtype, p, [&](const std::byte* at) { return operations.to_text(dtype, at); });
}

Value element_to_assign(const DType& dtype, const std::byte* p) {
    const bool time = dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta;
    return time ? Value(element_to_text(dtype, p)) : element_to_value(dtype, p);
}

ElementBytes zero_element(const DType& dtype) {
    constexpr std::int64_t large = std::int64_t{1} << 20;
    if (!dtype.is_variable() && dtype.size() >= large) {
        require_memory(4 * static_cast<std::uint64_t>(dtype.size()));  // four copies are kept
    }
    return ElementBytes(dtype.is_variable() ? 0 : static_cast<std::size_t>(dtype.size()));
}

void swap_elements(const DType& dtype, std::byte* p, std::int64_t count) {
    swap_elements(dtype, p, dtype.size(), count);
}

void swap_elements(const DType& dtype, std::byte* p, std::int64_t step, std::int64_t count) {
    if (dtype.size() != 0 && count != 0) swap_items(dtype, p, step, count, 1);
}

}  // namespace tessera
