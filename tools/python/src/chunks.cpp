// The state of stored chunks, and their places, for programs that decode them themselves.
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

/// A sum that changes with the array, and the time of the last change in nanoseconds since 1970.
std::pair<std::string, std::int64_t> state(ArrayHandle& handle) {
    const Chunks chunks(handle);
    ChunkBytes::State found = Work().run([&](const IoOptions&) { return chunks->state(); });
    return {std::move(found.sum), found.newest};
}

/// And what was left out, if `skip_bad` lets it.
std::pair<py::object, std::vector<std::string>> references_of(const py::object& path, bool skip_bad) {
    const std::string text = path_from_python(path);
    std::vector<std::string> skipped;
    const auto skip = [&](const Error& e) { skipped.emplace_back(e.what()); };
    const Value found =
        Work().run([&](const IoOptions&) { return skip_bad ? references(text, skip) : references(text); });
    return {value_to_python(found), std::move(skipped)};
}

}  // namespace

void bind_chunks(py::module_& module) {
    module.def("state", &state);
    module.def("references", &references_of);
}

}  // namespace tessera::python
