// The operations of each kind of element, for the rows of the table in element_table.cpp. Private to the core module.
//
// All of these take host-order bytes of any alignment. assign_*() get size() zero bytes, and throw invalid_argument,
// quoting the value that they refuse.
#pragma once

#include <tessera/element.h>
#include <tessera/view.h>

#include <cstring>
#include <string>
#include <string_view>

namespace tessera::element {

[[noreturn]] void cannot(const DType& dtype, const Value& v, std::string_view why);

template <class T>
T load(const std::byte* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
void store(std::byte* p, T v) {
    std::memcpy(p, &v, sizeof v);
}

// ---- element_number.cpp

void assign_boolean(const DType& dtype, const Value& v, Assign rule, std::byte* out);
void assign_integer(const DType& dtype, const Value& v, Assign rule, std::byte* out);
void assign_real(const DType& dtype, const Value& v, Assign rule, std::byte* out);
void assign_complex(const DType& dtype, const Value& v, Assign rule, std::byte* out);
void assign_time(const DType& dtype, const Value& v, Assign rule, std::byte* out);
Value boolean_value(const DType& dtype, const std::byte* p);
Value integer_value(const DType& dtype, const std::byte* p);
Value real_value(const DType& dtype, const std::byte* p);
Value complex_value(const DType& dtype, const std::byte* p);
Value time_value(const DType& dtype, const std::byte* p);
std::string complex_text(const DType& dtype, const std::byte* p);
std::string datetime_text(const DType& dtype, const std::byte* p);
std::string timedelta_text(const DType& dtype, const std::byte* p);

// ---- element_text.cpp

void assign_bytes(const DType& dtype, const Value& v, Assign rule, std::byte* out);
void assign_text(const DType& dtype, const Value& v, Assign rule, std::byte* out);
void assign_raw(const DType& dtype, const Value& v, Assign rule, std::byte* out);
/// The content of an element of variable length.
ElementBytes variable_content(const DType& dtype, const Value& v, Assign rule);
Value bytes_value(const DType& dtype, const std::byte* p);
Value text_value(const DType& dtype, const std::byte* p);
Value raw_value(const DType& dtype, const std::byte* p);
Value variable_text_value(const DType& dtype, const std::byte* p);
Value variable_bytes_value(const DType& dtype, const std::byte* p);
/// Numbers as JSON writes them, text bare.
std::string plain_text(const Value& v);

// ---- element_structure.cpp

void assign_structure(const DType& dtype, const Value& v, Assign rule, std::byte* out);
Value structure_value(const DType& dtype, const std::byte* p);
std::string structure_text(const DType& dtype, const std::byte* p);

// ---- element_table.cpp

/// Assigns through the row of the dtype's kind, in the dtype's byte order.
void assign(const DType& dtype, const Value& v, Assign rule, std::byte* out);

}  // namespace tessera::element
