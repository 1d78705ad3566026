// Columns in memory as Arrow's C data interface hands them to other libraries.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "handle.h"

// As its specification has them, with the names that it gives.
extern "C" {
struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};
struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};
}

namespace tessera::python {

namespace {

constexpr std::int64_t nullable = 2;

/// What _arrow.py makes of elements: format, name, length, number of nulls, buffers (None or bytes of NumPy), children.
struct Column {
    explicit Column(const py::tuple& made)
        : format(made[0].cast<std::string>()),
          name(made[1].cast<std::string>()),
          length(made[2].cast<std::int64_t>()),
          nulls(made[3].cast<std::int64_t>()),
          buffers(made[4].cast<std::vector<py::object>>()),
          children(made[5].cast<std::vector<py::tuple>>()) {}

    std::string format, name;
    std::int64_t length, nulls;
    std::vector<py::object> buffers;
    std::vector<py::tuple> children;
};

/// The children of a struct, which release what was not moved out of them.
template <class Struct>
struct Children {
    std::vector<std::unique_ptr<Struct>> owned;
    std::vector<Struct*> pointers;

    Struct& add() {
        pointers.push_back(owned.emplace_back(std::make_unique<Struct>()).get());
        return *pointers.back();
    }
    Children() = default;
    Children(const Children&) = delete;
    Children& operator=(const Children&) = delete;
    ~Children() {
        for (Struct* const child : pointers) {
            if (child->release != nullptr) child->release(child);
        }
    }
};

struct SchemaHeld {
    std::string format, name;
    Children<ArrowSchema> children;
};

struct ArrayHeld {
    std::vector<py::object> kept;
    std::vector<const void*> buffers;
    Children<ArrowArray> children;
};

void release_schema(ArrowSchema* schema) {
    const std::unique_ptr<SchemaHeld> held(static_cast<SchemaHeld*>(schema->private_data));
    schema->release = nullptr;
}

/// Any thread may call it.
void release_array(ArrowArray* array) {
    const py::gil_scoped_acquire gil;
    const std::unique_ptr<ArrayHeld> held(static_cast<ArrayHeld*>(array->private_data));
    array->release = nullptr;
}

void fill(ArrowSchema& schema, const Column& column) {
    auto held = std::make_unique<SchemaHeld>();
    held->format = column.format;
    held->name = column.name;
    for (const py::tuple& child : column.children) fill(held->children.add(), Column(child));
    schema = {.format = held->format.c_str(),
              .name = held->name.c_str(),
              .metadata = nullptr,
              .flags = nullable,
              .n_children = std::ssize(held->children.pointers),
              .children = held->children.pointers.data(),
              .dictionary = nullptr,
              .release = release_schema,
              .private_data = nullptr};
    schema.private_data = held.release();
}

void fill(ArrowArray& array, const Column& column) {
    auto held = std::make_unique<ArrayHeld>();
    for (const py::object& buffer : column.buffers) {
        held->buffers.push_back(buffer.is_none() ? nullptr : buffer.cast<py::array>().data());
        held->kept.push_back(buffer);
    }
    for (const py::tuple& child : column.children) fill(held->children.add(), Column(child));
    array = {.length = column.length,
             .null_count = column.nulls,
             .offset = 0,
             .n_buffers = std::ssize(held->buffers),
             .n_children = std::ssize(held->children.pointers),
             .buffers = held->buffers.data(),
             .children = held->children.pointers.data(),
             .dictionary = nullptr,
             .release = release_array,
             .private_data = nullptr};
    array.private_data = held.release();
}

/// A capsule of a struct, which is released unless somebody took it over.
template <class Struct>
py::capsule capsule_of(const Column& column, const char* name) {
    auto made = std::make_unique<Struct>();
    fill(*made, column);
    return py::capsule(made.release(), name, [](PyObject* capsule) {
        const char* const own = PyCapsule_GetName(capsule);
        const std::unique_ptr<Struct> kept(static_cast<Struct*>(PyCapsule_GetPointer(capsule, own)));
        if (kept && kept->release != nullptr) kept->release(kept.get());
    });
}

py::tuple arrow_capsules(const py::tuple& made) {
    const Column column(made);
    return py::make_tuple(capsule_of<ArrowSchema>(column, "arrow_schema"),
                          capsule_of<ArrowArray>(column, "arrow_array"));
}

}  // namespace

void bind_arrow(py::module_& module) {
    module.def("arrow_capsules", &arrow_capsules);
}

}  // namespace tessera::python
