#include "convert.h"

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tessera::python {

namespace {

DType structure_from_numpy(const py::dtype& dtype) {
    std::vector<Field> fields;
    const py::object described = dtype.attr("fields");
    for (const py::handle name : dtype.attr("names")) {
        const py::tuple entry = described[name];
        Field field;
        field.name = py::cast<std::string>(name);
        field.offset = py::cast<std::int64_t>(entry[1]);
        if (entry.size() > 2 && py::isinstance<py::str>(entry[2])) field.title = py::cast<std::string>(entry[2]);
        auto element = py::reinterpret_borrow<py::dtype>(entry[0]);
        // An array of arrays is one with the dimensions of both.
        for (py::object subtype = element.attr("subdtype"); !subtype.is_none(); subtype = element.attr("subdtype")) {
            const py::tuple pair = subtype;
            for (const std::int64_t length : shape_from_python(pair[1])) field.shape.push_back(length);
            element = py::reinterpret_borrow<py::dtype>(pair[0]);
        }
        field.dtype = dtype_from_numpy(element);
        fields.push_back(std::move(field));
    }
    std::ranges::stable_sort(fields, {}, &Field::offset);
    // Not dtype.itemsize(), which older pybind11 reads where NumPy 1 has it in memory.
    return DType::structure(std::move(fields), py::cast<std::int64_t>(dtype.attr("itemsize")));
}

py::dtype structure_to_numpy(const DType& dtype) {
    py::list names;
    py::list formats;
    py::list offsets;
    py::list titles;
    bool titled = false;
    for (const Field& field : dtype.fields()) {
        names.append(field.name);
        py::object format = dtype_to_numpy(field.dtype);
        if (!field.shape.empty()) format = py::make_tuple(format, shape_to_python(field.shape));
        formats.append(format);
        offsets.append(field.offset);
        titles.append(field.title ? py::object(py::str(*field.title)) : py::object(py::none()));
        titled = titled || field.title.has_value();
    }
    py::dict described;
    described["names"] = names;
    described["formats"] = formats;
    described["offsets"] = offsets;
    described["itemsize"] = dtype.size();
    if (titled) described["titles"] = titles;
    return py::dtype::from_args(described);
}

/// Calls each(pointer) for every element in C order.
template <class Each>
void for_each_element(const py::array& array, const Each& each) {
    const auto* first = static_cast<const char*>(array.data());
    const int rank = static_cast<int>(array.ndim());
    Dims index = Dims::filled(rank, 0);
    for (py::ssize_t n = 0; n < array.size(); ++n) {
        const char* at = first;
        for (int d = 0; d < rank; ++d) at += index[d] * array.strides(d);
        each(at);
        for (int d = rank - 1; d >= 0 && ++index[d] == array.shape(d); --d) index[d] = 0;
    }
}

}  // namespace

DType dtype_from_numpy(const py::dtype& dtype) {
    if (dtype.kind() == 'V' && !dtype.attr("names").is_none()) return structure_from_numpy(dtype);
    return DType::parse(py::cast<std::string>(dtype.attr("str")));
}

DType dtype_from_argument(const py::object& dtype) {
    if (dtype.is(py::type::of(py::str()))) return DType::variable_text();
    if (dtype.is(py::type::of(py::bytes()))) return DType::variable_bytes();
    if (py::isinstance<py::str>(dtype)) {
        const auto name = py::cast<std::string>(dtype);
        for (const char* own : {"bfloat16", "<bfloat16", ">bfloat16", "string", "bytes"}) {
            if (name == own) return DType::parse(name);
        }
    }
    const py::dtype known = py::dtype::from_args(dtype);
    if (known.kind() == 'O' || known.kind() == 'T') return DType::variable_text();
    return dtype_from_numpy(known);
}

py::dtype dtype_to_numpy(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::structure:
            return structure_to_numpy(dtype);
        case Kind::variable_text:
        case Kind::variable_bytes:
        case Kind::object:
            return py::dtype("O");
        case Kind::bfloat16:
            return py::dtype("V2");
        default:
            return py::dtype(dtype.str());
    }
}

