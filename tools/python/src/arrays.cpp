// The class behind tessera.Array.
#include <pybind11/stl.h>

#include <tessera/array_plan.h>
#include <tessera/chunk_grid.h>
#include <tessera/conventions.h>
#include <tessera/convert.h>
#include <tessera/copy_elements.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/node_facts.h>
#include <tessera/part_source.h>
#include <tessera/shared_source.h>
#include <tessera/turned.h>
#include <tessera/where.h>

#include <algorithm>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// One element as NumPy's object. For variable-length kinds, `bytes` are the content, not a slot.
py::object element_to_python(const DType& dtype, const ElementBytes& bytes) {
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const auto size = static_cast<Py_ssize_t>(bytes.size());
    if (dtype.kind() == Kind::variable_text) {
        return py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(text, size, "surrogateescape"));
    }
    if (dtype.kind() == Kind::variable_bytes) return py::bytes(text, bytes.size());
    const py::array one = empty_array(dtype_to_numpy(dtype), {});
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(const_cast<void*>(one.data())));
    return one[py::tuple()];
}

py::object fill_of(ArrayHandle& handle) {
    if (!handle.parts()->array) return py::none();
    const FillValue fill = handle.array().metadata().fill;
    return fill.bytes ? element_to_python(handle.dtype(), *fill.bytes) : py::none();
}

/// Dimension names; in xarray's attribute if the format has no other place for them.
py::object dims_of(ArrayHandle& handle) {
    const auto parts = handle.parts();
    Value names;
    if (parts->array && parts->array->dialect().dimension_names) {
        names = dimension_names_json(parts->array->metadata().dimension_names);
        if (names.as_array().empty()) return py::none();
    } else if (const Value attributes = parts->readable().attribute_values(); attributes.find(dimensions_attribute)) {
        names = attributes.at(dimensions_attribute);
    }
    if (!names.is_array() || std::ssize(names.as_array()) != parts->readable().info().shape.rank()) return py::none();
    return py::tuple(value_to_python(names));
}

py::object format_of(ArrayHandle& handle) {
    return handle.parts()->array ? py::object(py::str(std::string(handle.array().dialect().name))) : py::none();
}

py::dict layout_of(ArrayHandle& handle) {
    const ArrayInfo info = handle.parts()->readable().info();
    py::dict layout;
    layout["shape"] = shape_to_python(info.shape);
    const bool chunked = !info.chunks.empty() || (handle.parts()->array && info.shape.empty());
    layout["chunks"] = chunked ? py::object(shape_to_python(info.chunks)) : py::none();
    layout["shards"] = info.shards.empty() ? py::none() : py::object(shape_to_python(info.shards));
    layout["order"] = info.order == Order::F ? "F" : "C";
    return layout;
}

/// Reads boxes, given as (start, array) pairs, each into its array.
void read_boxes(ArrayHandle& handle, const py::list& boxes, const WorkOptions& options) {
    const auto parts = handle.parts();
    std::vector<RegionRead> reads;
    for (const py::handle box : boxes) {
        const py::tuple pair = py::reinterpret_borrow<py::tuple>(box);
        const auto out = py::reinterpret_borrow<py::array>(pair[1]);
        const MutableArrayView v = view_to_write(out, handle.dtype_of(out));
        reads.push_back({Region(shape_from_python(pair[0]), v.shape), v});
    }
    Work(options).run([&](const IoOptions& io) {
        if (parts->array) return parts->array->read_many(reads, io);
        for (const RegionRead& read : reads) parts->readable().read_into(read.region, read.out, io);
    });
}

py::object region_to_python(const Region& region) {
    py::tuple key(static_cast<std::size_t>(region.rank()));
    for (int d = 0; d < region.rank(); ++d) {
        key[static_cast<std::size_t>(d)] = py::slice(region.start[d], region.start[d] + region.extent[d], 1);
    }
    return key;
}

/// Calls a Python function with one chunk's part, and copies its changes back. Holds the GIL. The function gets memory
/// owned by Python, which it may keep.
void change_part(const ArrayHandle& handle, const py::object& function, bool where, const Region& place,
                 const MutableArrayView& elements) {
    const DType& dtype = handle.dtype();
    const py::array values = empty_array(handle.numpy_dtype(), elements.shape);
    if (dtype.is_variable()) {
        slots_to_objects(elements, values, handle.items());
    } else {
        copy_elements(elements, view_to_write(values, dtype));
    }
    const py::object result = where ? function(values, region_to_python(place)) : function(values);
    if (!result.is_none()) values[py::ellipsis()] = result;
    if (dtype.is_variable()) {
        copy_elements(objects_to_slots(values, dtype, handle.items()), elements);
    } else {
        copy_elements(view_to_read(values, dtype), elements);
    }
}

