// Options: the members of a value that people fill in. Each is told once, by a function `visit_options(value, visit)`
// that calls visit(Option, member): the options of the program, the keywords of Python and the members in JSON follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/value.h>

namespace tessera {

/// The names of a member, and what people read of it.
struct Option {
    std::string_view name;          ///< in JSON
    std::string_view keyword = {};  ///< of Python's functions
    std::string_view typed = {};    ///< of the program; empty where the command declares it by itself
    std::string_view value = {};    ///< of the option, in its help: "DIMS"
    std::string_view help = {};     ///< one sentence
    bool required = false;          ///< of the option
    bool number = false;            ///< a text that may be numbers, or numbers by names
};

// Each reads one member from JSON, or from the text of an option, which may stand for a list. Throws invalid_argument
// for a value of another kind.

/// A number stands for its digits, a list for its parts with commas between them, and an object for NAME=VALUE.
void read_member(const Value& value, std::string& member);
void read_member(const Value& value, bool& member);
void read_member(const Value& value, std::int64_t& member);
void read_member(const Value& value, std::vector<double>& member);
void read_member(const Value& value, std::vector<std::string>& member);
/// An empty part or null is nullopt.
void read_member(const Value& value, std::vector<std::optional<std::string>>& member);
/// null is nullopt.
template <class T>
void read_member(const Value& value, std::optional<T>& member) {
    if (value.is_null()) {
        member.reset();
    } else {
        read_member(value, member.emplace());
    }
}

[[nodiscard]] Value member_value(const std::string& member);
[[nodiscard]] Value member_value(bool member);
[[nodiscard]] Value member_value(std::int64_t member);
[[nodiscard]] Value member_value(const std::vector<double>& member);
[[nodiscard]] Value member_value(const std::vector<std::string>& member);
[[nodiscard]] Value member_value(const std::vector<std::optional<std::string>>& member);
template <class T>
[[nodiscard]] Value member_value(const std::optional<T>& member) {
    return member ? member_value(*member) : Value();
}

/// Parts of a text between commas, without spaces around them; an empty one is nullopt.
[[nodiscard]] std::vector<std::optional<std::string>> parse_names(std::string_view text);

}  // namespace tessera
