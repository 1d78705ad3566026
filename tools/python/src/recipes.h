// What the package's functions ask to be made, as the library's recipes.
#pragma once

#include <pybind11/pybind11.h>

#include <tessera/recipe.h>

namespace tessera::python {

/// The recipe that a dict describes: its name as "do", and members by Python's keywords, of which None is the default.
/// Arrays are NumPy arrays, which the caller keeps alive, objects of the package's Array, or paths. Throws TypeError
/// for a value of a wrong type and for an unknown keyword.
[[nodiscard]] Recipe recipe_from_python(const pybind11::dict& given);

/// Runs `body`. Errors about a member name its keyword.
template <class Body>
decltype(auto) about_keywords(const Recipe& recipe, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        throw by_name(e, recipe, &Option::keyword);
    }
}

}  // namespace tessera::python