void update(ArrayHandle& handle, const Picked& picked, const py::object& function, bool where,
            const WorkOptions& options) {
    Array array = handle.array();
    Work work(options);
    work.run([&](const IoOptions& io) {
        const auto change = [&](const Region& place, const MutableArrayView& elements) {
            const py::gil_scoped_acquire acquired;
            try {
                change_part(handle, function, where, place, elements);
            } catch (py::error_already_set& error) {
                work.keep_error(std::move(error));
                throw cancelled("the function of an update failed");
            }
        };
        array.update(picked.selection, change, io);
    });
}

void resize(ArrayHandle& handle, const py::object& shape, const WorkOptions& options) {
    const Shape lengths = shape_from_python(shape);
    Array array = handle.array();
    const Shape before = array.shape();
    Work(options).run([&](const IoOptions& io) { array.resize(lengths, io); });
    const auto note = undefined_growth_note(array.metadata(), before);
    if (note) warn(array.name() + ": " + *note);
}

/// Chunks in a store, or else what the elements are read from.
const ArraySource& named_source(const ArrayParts& parts) {
    return parts.array ? static_cast<const ArraySource&>(*parts.array) : *parts.source;
}

int axis_of(ArrayHandle& handle, const std::string& word) {
    const auto parts = handle.parts();
    return in_context([] { return "axis"; }, [&] { return find_dimension(word, named_source(*parts)); });
}

/// The rows of a table that meet a condition, as a NumPy array; of any other array all elements, of which those that do
/// not are missing, and which are.
py::object where_in(ArrayHandle& handle, const std::string& condition, const std::string& selection,
                    const WorkOptions& work) {
    const auto parts = handle.parts();
    if (parts->readable().info().dtype.is_variable()) {
        throw unsupported(
            "elements of variable length are not picked into memory: copy(…, where=…) makes a table of them");
    }
    const auto found = Work(work).run([&](const IoOptions& io) {
        auto array = shared_source({parts, &parts->readable()});
        if (!selection.empty()) array = part_source(std::move(array), selection);
        return decoded(rows_or_elements_where(std::move(array), condition, io));
    });
    const ArrayInfo info = found->info();
    const py::array made = empty_array(dtype_to_numpy(info.dtype), info.shape);
    const MutableArrayView view = view_to_write(made, info.dtype);
    Work(work).run([&](const IoOptions& io) { found->read_into(Region::whole(info.shape), view, io); });
    return py::make_tuple(made, info.marks_missing);
}

/// The stored indices along a dimension that is turned.
py::array turned_indices(const Turn& turn, const Selection::Axis& axis) {
    const py::array made = empty_array(py::dtype::of<std::int64_t>(), {axis.count});
    auto* const indices = static_cast<std::int64_t*>(py::array(made).mutable_data());
    for (std::int64_t i = 0; i < axis.count; ++i) indices[i] = turn.stored(axis.start + i * axis.step);
    return made;
}

/// The key of a selection by names and values: integers, slices, and indices of longitudes beyond the array's ends.
py::tuple select(ArrayHandle& handle, const std::string& text, const WorkOptions& options) {
    const auto parts = handle.parts();
    std::unique_ptr<ArraySource> source = shared_source({parts, &named_source(*parts)});
    const Selection selection = Work(options).run([&](const IoOptions&) {
        source = turned_source(std::move(source), text);
        return parse_selection(text, *source);
    });
    const Turn* const turn = turn_of(*source);
    py::tuple key(selection.axes().size());
    for (std::size_t d = 0; d < selection.axes().size(); ++d) {
        const Selection::Axis& axis = selection.axes()[d];
        const std::int64_t stop = axis.start + axis.count * axis.step;
        const auto end = stop < 0 ? py::object(py::none()) : py::object(py::int_(stop));
        if (axis.dropped) {
            key[d] = py::int_(axis.start);
        } else if (turn != nullptr && std::cmp_equal(turn->dimension, d)) {
            key[d] = turned_indices(*turn, axis);
        } else {
            key[d] = py::slice(py::int_(axis.start), end, py::int_(axis.step));
        }
    }
    return key;
}

std::int64_t append(ArrayHandle& handle, const py::array& values, int axis, const WorkOptions& options) {
    Array array = handle.array();
    const bool variable = handle.dtype().is_variable();
    const NDArray slots = variable ? objects_to_slots(values, handle.dtype(), handle.items()) : NDArray();
    const ArrayView from = variable ? slots.view() : view_to_read(values, handle.dtype_of(values));
    return Work(options).run([&](const IoOptions& io) { return array.append(from, axis, io); });
}

