#include "recipes.h"

#include <pybind11/numpy.h>

#include <fmt/format.h>

#include <set>
#include <string>

#include <tessera/array_io.h>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

[[noreturn]] void refuse(std::string_view keyword, std::string_view expected, const py::handle& found) {
    throw py::type_error(fmt::format("{}: expected {}, found {}", keyword, expected,
                                     py::cast<std::string>(py::repr(py::type::of(found)))));
}

bool is_list(const py::handle& value) {
    return py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value);
}
bool is_text(const py::handle& value) {
    return py::isinstance<py::str>(value);
}
bool is_whole(const py::handle& value) {
    return PyIndex_Check(value.ptr()) != 0 && !py::isinstance<py::bool_>(value);
}

Ingredient ingredient_from(std::string_view keyword, const py::object& given) {
    if (py::isinstance<py::array>(given)) {
        const auto values = py::reinterpret_borrow<py::array>(given);
        return {.array = view_source(view_to_read(values, dtype_from_numpy(values.dtype())), "a NumPy array")};
    }
    if (py::hasattr(given, "_handle") && py::isinstance<ArrayHandle>(given.attr("_handle"))) {
        const auto parts = py::cast<ArrayHandle&>(given.attr("_handle")).parts();
        return {.path = py::cast<std::string>(given.attr("path")), .array = {parts, &parts->readable()}};
    }
    if (!is_text(given) && !py::isinstance<py::bytes>(given) && !py::hasattr(given, "__fspath__")) {
        refuse(keyword, "a path, an Array or a NumPy array", given);
    }
    return {.path = path_from_python(py::module_::import("tessera._options").attr("absolute")(given))};
}

/// Reads the members that a dict has by their keywords.
class FromPython {
public:
    explicit FromPython(const py::dict& given) : given_(given) {}

    template <class Member>
    void operator()(const Option& option, Member& member) const {
        known_.insert(std::string(option.keyword));
        const py::str keyword{std::string(option.keyword)};
        if (!given_.contains(keyword)) return;
        const py::object value = given_[keyword];
        if (!value.is_none()) read(option, value, member);
    }

    void require_known(std::string_view command) const {
        for (const auto& [name, value] : given_) {
            if (known_.contains(py::cast<std::string>(name))) continue;
            throw py::type_error(fmt::format("{}: unexpected argument '{}'; there are: {}", command,
                                             py::cast<std::string>(name), fmt::join(known_, ", ")));
        }
    }

private:
    static void read(const Option& o, const py::object& value, Ingredient& member) {
        member = ingredient_from(o.keyword, value);
    }
    static void read(const Option& o, const py::object& value, std::optional<Ingredient>& member) {
        const bool word = is_text(value) && std::ranges::count(grouping_words(), py::cast<std::string>(value)) > 0;
        member = word ? Ingredient{.path = py::cast<std::string>(value)} : ingredient_from(o.keyword, value);
    }
    static void read(const Option& o, const py::object& value, std::vector<Ingredient>& member) {
        if (!is_list(value)) refuse(o.keyword, "a list of arrays", value);
        for (const py::handle part : value) {
            member.push_back(ingredient_from(o.keyword, py::reinterpret_borrow<py::object>(part)));
        }
    }
    static void read(const Option& o, const py::object& value, NamedIngredients& member) {
        const py::dict all(value);
        for (const auto& [name, operand] : all) {
            if (!is_text(name)) refuse(o.keyword, "names as keys", name);
            member.emplace_back(py::cast<std::string>(name),
                                ingredient_from(o.keyword, py::reinterpret_borrow<py::object>(operand)));
        }
    }
    static void read(const Option& o, const py::object& value, bool& member) {
        if (!py::isinstance<py::bool_>(value) && !py::hasattr(value, "__bool__")) refuse(o.keyword, "a bool", value);
        member = py::cast<bool>(py::bool_(value));
    }
    static void read(const Option& o, const py::object& value, std::string& member) {
        const bool fits =
            is_text(value) || (o.number && (is_whole(value) || is_list(value) || py::isinstance<py::dict>(value)));
        if (!fits) refuse(o.keyword, o.number ? "numbers or a str" : "a str", value);
        read_as_value(o, value, member);
    }
    static void read(const Option& o, const py::object& value, std::optional<std::string>& member) {
        // A dtype may be anything that NumPy takes for one.
        if (o.name == "dtype") {
            member = dtype_from_argument(value).to_string();
        } else {
            read(o, value, member.emplace());
        }
    }
    template <class Member>
    static void read(const Option& o, const py::object& value, Member& member) {
        read_as_value(o, value, member);
    }
    template <class Member>
    static void read_as_value(const Option& o, const py::object& value, Member& member) {
        try {
            read_member(value_from_python(value), member);
        } catch (const Error& e) {
            throw py::type_error(fmt::format("{}: {}", o.keyword, e.what()));
        }
    }

    const py::dict& given_;
    mutable std::set<std::string> known_{"do"};
};

}  // namespace

Recipe recipe_from_python(const py::dict& given) {
    const auto name = py::cast<std::string>(given["do"]);
    Recipe recipe = recipe_named(name);
    const FromPython read(given);
    visit_options(recipe, read);
    read.require_known(name);
    return recipe;
}

}  // namespace tessera::python
