// Options: the members of a value that people fill in. Each is told once, by a function `visit_options(value, visit)`
// that calls visit(Option, member): the options of the program, the keywords of Python and the members in JSON follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/chunk_grid.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
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
    unsigned only = 0;              ///< what alone it applies to: bits of Only; 0: to all
};

enum Only : unsigned {
    only_arrays = 1,  ///< made of chunks
    only_files = 2,   ///< array files
    only_copies = 4,  ///< not results that are computed
    only_chunks = 8,  ///< chunk files that may stay as they are
    only_now = 16,    ///< what is made at once, not in units by a job
};

/// Lengths of chunks, for dimensions in their order or by the names of some.
struct GivenLengths : ChunkLengths {
    std::vector<std::pair<std::string, std::int64_t>> named = {};
};

// Each reads one member from JSON, or from the text of an option, which may stand for a list. Throws invalid_argument
// for a value of another kind.

/// A number stands for its digits, a list for its parts with commas between them, and an object for NAME=VALUE.
void read_member(const Value& value, std::string& member);
/// A text is yes or no.
void read_member(const Value& value, bool& member);
void read_member(const Value& value, Value& member);
/// Lengths as parse_chunk_lengths() takes them; "none" is empty.
void read_member(const Value& value, ChunkLengths& member);
/// The same, or NAME=LENGTH of dimensions: "time=6,lat=2".
void read_member(const Value& value, GivenLengths& member);
/// C or F.
void read_member(const Value& value, Order& member);
/// One more of them.
void read_member(const Value& value, std::vector<Value>& member);
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
[[nodiscard]] Value member_value(const Value& member);
[[nodiscard]] Value member_value(std::int64_t member);
[[nodiscard]] Value member_value(const std::vector<double>& member);
[[nodiscard]] Value member_value(const std::vector<std::string>& member);
[[nodiscard]] Value member_value(const std::vector<std::optional<std::string>>& member);
template <class T>
[[nodiscard]] Value member_value(const std::optional<T>& member) {
    return member ? member_value(*member) : Value();
}

/// The text parsed as JSON, or else as a string.
[[nodiscard]] Value json_or_text(std::string_view text);
/// Puts another name in place of that in JSON, where a text begins with it and where it stands as `name`.
void put_name(std::string& text, const Option& option, std::string_view other);
/// An error about a member, "cast: only with `dtype`", by other names: "--cast: only with --dtype". `told` have
/// options.
template <class... Told>
[[nodiscard]] Error by_name(const Error& error, std::string_view Option::*name, const Told&... told) {
    std::string text = error.what();
    const auto put = [&](const Option& option, const auto& /*member*/) { put_name(text, option, option.*name); };
    (visit_options(told, put), ...);
    return text == error.what() ? error : error.reworded(error.code(), text);
}

/// Whether a member is not as it is by default.
template <class T>
[[nodiscard]] bool is_given(const T& member) {
    if constexpr (requires { member.has_value(); }) {
        return member.has_value();
    } else if constexpr (requires { member.empty(); }) {
        return !member.empty();
    } else {
        return member != T();
    }
}

/// Parts of a text between commas, without spaces around them; an empty one is nullopt.
[[nodiscard]] std::vector<std::optional<std::string>> parse_names(std::string_view text);

}  // namespace tessera