void set_dimension_names(ArrayHandle& handle, const py::object& names) {
    std::vector<std::optional<std::string>> given;
    if (!names.is_none()) given = py::cast<decltype(given)>(names);
    Array array = handle.array();
    Work().run([&](const IoOptions&) { array.set_dimension_names(given); });
}

/// Whether a codec turns all dimensions round, which is what order F means.
bool reverses(const CodecConfig& codec, int rank) {
    Value axes = Value::array();
    for (int d = rank; d-- > 0;) axes.push_back(d);
    return codec.name == "transpose" && codec.configuration.at("order") == axes;
}

/// The order of elements, and the chain of codecs without what follows from order and dtype, as `create` takes both.
py::tuple order_and_codec(ArrayHandle& handle) {
    const auto parts = handle.parts();
    const ArrayInfo info = parts->readable().info();
    if (!parts->array) return py::make_tuple(info.order == Order::F ? "F" : "C", py::none());
    std::vector<CodecConfig> codecs = chunk_layout(handle.array().metadata()).codecs;
    const bool fortran = !codecs.empty() && reverses(codecs.front(), info.shape.rank());
    if (fortran) codecs.erase(codecs.begin());
    std::string text;
    bool in_short = true;
    Value json = Value::array();
    for (const CodecConfig& codec : codecs) {
        if (codec.name == "bytes" || codec.name == "vlen-utf8" || codec.name == "vlen-bytes") continue;
        const std::string one = codec_text(codec);
        in_short = in_short && !one.starts_with('{');
        text += (text.empty() ? "" : ",") + one;
        json.push_back(codec_to_json(codec));
    }
    if (text.empty()) text = "none";
    return py::make_tuple(fortran ? "F" : "C", in_short ? text : json.dump());
}

/// The members of `tessera info --json` but the path; of an array file, what is known of it.
py::object facts_of(ArrayHandle& handle, const py::object& path) {
    const auto parts = handle.parts();
    const std::string place = path_from_python(path);
    Value report = Value::object();
    Work().run([&](const IoOptions&) {
        if (parts->array) return add_facts(report, array_facts(*parts->array, {.path = place}));
        const ArrayInfo info = parts->readable().info();
        report.set("kind", "array");
        report.set("format", Value());
        add_elements(report, info.dtype, info.shape);
        report.set("order", info.order == Order::F ? "F" : "C");
        report.set("logical_bytes", byte_count(info.shape, info.dtype.size()));
        report.set("attributes", parts->readable().attribute_values());
    });
    return value_to_python(report);
}

/// The grid of chunks, or with `shards` of shards; of a plain file one chunk.
ChunkGrid grid_of(ArrayHandle& handle, bool shards) {
    const auto parts = handle.parts();
    const ArrayInfo info = parts->readable().info();
    const bool stored = shards || info.shards.empty();
    if (parts->array && stored) return chunk_grid(parts->array->metadata());
    Shape chunks = stored && !info.shards.empty() ? info.shards : info.chunks;
    if (chunks.rank() != info.shape.rank()) chunks = info.shape;
    for (std::int64_t& length : chunks) length = std::max<std::int64_t>(length, 1);
    return {info.shape, chunks};
}

/// Chunk number `n` of the grid, in C order, as slices; with `shards`, of the grid of shards.
py::object chunk_key(ArrayHandle& handle, std::int64_t n, bool shards) {
    const ChunkGrid grid = grid_of(handle, shards);
    return region_to_python(grid.chunk_region(grid.index(n)));
}

std::int64_t chunk_count(ArrayHandle& handle, bool shards) {
    return grid_of(handle, shards).chunk_count();
}

/// The lengths of all chunks along each dimension, cut at the array's edge.
py::tuple chunk_lengths(ArrayHandle& handle, bool shards) {
    constexpr std::int64_t most = 10'000'000;
    const ChunkGrid grid = grid_of(handle, shards);
    py::tuple all(grid.shape().size());
    for (int d = 0; d < grid.shape().rank(); ++d) {
        const std::int64_t count = grid.grid()[d];
        if (count > most)
            throw unsupported("{} chunks along dimension {} are more than the {} of a list", count, d, most);
        py::tuple along(static_cast<std::size_t>(count));
        Index chunk = Index::filled(grid.shape().rank(), 0);
        for (std::int64_t n = 0; n < count; ++n) {
            chunk[d] = n;
            along[static_cast<std::size_t>(n)] = grid.chunk_region(chunk).extent[d];
        }
        all[static_cast<std::size_t>(d)] = along;
    }
    return all;
}

