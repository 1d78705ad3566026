// Opening whatever a path names, and making arrays and groups.
#include <pybind11/stl.h>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/array_plan.h>
#include <tessera/codec.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/npy.h>
#include <tessera/part_source.h>
#include <tessera/place.h>
#include <tessera/quantities.h>
#include <tessera/raw_array.h>
#include <tessera/remote_options.h>
#include <tessera/shared_source.h>
#include <tessera/store_kind.h>
#include <tessera/transposed.h>

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert.h"
#include "handle.h"
#include "settings.h"

namespace tessera::python {

namespace {

std::unique_ptr<ArrayParts> chunked(Array array) {
    auto parts = std::make_unique<ArrayParts>();
    parts->array = std::move(array);
    return parts;
}

/// Opens an array file for writing in place.
std::unique_ptr<MappedArray> map_to_write(const ArrayPath& path, const ArrayFileFormat* format) {
    if (format != nullptr && format->name == "npy") {
        return std::make_unique<MappedNpy>(path.path, MappedArray::Mode::read_write);
    }
    if (format != nullptr && format->name == "ra") {
        return std::make_unique<MappedRawArray>(path.path, MappedArray::Mode::read_write);
    }
    throw unsupported("{}: of array files only .npy and .ra are changed in place; mode \"r\" reads this",
                      path.path.string());
}

std::unique_ptr<ArrayParts> open_file_parts(const ArrayPath& path, const ArrayFileFormat* format,
                                            const PlaceOptions& options) {
    auto parts = std::make_unique<ArrayParts>();
    if (!options.read_only) {
        const std::filesystem::path file = real_path(path.path);
        directory_store(file.parent_path(), options.store())->require_unsealed(file.filename().string());
        parts->mapped = map_to_write(path, format);
    }
    parts->source = open_array_file(path);
    return parts;
}

std::unique_ptr<Group> open_group(const std::string& path, const PlaceOptions& options) {
    return at_place(path, options.store(), [](const Place& at) { return std::make_unique<Group>(Group::open(at)); });
}

/// A group where it was found, or where it is now if its directory was replaced meanwhile.
std::unique_ptr<Group> located_group(const Located& at, const std::string& path, const PlaceOptions& options) {
    try {
        return std::make_unique<Group>(Group::open(*at.place));
    } catch (const Error& e) {
        if (e.code() != ErrorCode::not_found) throw;
        return open_group(path, options);
    }
}

/// The thing that a path names.
struct Found {
    std::unique_ptr<ArrayParts> array;
    std::unique_ptr<Group> group;
    bool several = false;              ///< an array file of a format for several arrays, without exactly one
    std::vector<std::string> members;  ///< members of such a file
};

Found find(const std::string& path, const PlaceOptions& options) {
    const Located at = locate(path, options.store());
    // The error for a file that is not there is that of its kind.
    const ArrayFileFormat* const format = at.kind == PathKind::nothing ? named_array_file_format(path) : at.format;
    if (!at.file.member && at.place) {
        if (at.kind == PathKind::array) return {chunked(at.array()), nullptr, false, {}};
        return {nullptr, located_group(at, path, options), false, {}};
    }
    if (!at.file.member) {
        if (format == nullptr) static_cast<void>(find_place(path, options.store()));  // throws, naming what is there
        if (format != nullptr) {
            std::vector<std::string> members = array_members(*format, at.file);
            const bool one = members.size() == 1 || !format->holds_several();
            if (!one) return {nullptr, nullptr, true, std::move(members)};
        }
    }
    return {open_file_parts(at.file, format, options), nullptr, false, {}};
}

/// An ArrayHandle, a GroupHandle, or the list of a file's members.
py::object open_path(const py::object& path, const PlaceOptions& options, const WorkOptions& work) {
    const std::string text = path_from_python(path);
    Found found = Work(work).run([&](const IoOptions&) { return find(text, options); });
    if (found.several) {
        py::list names;
        for (const std::string& member : found.members) names.append(text_to_python(member));
        return names;
    }
    if (found.group) {
        return py::cast(std::make_unique<GroupHandle>(std::move(found.group),
                                                      [text, options] { return open_group(text, options); }));
    }
    return py::cast(
        std::make_unique<ArrayHandle>(std::move(found.array), [text, options] { return find(text, options).array; }));
}

/// An array of a group, with what engines of other programs ask of each.
struct Member {
    std::string name;
    std::unique_ptr<ArrayParts> parts;
    Value attributes;
    Value codecs;
};

/// The arrays directly below a group that can be opened.
std::vector<Member> members_of(const Group& group) {
    std::vector<Member> members;
    for (const Node& node : group.children()) {
        if (node.kind != NodeKind::array) continue;
        try {
            Array array = group.open_array(node.path);
            Value codecs = Value::array();
            for (const CodecConfig& codec : array.metadata().codecs) codecs.push_back(codec_to_json(codec));
            Value attributes = array.attributes().all();
            members.push_back({node.path, chunked(std::move(array)), std::move(attributes), std::move(codecs)});
        } catch (const Error&) {
            continue;  // as Group.arrays() leaves them out
        }
    }
    return members;
}

/// Names, handles, attributes, and codecs as a text of JSON; all in one call, because each has its price.
py::list open_arrays(GroupHandle& handle, const std::string& path, const PlaceOptions& options,
                     const WorkOptions& work) {
    const Group& group = handle.group();
    std::vector<Member> members = Work(work).run([&](const IoOptions&) { return members_of(group); });
    py::list list;
    for (Member& member : members) {
        const std::string place = path_below(path, member.name);
        auto array = std::make_unique<ArrayHandle>(std::move(member.parts),
                                                   [place, options] { return find(place, options).array; });
        list.append(py::make_tuple(text_to_python(member.name), py::cast(std::move(array)),
                                   value_to_python(member.attributes), member.codecs.dump({.ascii = true})));
    }
    return list;
}

/// The dialect of the group around a path; null if there is none. Over the network this takes time: without the GIL.
const Dialect* group_around(const std::string& path, const PlaceOptions& place) {
    return Work().run([&](const IoOptions&) { return format_above(path, place.store()); });
}

py::object create_array(const py::object& path, const py::dict& options, const PlaceOptions& place, bool overwrite) {
    const std::string text = path_from_python(path);
    ArrayOptions wanted = array_options(options);
    settle_format(text, group_around(text, place), wanted);
    auto parts = Work().run([&](const IoOptions&) {
        if (!overwrite) return chunked(Array::create(text, wanted, place.store()));
        return chunked(NewArray(text, wanted, {.overwrite = true, .store = place.store()}, "tessera.create").commit());
    });
    return py::cast(std::make_unique<ArrayHandle>(std::move(parts), [text, place] { return find(text, place).array; }));
}

py::object create_group(const py::object& path, const std::string& format, const py::dict& attributes,
                        const PlaceOptions& place) {
    const std::string text = path_from_python(path);
    const Value values = value_from_python(attributes);
    Work().run([&](const IoOptions&) { Group::create(text, dialect_named(format), values, place.store()); });
    return py::cast(std::make_unique<GroupHandle>([text, place] { return open_group(text, place); }));
}

/// Elements in memory as an array that is only read. `values` must outlive it.
py::object memory_array(const py::array& values) {
    if (values.dtype().kind() == 'O') {
        throw unsupported("elements of any length in memory are no array of Tessera's: tessera.save writes one");
    }
    auto parts = std::make_unique<ArrayParts>();
    parts->source = view_source(view_to_read(values, dtype_from_numpy(values.dtype())), "a NumPy array");
    return py::cast(std::make_unique<ArrayHandle>(std::move(parts), []() -> std::unique_ptr<ArrayParts> {
        throw unsupported("an array in memory is of the process that has it");
    }));
}

/// What a view takes of an open array, as an array that is only read: of structures one field, if it is named; the
/// selection `text`; and the dimensions in the order of `names`, unless these are empty.
py::object part_of_array(ArrayHandle& of, const std::optional<std::string>& field, const std::string& text,
                         const std::vector<std::optional<std::string>>& names) {
    const std::shared_ptr<ArrayParts> whole = of.parts();
    auto parts = std::make_unique<ArrayParts>();
    parts->source = Work({}, Length::brief).run([&](const IoOptions&) {
        auto source = shared_source({whole, &whole->readable()});
        if (field) source = field_source(std::move(source), *field);
        source = part_source(std::move(source), text);
        return names.empty() ? std::move(source) : transposed_source(std::move(source), names);
    });
    return py::cast(std::make_unique<ArrayHandle>(std::move(parts), []() -> std::unique_ptr<ArrayParts> {
        throw unsupported("a part of an array is of the process that has it");
    }));
}

/// A whole array, written from memory.
void save(const py::object& path, const py::array& values, const py::dict& options, const PlaceOptions& place,
          bool overwrite, const WorkOptions& work) {
    const std::string text = path_from_python(path);
    ArrayOptions wanted = array_options(options);
    settle_format(text, group_around(text, place), wanted, true);
    const bool variable = wanted.dtype.is_variable();
    const NDArray slots = variable ? objects_to_slots(values, wanted.dtype) : NDArray();
    const ArrayView v = variable ? slots.view() : view_to_read(values, wanted.dtype);
    Work(work).run([&](const IoOptions& io) {
        NewArray made(text, wanted, {.overwrite = overwrite, .store = place.store()}, "tessera.save");
        made.array().write(Region::whole(v.shape), v, io);
        made.commit();
    });
}

/// An array file, by its extension.
void save_file(const py::object& path, const py::array& values, const py::object& dtype, bool fortran, int deflate,
               bool object_strings, bool overwrite, const WorkOptions& work) {
    const std::string text = path_from_python(path);
    const DType element = dtype_from_argument(dtype);
    const NDArray slots = element.is_variable() ? objects_to_slots(values, element) : NDArray();
    const ArrayView v = element.is_variable() ? slots.view() : view_to_read(values, element);
    Work(work).run([&](const IoOptions& io) {
        const ArrayPath split = split_array_path(text);
        if (!overwrite && std::filesystem::exists(split.path)) {
            throw already_exists("{}: a file is there; overwrite=True replaces it", split.path.string());
        }
        const ArrayFileOptions options{
            .order = fortran ? Order::F : Order::C, .deflate_level = deflate, .object_strings = object_strings};
        const auto source = view_source(v, text);
        const auto converted = convert_for_array_file(split, *source, options, io);
        const ArraySource& from = converted ? *converted : *source;
        const auto sink = create_array_file(split, from.info().dtype, from.info().shape, options);
        copy_array(from, *sink, {.io = io});
    });
}

}  // namespace

std::string usual_format() {
    const std::string chosen = checked_setting("format", [](const auto& s) { static_cast<void>(dialect_named(s)); });
    return chosen.empty() ? "v3" : chosen;
}

std::string usual_codec() {
    return checked_setting("codec", [](const auto& s) { static_cast<void>(parse_codecs(s)); });
}

void settle_format(const std::string& path, const Dialect* around, ArrayOptions& options, bool all_written) {
    if (options.format.empty() && around != nullptr) options.format = around->name;
    const std::string preferred = usual_format();
    const auto named = [&](auto&& body) { return in_context([&] { return path; }, body); };
    const FormatChoice choice = named([&] { return choose_format(options, preferred); });
    options.format = choice.dialect->name;
    // Data without a fill have none: xarray and GDAL would take values that equal it for missing ones.
    if (all_written && !options.fill_value && choice.dialect->fill_is_missing) options.fill_value = Value();
    const auto undefined = options.fill_value
                               ? std::nullopt
                               : undefined_note(*choice.dialect, named([&] { return make_metadata(options); }));
    for (const auto& note : {choice.note, undefined}) {
        if (!note) continue;
        warn(fmt::format("{}: {}", path, advised(note->text, note->advice)));
    }
}

ArrayOptions array_options(const py::dict& options) {
    ArrayOptions made;
    const auto given = [&](const char* name) { return options.contains(name) && !options[name].is_none(); };
    made.shape = shape_from_python(options["shape"]);
    made.dtype = dtype_from_argument(options["dtype"]);
    if (given("chunks")) lengths_from_python(options["chunks"]).give(made.chunks, made.edges);
    if (given("shards")) lengths_from_python(options["shards"]).give(made.shards, made.shard_edges);
    if (options.contains("fill_value")) made.fill_value = value_from_python(options["fill_value"]);
    const std::string usual = usual_codec();
    if (!usual.empty()) made.codec = usual;
    if (given("codec")) made.codec = py::cast<std::string>(options["codec"]);
    if (given("format")) made.format = py::cast<std::string>(options["format"]);
    if (given("structures")) made.structures = py::cast<std::string>(options["structures"]);
    if (given("separator")) made.separator = py::cast<std::string>(options["separator"]);
    if (given("order")) made.order = py::cast<std::string>(options["order"]) == "F" ? Order::F : Order::C;
    if (given("dims")) made.dimension_names = py::cast<decltype(made.dimension_names)>(options["dims"]);
    if (given("attrs")) made.attributes = value_from_python(options["attrs"]);
    return made;
}

namespace {

std::string text_of(const py::handle& value, const std::string& name) {
    if (py::isinstance<py::bool_>(value) || !(py::isinstance<py::str>(value) || py::isinstance<py::int_>(value))) {
        throw invalid_argument("storage_options: {}: expected a text", name);  // without the value, maybe a secret
    }
    return py::cast<std::string>(py::str(value));
}

bool truth_of(const py::handle& value, const std::string& name) {
    if (!py::isinstance<py::bool_>(value)) throw invalid_argument("storage_options: {}: expected True or False", name);
    return py::cast<bool>(value);
}

py::dict dict_of(const py::handle& value, const std::string& name) {
    if (!is_mapping(value)) throw invalid_argument("storage_options: {}: expected a dict", name);
    return {py::reinterpret_borrow<py::object>(value)};
}

void add_storage_option(RemoteOptions& remote, const std::string& name, const py::handle& value);

void add_headers(RemoteOptions& remote, const std::string& name, const py::handle& value) {
    for (const auto& [header, text] : dict_of(value, name)) {
        const std::string line = text_of(header, name) + ": " + text_of(text, name);
        if (line.find_first_of("\r\n") != std::string::npos) {
            throw invalid_argument("storage_options: headers: a header is one line");
        }
        remote.headers.push_back(line);
    }
}

void add_client_options(RemoteOptions& remote, const std::string& name, const py::handle& value) {
    for (const auto& [inner, text] : dict_of(value, name)) {
        const std::string given = text_of(inner, name);
        if (given != "endpoint_url" && given != "region_name" && given != "headers") {
            throw invalid_argument("storage_options: {}: found '{}'; there are endpoint_url, region_name and headers",
                                   name, given);
        }
        add_storage_option(remote, given, text);
    }
}

/// Those of the names that set one text each, as the environment has it.
bool add_setting(RemoteOptions& remote, const std::string& name, const py::handle& value) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> settings{
        {{"key", "AWS_ACCESS_KEY_ID"},
         {"secret", "AWS_SECRET_ACCESS_KEY"},
         {"token", "AWS_SESSION_TOKEN"},
         {"profile", "AWS_PROFILE"},
         {"endpoint_url", "AWS_ENDPOINT_URL_S3"},
         {"endpoint_url", "STORAGE_EMULATOR_HOST"},  // for gs://
         {"region_name", "AWS_REGION"}}};
    bool known = false;
    for (const auto& [option, setting] : settings) {
        if (option != name) continue;
        remote.settings[std::string(setting)] = text_of(value, name);
        known = true;
    }
    if (name == "key") remote.settings.try_emplace("AWS_SESSION_TOKEN");  // the environment's belongs to other keys
    return known;
}

/// The names of s3fs and of fsspec's HTTP file system, and those of Tessera's cache.
void add_storage_option(RemoteOptions& remote, const std::string& name, const py::handle& value) {
    const std::string what = "storage_options: " + name;
    if (value.is_none() || add_setting(remote, name, value)) return;
    if (name == "anon") {
        remote.anonymous = truth_of(value, name);
    } else if (name == "requester_pays") {
        remote.settings["AWS_REQUEST_PAYER"] = truth_of(value, name) ? "requester" : "";
    } else if (name == "headers") {
        add_headers(remote, name, value);
    } else if (name == "client_kwargs") {
        add_client_options(remote, name, value);
    } else if (name == "cache") {
        remote.cache = path_from_python(py::reinterpret_borrow<py::object>(value));
    } else if (name == "cache_size") {
        remote.cache_bytes = parse_bytes(what, text_of(value, name));
    } else if (name == "cache_age") {
        remote.cache_age = parse_duration(what, text_of(value, name));
    } else if (name == "offline") {
        remote.offline = truth_of(value, name);
    } else if (name == "absent") {
        remote.absent_status = parse_absent_status(what, text_of(value, name));
    } else {
        throw invalid_argument(
            "storage_options: there is no '{}'; there are key, secret, token, anon, profile, endpoint_url, "
            "region_name, "
            "requester_pays, client_kwargs, headers, cache, cache_size, cache_age, offline and absent",
            name);
    }
}

std::shared_ptr<const RemoteOptions> remote_from_python(const py::object& options) {
    auto remote = std::make_shared<RemoteOptions>(remote_settings());
    set_remote_options(*remote);  // for what is opened by its path later on
    if (options.is_none()) return nullptr;
    if (!is_mapping(options)) throw py::type_error("storage_options: expected a dict");
    const py::dict given(options);
    if (given.empty()) return nullptr;
    for (const auto& [name, value] : given) add_storage_option(*remote, text_of(name, "a name"), value);
    return remote;
}

/// For the `with` of Python.
struct PlacesOverNetwork {
    std::shared_ptr<const RemoteOptions> options;
    std::optional<RemoteScope> scope;
};

}  // namespace

