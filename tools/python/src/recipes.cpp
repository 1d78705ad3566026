#include "recipes.h"

#include <pybind11/numpy.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/error_text.h>
#include <tessera/part_names.h>

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
    if (py::hasattr(given, "_as_array")) {  // a view
        Ingredient part = ingredient_from(keyword, given.attr("_as_array")());
        part.part_of = py::cast<std::string>(given.attr("_array").attr("path"));
        return part;
    }
    if (py::hasattr(given, "_handle") && py::isinstance<ArrayHandle>(given.attr("_handle"))) {
        const auto parts = py::cast<ArrayHandle&>(given.attr("_handle")).parts();
        return {.path = py::cast<std::string>(given.attr("path")), .array = {parts, &parts->readable()}};
    }
    if (py::isinstance(given, py::module_::import("tessera").attr("Group"))) {
        return {.path = path_from_python(given.attr("path"))};
    }
    if (!is_text(given) && !py::isinstance<py::bytes>(given) && !py::hasattr(given, "__fspath__")) {
        refuse(keyword, "a path, an Array or a NumPy array", given);
    }
    return {.path = path_from_python(py::module_::import("tessera._options").attr("absolute")(given))};
}

/// Reads the members that a dict has by their keywords.
class FromPython {
public:
    /// `unfit`: bits of Only that the recipe is not.
    FromPython(const py::dict& given, unsigned unfit) : given_(given), unfit_(unfit) {}

    template <class Member>
    void operator()(const Option& option, Member& member) const {
        if (option.keyword.empty() || (option.only & unfit_) != 0) return;
        known_.emplace_back(option.keyword);
        const py::str keyword{std::string(option.keyword)};
        if (!given_.contains(keyword)) return;
        const py::object value = given_[keyword];
        if (!value.is_none()) {
            read(option, value, member);
        } else if constexpr (std::is_same_v<Member, std::vector<Value>>) {
            member.emplace_back();  // a fill that is undefined
        } else if constexpr (std::is_same_v<Member, std::optional<ChunkLengths>>) {
            if (option.name == "shards") member.emplace();  // none of them
        }
    }

    void require_known(std::string_view command) const {
        for (const auto& [name, value] : given_) {
            const auto word = py::cast<std::string>(name);
            if (word == "do" || std::ranges::count(known_, word) > 0) continue;
            throw py::type_error(
                fmt::format("{}: unexpected argument '{}'; there are: {}", command, word, fmt::join(known_, ", ")));
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
    static void read(const Option& o, const py::object& value, std::optional<WeightsIngredient>& member) {
        const bool name = is_text(value) && is_weights_name(py::cast<std::string>(value));
        member.emplace();
        static_cast<Ingredient&>(*member) =
            name ? Ingredient{.path = py::cast<std::string>(value)} : ingredient_from(o.keyword, value);
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
    static void read(const Option& o, const py::object& value, std::optional<ChunkLengths>& member) {
        if (py::isinstance<py::bool_>(value)) {
            throw invalid_argument("{}: expected the lengths of a chunk; without them those of the source are kept",
                                   o.keyword);
        }
        member = lengths_from_python(value);
    }
    static void read(const Option& o, const py::object& value, std::optional<GivenLengths>& member) {
        const bool named =
            py::isinstance<py::dict>(value) ||
            (py::isinstance<py::str>(value) && py::cast<std::string>(value).find('=') != std::string::npos);
        if (named) return read_as_value(o, value, member);
        std::optional<ChunkLengths> lengths;
        read(o, value, lengths);
        member = GivenLengths{*std::move(lengths), {}};
    }
    static void read(const Option& o, const py::object& value, std::string& member) {
        const bool fits = is_text(value) || (o.number && (is_whole(value) || py::isinstance<py::float_>(value) ||
                                                          is_list(value) || py::isinstance<py::dict>(value)));
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
    unsigned unfit_;
    mutable std::vector<std::string> known_;
};

/// Patterns and files of several arrays as the arrays that they name.
void name_parts(JoinRecipe& join) {
    std::vector<Ingredient> parts;
    std::vector<std::string> paths;
    for (const Ingredient& part : join.parts) paths.push_back(part.path);
    const bool all_there = std::ranges::none_of(join.parts, [](const auto& part) { return part.array != nullptr; });
    if (all_there && are_data_sets(paths = paths_named(paths, !join.as_given))) {
        join.parts.clear();
        for (std::string& path : paths) join.parts.push_back({.path = std::move(path)});
        return;
    }
    for (Ingredient& part : join.parts) {
        if (part.array) {
            parts.push_back(std::move(part));
            continue;
        }
        for (std::string& path : arrays_named(part.path, !join.as_given)) parts.push_back({.path = std::move(path)});
    }
    join.parts = std::move(parts);
}

}  // namespace

Asked asked_from_python(const py::dict& given) {
    const auto name = py::cast<std::string>(given["do"]);
    Asked asked{recipe_named(name), {}};
    const bool is_copy = std::holds_alternative<CopyRecipe>(asked.recipe.make);
    const FromPython read(given, is_copy                          ? 0
                                 : asked.recipe.view() == nullptr ? only_copies | only_chunks
                                                                  : only_chunks);
    visit_options(asked.recipe, read);
    visit_options(asked.result, read);
    read.require_known(name);
    if (auto* join = std::get_if<JoinRecipe>(&asked.recipe.make)) {
        const py::gil_scoped_release released;  // a server that is asked may run in this process
        name_parts(*join);
    }
    return asked;
}

HierarchyOptions hierarchy_options(const Asked& asked, const std::string& destination, const IoOptions& io,
                                   std::vector<std::string>& notes) {
    require_fitting(asked.recipe, asked.result, destination);
    HierarchyOptions options =
        tessera::hierarchy_options(asked.recipe, asked.result, destination, io,
                                   [&notes](const Note& note) { notes.push_back(advised(note.text, note.advice)); });
    options.arrays.preferred_format = usual_format();
    return options;
}

}  // namespace tessera::python