void bind_attributes(py::class_<ArrayHandle>& handle) {
    handle.def("attributes", [](ArrayHandle& h) {
        const auto parts = h.parts();
        return value_to_python(
            Work({}, Length::brief).run([&](const IoOptions&) { return parts->readable().attribute_values(); }));
    });
    handle.def("set_attribute", [](ArrayHandle& h, const std::string& name, const py::object& value) {
        const Value json = value_from_python(value);
        Attributes attributes = h.array().attributes();
        Work().run([&](const IoOptions&) { attributes.set(name, json); });
    });
    handle.def("erase_attribute", [](ArrayHandle& h, const std::string& name) {
        Attributes attributes = h.array().attributes();
        return Work().run([&](const IoOptions&) { return attributes.erase(name); });
    });
    handle.def("replace_attributes", [](ArrayHandle& h, const py::dict& all) {
        const Value json = value_from_python(all);
        Attributes attributes = h.array().attributes();
        Work().run([&](const IoOptions&) { attributes.replace(json); });
    });
}

void bind_facts(py::class_<ArrayHandle>& handle) {
    handle.def_property_readonly("dtype", &ArrayHandle::numpy_dtype);
    handle.def_property_readonly("dtype_text", [](ArrayHandle& h) { return h.dtype().to_string(); });
    handle.def_property_readonly("shape",
                                 [](ArrayHandle& h) { return shape_to_python(h.parts()->readable().info().shape); });
    handle.def_property_readonly("item_size", [](ArrayHandle& h) { return h.dtype().size(); });
    handle.def_property_readonly("name", [](ArrayHandle& h) { return py::bytes(h.parts()->readable().name()); });
    handle.def_property_readonly("closed", &ArrayHandle::closed);
    handle.def_property_readonly("is_chunked", [](ArrayHandle& h) { return h.parts()->array.has_value(); });
    handle.def_property_readonly("is_variable", [](ArrayHandle& h) { return h.dtype().is_variable(); });
    handle.def("layout", &layout_of);
    handle.def("fill_value", &fill_of);
    handle.def("dims", &dims_of);
    handle.def("format", &format_of);
    handle.def("facts", &facts_of);
    handle.def("order_and_codec", &order_and_codec);
    handle.def("chunk_key", &chunk_key);
    handle.def("chunk_count", &chunk_count);
    handle.def("differs", [](ArrayHandle& h) { return !grid_of(h, true).regular(); });
    handle.def("chunk_lengths", &chunk_lengths);
    handle.def("set_dimension_names", &set_dimension_names);
    handle.def("refresh", &ArrayHandle::refresh);
}

}  // namespace

void bind_arrays(py::module_& module) {
    py::class_<WorkOptions>(module, "WorkOptions")
        .def(py::init([](int threads, std::uint64_t max_memory, py::object progress) {
                 return WorkOptions{threads, max_memory, std::move(progress)};
             }),
             py::arg("threads") = 0, py::arg("max_memory") = 0, py::arg("progress") = py::none());
    module.def("usual_memory", &usual_memory);
    module.def("set_usual_memory", &set_usual_memory);
    py::class_<Picked>(module, "Picked")
        .def_readonly("element", &Picked::element)
        .def_property_readonly("shape", [](const Picked& p) { return shape_to_python(p.shape); })
        .def_property_readonly("full_shape", [](const Picked& p) { return shape_to_python(p.selection.full_shape()); })
        .def_property_readonly("axes", [](const Picked& p) { return std::vector<int>(p.axes.begin(), p.axes.end()); });
    py::class_<ArrayHandle> handle(module, "ArrayHandle");
    bind_facts(handle);
    bind_attributes(handle);
    handle.def("pick",
               [](ArrayHandle& h, const py::object& key) { return pick(key, h.parts()->readable().info().shape); });
    handle.def("read", &ArrayHandle::read);
    handle.def("write", &ArrayHandle::write);
    bind_points(handle);
    handle.def("read_boxes", &read_boxes);
    handle.def("update", &update);
    handle.def("resize", &resize);
    handle.def("append", &append);
    handle.def("axis", &axis_of);
    handle.def("where", &where_in);
    handle.def("select", &select);
    module.def("numpy_dtype", [](const py::object& dtype) { return dtype_to_numpy(dtype_from_argument(dtype)); });
}

}  // namespace tessera::python
