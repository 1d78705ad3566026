// A document of a convention, looked at member by member. Private to store/tasks/checks.
#pragma once

#include <tessera/convention_problem.h>
#include <tessera/value.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tessera {

/// A value, and where it stands in the document.
struct DocumentSpot {
    const Value* value;
    std::string at;
};

/// What a value has to be.
struct ExpectedValue {
    std::string_view words;
    bool (*holds)(const Value&);
};

/// An integer, or a float without a fraction, as JSON schemas have it.
[[nodiscard]] bool is_whole(const Value& v);
/// A value in a message; long ones by their kind.
[[nodiscard]] std::string shown(const Value& v);

inline constexpr ExpectedValue anything{"a value", [](const Value&) { return true; }};
inline constexpr ExpectedValue a_string{"a string", [](const Value& v) { return v.is_string(); }};
inline constexpr ExpectedValue an_object{"an object", [](const Value& v) { return v.is_object(); }};
inline constexpr ExpectedValue a_list{"a list", [](const Value& v) { return v.is_array(); }};
inline constexpr ExpectedValue a_number{"a number", [](const Value& v) { return v.is_number(); }};
inline constexpr ExpectedValue from_1{"an integer of at least 1",
                                      [](const Value& v) { return is_whole(v) && v.as_double() >= 1; }};

enum class Need : std::uint8_t { optional, recommended, required };

struct ListLength {
    std::size_t least = 0, most = SIZE_MAX;
    bool unique = false;
};

/// Collects what is wrong. Throws nothing, whatever the document holds.
class DocumentChecker {
public:
    std::vector<ConventionProblem> problems = {};

protected:
    template <class... Args>
    void add(ConventionRule rule, std::string at, fmt::format_string<Args...> format, Args&&... args) {
        problems.push_back({rule, std::move(at), fmt::format(format, std::forward<Args>(args)...)});
    }
    /// A member of an object; nullopt, with a problem, if it is not as expected.
    std::optional<DocumentSpot> get(const DocumentSpot& in, std::string_view name, const ExpectedValue& what,
                                    Need need = Need::optional);
    /// The items of a list that are as expected.
    std::vector<DocumentSpot> items(const DocumentSpot& list, const ExpectedValue& item, const ListLength& length);
    std::vector<DocumentSpot> list(const DocumentSpot& in, std::string_view name, const ExpectedValue& item,
                                   const ListLength& length, Need need = Need::optional);
    /// Reports a value that two of the objects have in the member `name`.
    void require_distinct(ConventionRule rule, const std::vector<DocumentSpot>& objects, std::string_view name);
};

}  // namespace tessera
