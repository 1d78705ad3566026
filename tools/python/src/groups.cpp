// The class behind tessera.Group.
#include <pybind11/stl.h>

#include <tessera/append_group.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/node_facts.h>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// (path, "array" or "group", format or None)
py::list nodes_to_python(const std::vector<Node>& nodes) {
    py::list list;
    for (const Node& node : nodes) {
        py::object format = py::none();
        if (node.dialect != nullptr) format = py::str(std::string(node.dialect->name));
        const py::object path = value_to_python(Value(node.path));
        list.append(py::make_tuple(path, node.kind == NodeKind::array ? "array" : "group", format));
    }
    return list;
}

py::list nodes(GroupHandle& handle, bool all) {
    const Group& group = handle.group();
    return nodes_to_python(Work().run([&](const IoOptions&) { return all ? group.nodes() : group.children(); }));
}

void remove(GroupHandle& handle, const py::object& path, bool recursive, bool force) {
    Group& group = handle.group();
    const std::string text = path_from_python(path);
    Work().run([&](const IoOptions&) { group.remove(text, {.recursive = recursive, .force = force}); });
}

void move(GroupHandle& handle, const py::object& from, const py::object& to) {
    Group& group = handle.group();
    const std::string old_path = path_from_python(from);
    const std::string new_path = path_from_python(to);
    Work().run([&](const IoOptions&) { group.move(old_path, new_path); });
}

void create_array_in(GroupHandle& handle, const py::object& path, const py::dict& options) {
    Group& group = handle.group();
    const std::string text = path_from_python(path);
    ArrayOptions wanted = array_options(options);
    settle_format(text, group.dialect(), wanted);
    Work().run([&](const IoOptions&) { group.create_array(text, wanted); });
}

void create_group_in(GroupHandle& handle, const py::object& path, const py::dict& attributes,
                     const std::string& format) {
    Group& group = handle.group();
    const std::string text = path_from_python(path);
    const Value values = value_from_python(attributes);
    Work().run([&](const IoOptions&) { group.create_group(text, values, format); });
}

/// Returns the length of the dimension before.
std::int64_t append_from(GroupHandle& handle, const py::object& source, const std::string& dimension,
                         const std::optional<std::string>& cast, bool skip_old, bool keep_old,
                         const WorkOptions& options) {
    const Group& group = handle.group();
    std::vector<std::string> paths;
    for (const py::handle path : py::list(source)) {
        paths.push_back(path_from_python(py::reinterpret_borrow<py::object>(path)));
    }
    AppendGroupOptions how{.skip_old = skip_old, .edit = {.keep_old = keep_old}};
    if (cast) how.cast = parse_cast(*cast);
    const std::vector<AppendedArray> grown = Work(options).run([&](const IoOptions& io) {
        how.io = io;
        std::vector<Located> sources;
        for (const std::string& path : paths) sources.push_back(locate(path));
        return append_group(group, sources, dimension, how);
    });
    return grown.front().before[grown.front().axis];
}

py::dict consolidated(GroupHandle& handle) {
    const Group& group = handle.group();
    const ConsolidatedState state = Work().run([&](const IoOptions&) { return group.consolidated_state(); });
    py::dict facts;
    facts["consolidated"] = std::string(state_name(state));
    py::list stale;
    for (const std::string& path : state.stale) stale.append(value_to_python(Value(path)));
    facts["stale"] = stale;
    return facts;
}

void bind_attributes(py::class_<GroupHandle>& handle) {
    handle.def("attributes", [](GroupHandle& h) {
        const Group& group = h.group();
        return value_to_python(Work({}, Length::brief).run([&](const IoOptions&) { return group.attributes().all(); }));
    });
    handle.def("set_attribute", [](GroupHandle& h, const std::string& name, const py::object& value) {
        const Value json = value_from_python(value);
        Attributes attributes = h.group().attributes();
        Work().run([&](const IoOptions&) { attributes.set(name, json); });
    });
    handle.def("erase_attribute", [](GroupHandle& h, const std::string& name) {
        Attributes attributes = h.group().attributes();
        return Work().run([&](const IoOptions&) { return attributes.erase(name); });
    });
    handle.def("replace_attributes", [](GroupHandle& h, const py::dict& all) {
        const Value json = value_from_python(all);
        Attributes attributes = h.group().attributes();
        Work().run([&](const IoOptions&) { attributes.replace(json); });
    });
}

}  // namespace

void bind_groups(py::module_& module) {
    py::class_<GroupHandle> handle(module, "GroupHandle");
    bind_attributes(handle);
    handle.def("close", &GroupHandle::close);
    handle.def_property_readonly("closed", &GroupHandle::closed);
    handle.def("nodes", &nodes);
    handle.def("remove", &remove);
    handle.def("move", &move);
    handle.def("append", &append_from);
    handle.def("create_array", &create_array_in);
    handle.def("create_group", &create_group_in);
    handle.def("consolidated", &consolidated);
    handle.def("facts", [](GroupHandle& h) {
        const Group& group = h.group();
        Value report{{"format", Value()}};
        Work().run([&](const IoOptions&) { add_facts(report, group_facts(group)); });
        return value_to_python(report);
    });
    handle.def("consolidate", [](GroupHandle& h) {
        Group& group = h.group();
        Work().run([&](const IoOptions&) { group.consolidate(); });
    });
    handle.def("format", [](GroupHandle& h) -> py::object {
        const Dialect* const dialect = h.group().dialect();
        return dialect == nullptr ? py::none() : py::object(py::str(std::string(dialect->name)));
    });
}

}  // namespace tessera::python