py::object text_to_python(std::string_view text) {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

py::object value_to_python(const Value& value) {
    if (value.is_null()) return py::none();
    if (value.is_bool()) return py::bool_(value.as_bool());
    if (value.is_double()) return py::float_(value.as_double());
    if (value.is_string()) return text_to_python(value.as_string());
    if (value.is_array()) {
        py::list list;
        for (const Value& item : value.as_array()) list.append(value_to_python(item));
        return list;
    }
    if (value.is_object()) {
        py::dict dict;
        for (const auto& [name, item] : value.as_object()) dict[text_to_python(name)] = value_to_python(item);
        return dict;
    }
    if (value.is_big_integer()) {
        return py::reinterpret_steal<py::object>(PyLong_FromString(value.as_big_integer().digits.c_str(), nullptr, 10));
    }
    return py::reinterpret_steal<py::object>(PyLong_FromString(value.dump().c_str(), nullptr, 10));
}

namespace {

/// One level of Python's own limit of depth: a list may hold itself.
class Depth {
public:
    Depth() {
        if (Py_EnterRecursiveCall(" in the JSON of an object") != 0) throw py::error_already_set();
    }
    ~Depth() { Py_LeaveRecursiveCall(); }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
};

}  // namespace

bool is_mapping(const py::handle& object) {
    return py::isinstance(object, py::module_::import("collections.abc").attr("Mapping"));
}

Value value_from_python(const py::handle& object) {
    const Depth depth;
    if (object.is_none()) return {};
    if (py::isinstance<py::bool_>(object)) return py::cast<bool>(object);
    if (py::isinstance<py::int_>(object)) return Value::parse(py::cast<std::string>(py::str(object)));
    if (py::isinstance<py::float_>(object)) return py::cast<double>(object);
    if (py::isinstance<py::str>(object)) return py::cast<std::string>(object);
    if (py::isinstance<py::dict>(object)) {
        Value value = Value::object();
        for (const auto& [name, item] : py::reinterpret_borrow<py::dict>(object)) {
            if (!py::isinstance<py::str>(name)) {
                throw py::type_error(
                    fmt::format("the names of attributes, and of members of a JSON object, are str; found {}",
                                py::cast<std::string>(py::repr(name))));
            }
            value.set(py::cast<std::string>(name), value_from_python(item));
        }
        return value;
    }
    if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
        Value value = Value::array();
        for (const py::handle item : object) value.push_back(value_from_python(item));
        return value;
    }
    // NumPy's scalars and arrays.
    if (py::hasattr(object, "tolist")) return value_from_python(object.attr("tolist")());
    if (is_mapping(object)) return value_from_python(py::dict(py::reinterpret_borrow<py::object>(object)));
    throw py::type_error(fmt::format("{} has no JSON", py::cast<std::string>(py::repr(py::type::of(object)))));
}

py::tuple shape_to_python(const Dims& shape) {
    py::tuple tuple(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) tuple[i] = shape[static_cast<int>(i)];
    return tuple;
}

namespace {

/// A value and its type, for errors.
std::string shown(const py::handle& value) {
    return fmt::format("{} ({})", py::cast<std::string>(py::repr(value)), Py_TYPE(value.ptr())->tp_name);
}

std::int64_t length_from_python(const py::handle& length) {
    if (PyIndex_Check(length.ptr()) == 0)
        throw py::type_error("expected an integer for a length, found " + shown(length));
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(length.ptr()));
    if (!number) throw py::error_already_set();
    const long long n = PyLong_AsLongLong(number.ptr());
    if (n == -1 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        throw invalid_argument("the length {} is too large", py::cast<std::string>(py::str(number)));
    }
    return n;
}

}  // namespace

ChunkLengths lengths_from_python(const py::object& lengths) {
    if (py::isinstance<py::str>(lengths)) return parse_chunk_lengths(py::cast<std::string>(lengths));
    bool differ = false;
    if (PySequence_Check(lengths.ptr()) != 0) {
        for (const py::handle along : lengths) differ = differ || PySequence_Check(along.ptr()) != 0;
    }
    if (!differ) return {.shape = shape_from_python(lengths), .edges = {}};
    ChunkLengths given;
    for (const py::handle along : lengths) {
        if (PySequence_Check(along.ptr()) == 0) {
            given.edges.emplace_back(length_from_python(along));
            continue;
        }
        std::vector<ChunkEdges::Run> runs;
        for (const py::handle length : along) {
            const std::int64_t n = length_from_python(length);
            if (!runs.empty() && runs.back().length == n) {
                ++runs.back().count;
            } else {
                runs.push_back({n, 1});
            }
        }
        given.edges.emplace_back(runs);
    }
    return given;
}

Shape shape_from_python(const py::object& shape) {
    Shape lengths;
    if (shape.is_none()) return lengths;
    if (py::isinstance<py::str>(shape)) return parse_shape(py::cast<std::string>(shape));
    const auto add = [&](const py::handle& length) { lengths.push_back(length_from_python(length)); };
    if (PyIndex_Check(shape.ptr()) != 0) {
        add(shape);
    } else if (py::isinstance<py::iterable>(shape) && !py::isinstance<py::bytes>(shape)) {
        for (const py::handle length : shape) add(length);
    } else {
        throw py::type_error("expected an integer or lengths such as (3, 4) for a shape, found " + shown(shape));
    }
    return lengths;
}

