// Bytes between Python's objects and the library.
#pragma once

#include <pybind11/pybind11.h>

#include <tessera/buffer.h>
#include <tessera/byte_io.h>

namespace tessera::python {

namespace py = pybind11;

/// The bytes of anything with the buffer protocol.
class Bytes {
public:
    explicit Bytes(const py::object& object) {
        if (PyObject_CheckBuffer(object.ptr()) == 0) {
            PyErr_Format(PyExc_TypeError, "bytes were expected, found %s", Py_TYPE(object.ptr())->tp_name);
            throw py::error_already_set();
        }
        if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
            PyErr_Clear();  // not contiguous
            packed_ = py::reinterpret_steal<py::object>(PyBytes_FromObject(object.ptr()));
            if (!packed_ || PyObject_GetBuffer(packed_.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
                throw py::error_already_set();
            }
        }
    }
    ~Bytes() { PyBuffer_Release(&buffer_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    [[nodiscard]] ByteSpan span() const {
        return {static_cast<const std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
    }

private:
    py::object packed_;
    Py_buffer buffer_ = {};
};

/// A part of some bytes: a pair (start, stop), where a negative start counts from the end and stop may be None; or None
/// for all of them. With the GIL, which reading a source releases.
[[nodiscard]] py::object bytes_in(const ByteSource& source, const py::object& range);
[[nodiscard]] py::object bytes_in(ByteSpan bytes, const py::object& range);

}  // namespace tessera::python
