// Batches of edits, and caches of chunks.
#include <tessera/edit.h>
#include <tessera/error.h>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// The state of tessera.Edit.
class EditHandle {
public:
    EditHandle(ArrayHandle& of, bool keep_old) {
        const Array array = of.array();
        Work work;
        edit_ = Held<Edit>(work.run(
            [&](const IoOptions&) { return std::make_unique<Edit>(array, EditOptions{.keep_old = keep_old}); }));
    }
    EditHandle(GroupHandle& of, bool keep_old) {
        const Group group = of.group();
        Work work;
        edit_ = Held<Edit>(work.run(
            [&](const IoOptions&) { return std::make_unique<Edit>(group, EditOptions{.keep_old = keep_old}); }));
    }
    [[nodiscard]] std::unique_ptr<ArrayHandle> array() { return handle_of(require().array()); }
    [[nodiscard]] std::unique_ptr<ArrayHandle> array_at(const std::string& path) {
        Edit& edit = require();
        Work work;
        return handle_of(work.run([&](const IoOptions&) { return edit.array(path); }));
    }
    std::int64_t commit() {
        Edit& edit = require();
        return Work({}, Length::brief).run([&](const IoOptions&) { return edit.commit(); });
    }
    void close() { edit_.reset(); }

private:
    static std::unique_ptr<ArrayHandle> handle_of(Array array) {
        auto parts = std::make_unique<ArrayParts>();
        parts->array = std::move(array);
        return std::make_unique<ArrayHandle>(std::move(parts), nullptr);
    }
    Edit& require() const {
        if (edit_.inherited()) throw unsupported("a batch of edits belongs to the process that began it");
        if (!edit_.usable()) throw invalid_argument("the batch of edits is closed");
        return *edit_;
    }
    Held<Edit> edit_;
};

std::unique_ptr<ArrayHandle> open_cache(ArrayHandle& of, std::uint64_t budget) {
    const Array array = of.array();
    auto parts = std::make_unique<ArrayParts>();
    Work work;
    auto cache = work.run([&](const IoOptions&) { return std::make_unique<CachedArray>(array, budget); });
    parts->cached = cache.get();
    parts->source = std::move(cache);
    return std::make_unique<ArrayHandle>(std::move(parts), nullptr);
}

void flush(ArrayHandle& handle, const WorkOptions& options) {
    const auto parts = handle.parts();
    CachedArray* const cache = parts->cached;
    if (cache != nullptr) Work(options).run([&](const IoOptions& io) { cache->flush(io); });
}

}  // namespace

void bind_batches(py::module_& module) {
    py::class_<EditHandle>(module, "EditHandle")
        .def(py::init<ArrayHandle&, bool>(), py::arg("of"), py::kw_only(), py::arg("keep_old"))
        .def(py::init<GroupHandle&, bool>(), py::arg("of"), py::kw_only(), py::arg("keep_old"))
        .def("array", &EditHandle::array)
        .def("array_at", &EditHandle::array_at)
        .def("commit", &EditHandle::commit)
        .def("close", &EditHandle::close);
    module.def("open_cache", &open_cache);
    module.def("flush", &flush);
    module.def("close", &ArrayHandle::close);
    module.def("undo", [](GroupHandle& handle) {
        const Group group = handle.group();
        return Work().run([&](const IoOptions&) { return undo(group); });
    });
    module.def("undo", [](ArrayHandle& handle) {
        const Array array = handle.array();
        return Work().run([&](const IoOptions&) { return undo(array); });
    });
}

}  // namespace tessera::python