std::string path_from_python(const py::object& path) {
    const py::object bytes = py::module_::import("os").attr("fsencode")(path);
    return py::cast<std::string>(bytes);
}

MutableArrayView view_to_write(const py::array& array, const DType& dtype) {
    if (!array.writeable()) throw py::value_error("output array is read-only");
    const ArrayView v = view_to_read(array, dtype);
    return {const_cast<std::byte*>(v.data), v.dtype, v.shape, v.strides, nullptr};
}

ArrayView view_to_read(const py::array& array, const DType& dtype) {
    Shape shape;
    Strides strides;
    for (py::ssize_t d = 0; d < array.ndim(); ++d) {
        shape.push_back(array.shape(d));
        strides.push_back(array.strides(d));
    }
    return {static_cast<const std::byte*>(array.data()), dtype, shape, strides};
}

void slots_to_objects(const ArrayView& slots, const py::array& objects, const std::optional<DType>& items) {
    const py::dtype of_items = items ? dtype_to_numpy(*items) : py::dtype();
    const bool text = slots.dtype.kind() == Kind::variable_text;
    const auto* slot = reinterpret_cast<const VariableSlot*>(slots.data);
    for_each_element(objects, [&](const char* at) {
        const std::string_view element = (slot++)->view();
        const auto size = static_cast<Py_ssize_t>(element.size());
        PyObject* object = nullptr;
        if (items) {
            object = py::array(of_items, {size / of_items.itemsize()}, element.data()).release().ptr();
        } else {
            object = text ? PyUnicode_DecodeUTF8(element.data(), size, "surrogateescape")
                          : PyBytes_FromStringAndSize(element.data(), size);
        }
        if (object == nullptr) throw py::error_already_set();
        auto* const place = reinterpret_cast<PyObject**>(const_cast<char*>(at));
        Py_XDECREF(std::exchange(*place, object));
    });
}

namespace {

/// The bytes of a sequence of one dimension.
py::object items_to_bytes(const py::object& element, const DType& items) {
    static const auto& contiguous = *new py::object(py::module_::import("numpy").attr("ascontiguousarray"));
    const bool is_array = py::isinstance<py::array>(element);
    if (!is_array && !py::isinstance<py::list>(element) && !py::isinstance<py::tuple>(element)) return element;
    const py::array array = contiguous(element, dtype_to_numpy(items));
    if (array.ndim() != 1) {
        throw py::value_error(fmt::format("an element has {} dimensions, expected 1", array.ndim()));
    }
    return array.attr("tobytes")();
}

}  // namespace

NDArray objects_to_slots(const py::array& values, const DType& dtype, const std::optional<DType>& items) {
    // NumPy 2's StringDType has memory of its own kind.
    const py::array objects = values.dtype().kind() == 'T' ? py::array(values.attr("astype")("O")) : values;
    Shape shape;
    for (py::ssize_t d = 0; d < objects.ndim(); ++d) shape.push_back(objects.shape(d));
    NDArray elements(dtype, shape);
    const MutableArrayView v = elements.view();
    auto* slot = reinterpret_cast<VariableSlot*>(v.data);
    const bool text = dtype.kind() == Kind::variable_text;
    for_each_element(objects, [&](const char* at) {
        PyObject* const object = *reinterpret_cast<PyObject* const*>(at);
        auto element = py::reinterpret_borrow<py::object>(object == nullptr ? Py_None : object);
        if (py::isinstance<py::array>(element) && py::reinterpret_borrow<py::array>(element).ndim() == 0) {
            element = element.attr("item")();  // NumPy keeps a 0-d array of objects as an element of its own
        }
        if (items) element = items_to_bytes(element, *items);
        if (text ? !py::isinstance<py::str>(element) : !py::isinstance<py::bytes>(element)) {
            const std::string held = items ? "arrays of " + items->to_string() : text ? "str" : "bytes";
            throw py::type_error(
                fmt::format("an element is {}, the array holds {}", py::cast<std::string>(py::repr(element)), held));
        }
        const py::object bytes = text ? py::reinterpret_steal<py::object>(
                                            PyUnicode_AsEncodedString(element.ptr(), "utf-8", "surrogateescape"))
                                      : element;
        if (!bytes) throw py::error_already_set();
        *slot++ =
            v.arena->add({PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))});
    });
    return elements;
}

py::array empty_array(const py::dtype& dtype, const Shape& shape, bool fortran) {
    // Never destroyed: the interpreter ends before statics are destroyed.
    static const auto& empty = *new py::object(py::module_::import("numpy").attr("empty"));
    return empty(shape_to_python(shape), dtype, fortran ? "F" : "C");
}

}  // namespace tessera::python
