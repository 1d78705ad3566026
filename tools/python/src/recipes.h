// What the package's functions ask to be made, as the library's recipes and options of results.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include <tessera/recipe.h>
#include <tessera/result_options.h>

namespace tessera::python {

struct Asked {
    Recipe recipe;
    ResultOptions result;
};

/// What a dict describes: the recipe's name as "do", and members by Python's keywords, of which None is the default.
/// Arrays are NumPy arrays, which the caller keeps alive, objects of the package's Array, or paths. Throws TypeError
/// for a value of a wrong type and for an unknown keyword.
[[nodiscard]] Asked asked_from_python(const pybind11::dict& given);

/// The options of a copy, as the library has them, with the format of the settings.
[[nodiscard]] HierarchyOptions hierarchy_options(const Asked& asked, const std::string& destination,
                                                 const IoOptions& io, std::vector<std::string>& notes);

/// Runs `body`. Errors about a member name its keyword.
template <class Body>
decltype(auto) about_keywords(const Asked& asked, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        throw by_name(e, &Option::keyword, asked.recipe, asked.result);
    }
}

}  // namespace tessera::python
