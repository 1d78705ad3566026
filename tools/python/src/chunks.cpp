// Stored chunks and their places, for programs that decode them themselves.
#include <pybind11/stl.h>

#include <tessera/error.h>
#include <tessera/references.h>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// The chunks of an array; keeps it alive.
class Chunks {
public:
    explicit Chunks(ArrayHandle& handle) : parts_(handle.parts()) {
        if (!parts_->array) throw unsupported(parts_->readable().name() + ": has no chunks");
        ArrayParts& parts = *parts_;
        std::call_once(parts.chunks_made, [&] { parts.chunks.emplace(*parts.array); });
    }
    const ChunkBytes* operator->() const { return &*parts_->chunks; }

private:
    std::shared_ptr<ArrayParts> parts_;
};

py::bytes bytes_of(const Buffer& buffer) {
    return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

/// The Zarr v2 `.zarray` of the stored chunks; None if v2 cannot express them.
py::object zarray(ArrayHandle& handle) {
    if (!handle.parts()->array) return py::none();
    const Chunks chunks(handle);
    return chunks->zarray() ? value_to_python(*chunks->zarray()) : py::none();
}

/// The bytes of a chunk; None if it is absent and reads as the fill, unless `always`.
py::object chunk_bytes(ArrayHandle& handle, const py::object& index, bool always) {
    const Chunks chunks(handle);
    const Index chunk = shape_from_python(index);
    Buffer bytes;
    const bool found = Work({}, Length::brief).run([&](const IoOptions&) {
        if (chunks->read(chunk, bytes)) return true;
        if (chunks->may_be_absent() && !always) return false;
        bytes = chunks->absent();
        return true;
    });
    return found ? py::object(bytes_of(bytes)) : py::object(py::none());
}

/// A sum that changes with the array, and the time of the last change in nanoseconds since 1970.
std::pair<std::string, std::int64_t> state(ArrayHandle& handle) {
    const Chunks chunks(handle);
    ChunkBytes::State found = Work().run([&](const IoOptions&) { return chunks->state(); });
    return {std::move(found.sum), found.newest};
}

py::object references_of(const py::object& path) {
    const std::string text = path_from_python(path);
    return value_to_python(Work().run([&](const IoOptions&) { return references(text); }));
}

}  // namespace

void bind_chunks(py::module_& module) {
    module.def("zarray", &zarray);
    module.def("chunk_bytes", &chunk_bytes);
    module.def("state", &state);
    module.def("references", &references_of);
}

}  // namespace tessera::python
