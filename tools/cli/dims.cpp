// tessera dims
#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "edit.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct DimsOptions {
    std::string path;
    std::optional<std::string> names;
    bool remove = false;
    bool no_undo = false;
};

/// The names in the metadata or the attribute; null if there are none.
Value names_of(const Array& array) {
    if (array.dialect().dimension_names) {
        const auto names = array.metadata().dimension_names;
        return names.empty() ? Value() : dimension_names_json(names);
    }
    return array.attributes().get(dimensions_attribute).value_or(Value());
}

void print_names(const Array& array, const Value& names) {
    const Shape shape = array.shape();
    if (!names.is_array() || std::cmp_not_equal(names.as_array().size(), shape.rank())) {
        print(names.is_null()
                  ? "no names\n"
                  : printable(fmt::format("not names of {} dimensions: {}", shape.rank(), names.dump())) + "\n");
        return;
    }
    Facts facts;
    for (int d = 0; d < shape.rank(); ++d) {
        const Value& name = names.as_array()[static_cast<std::size_t>(d)];
        facts.add(name.is_string() ? printable(name.as_string()) : "–", grouped(static_cast<std::uint64_t>(shape[d])));
    }
    facts.print();
}

/// Throws for array files, which have no dimension names.
void require_names_possible(const Located& at) {
    if (at.format == nullptr) return;
    throw unsupported("{}: {} files have no names of dimensions; arrays of {} have", at.path, at.format->name,
                      format_choices());
}

int dims(Session& session, const DimsOptions& o, const Located& at) {
    require_names_possible(at);
    const bool changes = o.names || o.remove;
    if (o.names && o.remove) throw invalid_argument("--remove: NAMES were given, too");
    const StoreOptions options = changes ? session.store() : StoreOptions{.read_only = true};
    Array array = at.kind == PathKind::array && !changes ? at.array() : Array::open(o.path, options);
    if (changes) {
        const Undoable keeping = keep_for_undo(session, array, o.no_undo);
        about_path(o.path, [&] {
            array.set_dimension_names(o.remove ? std::vector<std::optional<std::string>>{} : parse_names(*o.names));
        });
        note_stale(session, {o.path});
    }
    const Value names = names_of(array);
    if (session.options().json) {
        Value value = Value::object();
        value.set("path", path_value(o.path));
        value.set("names", names);
        value.set("shape", shape_value(array.shape()));
        print_json(value);
    } else if (!changes) {
        print_names(array, names);
    }
    return exit_done;
}

}  // namespace

Run declare_dims(CLI::App& app) {
    auto o = std::make_shared<DimsOptions>();
    app.add_option("PATH", o->path, "an array")->required()->option_text(" ");
    app.add_option("NAMES", o->names, "one for each dimension: time,y,x (default: show those that there are)")
        ->option_text(" ");
    app.add_flag("--remove", o->remove, "take the names away");
    app.add_flag("--no-undo", o->no_undo, no_undo_text);
    return
        [o](Session& session) { return at_located(o->path, [&](const Located& at) { return dims(session, *o, at); }); };
}

}  // namespace tessera::cli
