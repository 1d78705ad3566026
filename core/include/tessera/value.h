// Value: a small JSON value, for attributes, codec configuration, unknown metadata members and `--json` output.
//
// It keeps details of Python's json module that a strict JSON type would lose: the bare tokens NaN, Infinity and
// -Infinity, integers of any size, and the difference between 1 and 1.0. Thread rule: a value type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tessera {

/// How `Value::dump` writes.
struct JsonStyle {
    int indent = -1;         ///< spaces per level; -1 writes one line
    bool sort_keys = false;  ///< members sorted by code point, as Python's sort_keys does
    bool ascii = false;      ///< characters outside ASCII as \uXXXX
};

/// Python 3's json.dump(indent=4, sort_keys=True), byte for byte and without a final newline.
inline constexpr JsonStyle python_json_style{.indent = 4, .sort_keys = true, .ascii = true};

class Value {
public:
    using Array = std::vector<Value>;
    using Member = std::pair<std::string, Value>;
    using Object = std::vector<Member>;  ///< in insertion order, keys unique
    /// An integer outside [-2^63, 2^64), as its decimal digits with an optional leading '-'.
    struct BigInteger {
        std::string digits;
        bool operator==(const BigInteger&) const = default;
    };

    Value() = default;
    Value(std::nullptr_t) {}
    Value(bool v) : data_(v) {}
    Value(int v) : data_(std::int64_t{v}) {}
    Value(long v) : data_(std::int64_t{v}) {}
    Value(long long v) : data_(std::int64_t{v}) {}
    Value(unsigned v) : data_(std::int64_t{v}) {}
    Value(unsigned long v) { set_unsigned(v); }
    Value(unsigned long long v) { set_unsigned(v); }
    Value(double v) : data_(Double{v}) {}
    Value(const char* v) : data_(std::string(v)) {}
    Value(std::string v) : data_(std::move(v)) {}
    Value(std::string_view v) : data_(std::string(v)) {}
    Value(Array v) : data_(std::move(v)) {}
    Value(Object v) : data_(std::move(v)) {}
    Value(BigInteger v) : data_(std::move(v)) {}
    /// An object: Value{{"title", "x"}, {"year", 2026}}. If a key repeats, the last one counts.
    Value(std::initializer_list<Member> members);

    [[nodiscard]] static Value array() { return Value(Array{}); }
    [[nodiscard]] static Value object() { return Value(Object{}); }
    /// The double nearest to a JSON number, which may have a fraction or an exponent.
    [[nodiscard]] static Value from_digits(std::string_view number);

    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
    [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(data_); }
    /// An integer that fits 64 bits, signed or unsigned (not a BigInteger, not a bool, not 1.0).
    [[nodiscard]] bool is_integer() const {
        return std::holds_alternative<std::int64_t>(data_) || std::holds_alternative<std::uint64_t>(data_);
    }
    [[nodiscard]] bool is_big_integer() const { return std::holds_alternative<BigInteger>(data_); }
    [[nodiscard]] bool is_double() const { return std::holds_alternative<Double>(data_); }
    [[nodiscard]] bool is_number() const { return is_integer() || is_big_integer() || is_double(); }
    [[nodiscard]] bool is_string() const { return std::holds_alternative<std::string>(data_); }
    [[nodiscard]] bool is_array() const { return std::holds_alternative<Array>(data_); }
    [[nodiscard]] bool is_object() const { return std::holds_alternative<Object>(data_); }

    // Each `as_` throws Error(invalid_argument), saying what was expected and what was found.
    [[nodiscard]] bool as_bool() const;
    [[nodiscard]] std::int64_t as_int64() const;    ///< an integer in range; 3.0 is refused
    [[nodiscard]] std::uint64_t as_uint64() const;  ///< an integer in range
    [[nodiscard]] double as_double() const;         ///< any number, rounded to nearest
    /// A double that rounds to any smaller float as the number itself does: as_double(), or its neighbour on the side
    /// where the number lies. Rounding as_double() would round twice.
    [[nodiscard]] double as_double_to_round() const;
    [[nodiscard]] const std::string& as_string() const;
    [[nodiscard]] const Array& as_array() const;
    [[nodiscard]] Array& as_array();
    [[nodiscard]] const Object& as_object() const;
    [[nodiscard]] const BigInteger& as_big_integer() const;

    /// The member `key` of an object, or nullptr if absent. Throws if this is no object.
    [[nodiscard]] const Value* find(std::string_view key) const;
    /// The member `key`; throws Error(not_found) naming it when absent.
    [[nodiscard]] const Value& at(std::string_view key) const;
    /// Sets the member `key` of an object (a null becomes an empty object first); keeps its place if present.
    Value& set(std::string_view key, Value v);
    /// Removes the member `key`; false when it was absent.
    bool erase(std::string_view key);
    void push_back(Value v);  ///< appends to an array (a null becomes an empty array first)

    /// Parses one JSON text, with Python's bare NaN, Infinity, -Infinity. If a key repeats, the last one counts, as in
    /// Python. Throws Error(corrupt) with line and column, for text that is not JSON, deeper than 200 levels, or
    /// followed by anything but white space.
    [[nodiscard]] static Value parse(std::string_view json);

    /// JSON text. Floats are Python's (the shortest that reads back: 1.0, 1e-07, 1e+16, NaN, Infinity).
    [[nodiscard]] std::string dump(JsonStyle style = {}) const;

    /// The kind in words, for messages: "an integer", "a string", "null".
    [[nodiscard]] std::string_view kind_name() const;

    /// Same kind and same content; NaN equals NaN; members in any order; 1 and 1.0 differ.
    friend bool operator==(const Value& a, const Value& b);
    friend std::ostream& operator<<(std::ostream& out, const Value& v);  ///< dump()

private:
    void set_unsigned(std::uint64_t v) {
        if (v <= static_cast<std::uint64_t>(INT64_MAX)) {
            data_ = static_cast<std::int64_t>(v);
        } else {
            data_ = v;
        }
    }

    struct Double {
        double value;
        int side = 0;  ///< where the number lies that this was read from: -1 below, 0 here, 1 above
        bool operator==(const Double& other) const { return value == other.value; }
    };

    // uint64_t holds only values beyond int64_t.
    std::variant<std::monostate, bool, std::int64_t, std::uint64_t, Double, std::string, BigInteger, Array, Object>
        data_;
};

/// The shortest text of a float that reads back, spelt as Python's repr does: 1.0, 0.1, 1e-07, 1e+16, nan, inf.
[[nodiscard]] std::string python_float_repr(double v);
[[nodiscard]] std::string python_float_repr(float v);

}  // namespace tessera