namespace {

void bind_place_options(py::module_& module) {
    py::class_<PlaceOptions>(module, "PlaceOptions")
        .def(py::init([](bool read_only, std::optional<std::string> durability, bool locks, bool follow_links,
                         bool break_seal, const py::object& storage_options) {
                 const auto check = [](const std::string& name) { static_cast<void>(durability_named(name)); };
                 if (durability) check(*durability);
                 if (!durability) durability = checked_setting("durability", check);
                 if (durability->empty()) durability = "commit";
                 return PlaceOptions{read_only,  *std::move(durability),
                                     locks,      follow_links,
                                     break_seal, remote_from_python(storage_options)};
             }),
             py::arg("read_only"), py::arg("durability") = py::none(), py::arg("locks") = true,
             py::arg("follow_links") = false, py::arg("break_seal") = false, py::arg("storage_options") = py::none())
        .def_readonly("read_only", &PlaceOptions::read_only);
}

}  // namespace

void bind_open(py::module_& module) {
    bind_place_options(module);
    py::class_<PlacesOverNetwork>(module, "RemoteScope")
        .def(py::init([](const py::object& storage_options) {
            auto places = std::make_unique<PlacesOverNetwork>();
            places->options = remote_from_python(storage_options);
            return places;
        }))
        .def("__enter__",
             [](PlacesOverNetwork& places) {
                 if (places.options) places.scope.emplace(places.options);
             })
        .def("__exit__", [](PlacesOverNetwork& places, const py::args&) { places.scope.reset(); });
    module.def("setting", [](const std::string& name) {
        const auto found = setting(name);
        return found ? std::optional(std::pair(found->value, found->from)) : std::nullopt;
    });
    module.def("open_path", &open_path);
    module.def("open_arrays", &open_arrays);
    module.def("memory_array", &memory_array, py::keep_alive<0, 1>());
    module.def("part_of_array", &part_of_array);
    module.def("create_array", &create_array);
    module.def("create_group", &create_group);
    module.def("save", &save);
    module.def("save_file", &save_file);
}

}  // namespace tessera::python
