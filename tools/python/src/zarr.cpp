// What tessera.zarr calls: arrays as zarr-python shows them, and the batches of its codec pipeline.
#include <pybind11/stl.h>

#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/zarr_array.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "bytes.h"
#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

// ---- arrays as keys and values

/// An array in a format of Zarr; of a forked child its own.
class ZarrKeys {
public:
    ZarrKeys(ArrayHandle& handle, int format)
        : handle_(handle), format_(format == 2 ? ZarrFormat::v2 : ZarrFormat::v3) {
        static_cast<void>(array());
    }

    [[nodiscard]] std::shared_ptr<const ZarrArray> array() {
        if (!made_.usable()) made_ = Held<Made>(make());
        const auto made = made_.share();
        return {made, &made->array};
    }
    py::object get(const std::string& key, const py::object& range) {
        const auto from = array();
        const auto index = from->index(key);
        if (!index) return py::none();
        const auto value = Work({}, Length::brief).run([&](const IoOptions& io) { return from->read(*index, io); });
        if (!value) return py::none();
        if (value->source) return bytes_in(*value->source, range);
        return bytes_in(value->bytes.span(), range);
    }
    bool contains(const std::string& key) {
        const auto from = array();
        const auto index = from->index(key);
        return index && Work({}, Length::brief).run([&](const IoOptions&) { return from->contains(*index); });
    }
    /// The keys of the values that are there, for listings.
    std::vector<std::string> stored() {
        const auto from = array();
        return Work().run([&](const IoOptions&) {
            std::vector<std::string> keys;
            const ChunkGrid& grid = from->grid();
            for (std::int64_t n = 0; n < grid.chunk_count(); ++n) {
                const Index index = grid.index(n);
                if (from->contains(index)) keys.push_back(from->keys().key(index));
            }
            return keys;
        });
    }

private:
    /// Keeps what the view reads alive.
    struct Made {
        Made(std::shared_ptr<ArrayParts> p, ZarrFormat format)
            : parts(std::move(p)),
              array(parts->array
                        ? ZarrArray(*parts->array, format, true)
                        : ZarrArray(std::shared_ptr<const ArraySource>(parts, &parts->readable()), format, true)) {}
        std::shared_ptr<ArrayParts> parts;
        ZarrArray array;
    };
    [[nodiscard]] std::unique_ptr<Made> make() {
        auto parts = handle_.parts();
        return Work({}, Length::brief).run([&](const IoOptions&) {
            return std::make_unique<Made>(std::move(parts), format_);
        });
    }

    ArrayHandle& handle_;  // kept alive by Python
    ZarrFormat format_;
    Held<Made> made_;
};

// ---- batches

/// What one item of a batch picks along one dimension of the array, and where the result has it.
struct PickedAxis {
    std::int64_t start = 0;
    std::int64_t step = 1;
    std::int64_t count = 1;
    std::int64_t out = 0;
    bool dropped = false;

    [[nodiscard]] std::int64_t last() const { return start + (count - 1) * step; }
    /// Where the whole selection would begin: the same for all items that are parts of one.
    [[nodiscard]] std::int64_t anchor() const { return start - out * step; }
};
using PickedItem = std::vector<PickedAxis>;

/// A slice or an integer within a chunk that begins at `base`; false for anything else.
bool read_axis(const py::handle& item, std::int64_t base, std::int64_t length, PickedAxis& axis) {
    if (PySlice_Check(item.ptr()) != 0) {
        Py_ssize_t start = 0;
        Py_ssize_t stop = 0;
        Py_ssize_t step = 0;
        if (PySlice_Unpack(item.ptr(), &start, &stop, &step) < 0) throw py::error_already_set();
        const Py_ssize_t count = PySlice_AdjustIndices(length, &start, &stop, step);
        if (step < 1) return false;
        axis = {.start = base + start, .step = step, .count = count};
        return true;
    }
    if (PyLong_Check(item.ptr()) == 0 && (PyIndex_Check(item.ptr()) == 0 || py::isinstance<py::array>(item))) {
        return false;
    }
    const Py_ssize_t index = PyNumber_AsSsize_t(item.ptr(), PyExc_IndexError);
    if (index == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    if (index < 0) return false;
    axis = {.start = base + index, .step = 1, .count = 1, .out = 0, .dropped = true};
    return true;
}

py::tuple as_tuple(const py::handle& selection) {
    return PyTuple_Check(selection.ptr()) != 0 ? py::reinterpret_borrow<py::tuple>(selection)
                                               : py::make_tuple(selection);
}

/// Reads (byte getter, spec, chunk selection, out selection, …); false if it is not made of slices and integers.
bool read_item(const py::handle& item, const ArrayMetadata& m, std::size_t prefix,
               const std::optional<py::tuple>& out_shape, PickedItem& picked) {
    const auto fields = py::reinterpret_borrow<py::tuple>(item);
    const py::object path = fields[0].attr("path");
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(path.ptr(), &size);
    if (text == nullptr) throw py::error_already_set();
    const std::string_view key(text, static_cast<std::size_t>(size));
    const int rank = m.shape.rank();
    const auto index = m.keys.parse(key.substr(std::min(prefix, key.size())), rank);
    const py::tuple chunk = as_tuple(fields[2]);
    const py::tuple out = as_tuple(fields[3]);
    if (!index || chunk.size() != static_cast<std::size_t>(rank)) return false;
    picked.resize(static_cast<std::size_t>(rank));
    std::size_t n = 0;
    for (int d = 0; d < rank; ++d) {
        PickedAxis& axis = picked[static_cast<std::size_t>(d)];
        if (!read_axis(chunk[static_cast<std::size_t>(d)], (*index)[d] * m.chunks[d], m.chunks[d], axis)) return false;
        if (axis.dropped) continue;
        PickedAxis place;
        if (n >= out.size() || (out_shape && n >= out_shape->size())) return false;
        const std::int64_t length = out_shape ? py::cast<std::int64_t>((*out_shape)[n]) : PY_SSIZE_T_MAX;
        if (!read_axis(out[n], 0, length, place)) return false;
        if (place.dropped || place.step != 1 || place.count != axis.count) return false;
        axis.out = place.start;
        ++n;
    }
    return n == out.size() && (!out_shape || n == out_shape->size());
}

/// One selection that consists of all the items; nullopt if they are not the parts of one.
std::optional<PickedItem> merged(const std::vector<PickedItem>& items) {
    PickedItem whole = items.front();
    std::int64_t elements = 0;
    for (const PickedItem& item : items) {
        std::int64_t count = 1;
        for (std::size_t d = 0; d < whole.size(); ++d) {
            const PickedAxis& axis = item[d];
            PickedAxis& all = whole[d];
            if (axis.dropped != all.dropped || axis.step != all.step || axis.anchor() != all.anchor()) return {};
            const std::int64_t end = std::max(all.out + all.count, axis.out + axis.count);
            if (axis.out < all.out) {
                all.start = axis.start;
                all.out = axis.out;
            }
            all.count = end - all.out;
            count *= axis.count;
        }
        elements += count;
    }
    std::int64_t box = 1;
    for (const PickedAxis& axis : whole) box *= axis.count;
    if (box != elements) return {};
    return whole;
}

/// The part of an array, and where the result has it: a key, or None for all of it.
py::tuple part_of(const PickedItem& item, const std::optional<py::tuple>& out_shape) {
    Picked picked;
    std::vector<Selection::Axis> axes;
    py::tuple key(out_shape ? out_shape->size() : 0);
    bool all = true;
    std::size_t n = 0;
    for (const PickedAxis& axis : item) {
        if (!axis.dropped) {
            picked.axes.push_back(static_cast<std::int8_t>(axes.size()));
            picked.shape.push_back(axis.count);
            if (out_shape) {
                all = all && axis.out == 0 && axis.count == py::cast<std::int64_t>((*out_shape)[n]);
                key[n++] = py::slice(axis.out, axis.out + axis.count, 1);
            }
        }
        axes.push_back({.start = axis.start,
                        .step = axis.count > 1 ? axis.step : 1,
                        .count = axis.count,
                        .dropped = axis.dropped});
    }
    picked.element = false;
    picked.selection = Selection(std::move(axes));
    return py::make_tuple(py::cast(std::move(picked)), all ? py::object(py::none()) : py::object(key));
}

/// The parts of an array that a batch of zarr's codec pipeline picks by slices and integers: (Picked, key) pairs, one
/// for all items where possible. None if there is anything else among them. `prefix`: the length of the array's path in
/// the keys. Without `out_shape` all elements of the result are one value.
py::object batch_parts(ArrayHandle& handle, const py::list& batch, std::size_t prefix,
                       const std::optional<py::tuple>& out_shape) {
    Array array = handle.array();
    ArrayMetadata m = array.metadata();
    std::vector<PickedItem> items;
    items.reserve(batch.size());
    bool beyond = false;
    for (const py::handle item : batch) {
        PickedItem picked;
        if (!read_item(item, m, prefix, out_shape, picked)) return py::none();
        const bool empty = std::ranges::any_of(picked, [](const PickedAxis& axis) { return axis.count == 0; });
        for (std::size_t d = 0; d < picked.size(); ++d) {
            beyond = beyond || picked[d].last() >= m.shape[static_cast<int>(d)];
        }
        if (!empty) items.push_back(std::move(picked));
    }
    if (beyond) array.refresh();  // zarr has resized it meanwhile
    py::list parts;
    if (items.empty()) return parts;
    if (auto whole = merged(items)) items = {*std::move(whole)};
    for (const PickedItem& item : items) parts.append(part_of(item, out_shape));
    return parts;
}

/// Where the chunk of a key begins in the array; None if the key names no chunk.
py::object chunk_start(ArrayHandle& handle, const std::string& key) {
    const ArrayMetadata m = handle.array().metadata();
    auto index = m.keys.parse(key, m.shape.rank());
    if (!index) return py::none();
    for (int d = 0; d < index->rank(); ++d) (*index)[d] *= m.chunks[d];
    return shape_to_python(*index);
}

/// An array in a directory, below the folder of a store.
py::object open_below(const py::object& root, const std::string& prefix, const PlaceOptions& options) {
    const std::string folder = path_from_python(root);
    const auto open = [folder, prefix, options] {
        auto parts = std::make_unique<ArrayParts>();
        parts->array = Array::open({directory_store(folder, options.store()), prefix});
        return parts;
    };
    auto parts = Work({}, Length::brief).run([&](const IoOptions&) { return open(); });
    return py::cast(std::make_unique<ArrayHandle>(std::move(parts), open));
}

/// Values of one array that are encoded or decoded in memory, for stores that only Python reaches.
class Stage {
public:
    Stage(const std::string& name, const py::bytes& document) : store_(memory_store()) {
        const std::string_view bytes = document;
        store_->put(name, std::as_bytes(std::span(bytes)));
    }
    py::object handle() {
        auto parts = std::make_unique<ArrayParts>();
        parts->array = Array::open(store_);
        return py::cast(std::make_unique<ArrayHandle>(std::move(parts), nullptr));
    }
    void put(const std::string& key, const py::object& value) {
        const Bytes bytes(value);
        store_->put(key, bytes.span());
    }
    py::object get(const std::string& key) {
        const auto value = store_->open(key);
        return value == nullptr ? py::object(py::none()) : bytes_in(*value, py::none());
    }

private:
    std::shared_ptr<KeyValueStore> store_;
};

/// The lock of a chunk in a directory, for who writes it by other means: a context manager. One thread enters and
/// leaves it.
class ChunkLock {
public:
    ChunkLock(const py::object& root, std::string prefix, std::uint64_t chunk, const PlaceOptions& options)
        : store_(directory_store(path_from_python(root), options.store())), prefix_(std::move(prefix)), chunk_(chunk) {}
    void enter() {
        Work({}, Length::brief).run([&](const IoOptions&) {
            shape_ = store_->lock(prefix_, 0, LockMode::shared);
            store_->require_unsealed(prefix_);
            lock_ = store_->lock(prefix_, chunk_ + 1, LockMode::exclusive);
        });
    }
    void leave() {
        Work({}, Length::brief).run([&](const IoOptions&) {
            lock_.unlock();
            shape_.unlock();
        });
    }

private:
    std::shared_ptr<KeyValueStore> store_;
    std::string prefix_;
    std::uint64_t chunk_;
    StoreLock shape_;
    StoreLock lock_;
};

}  // namespace

void bind_zarr(py::module_& module) {
    py::class_<ZarrKeys>(module, "ZarrKeys")
        .def(py::init<ArrayHandle&, int>(), py::keep_alive<1, 2>())
        .def("document", [](ZarrKeys& keys) { return value_to_python(keys.array()->document()); })
        .def("attributes", [](ZarrKeys& keys) { return value_to_python(keys.array()->attributes()); })
        .def("get", &ZarrKeys::get, py::arg("key"), py::arg("range") = py::none())
        .def("contains", &ZarrKeys::contains)
        .def("is_chunk", [](ZarrKeys& keys, const std::string& key) { return keys.array()->index(key).has_value(); })
        .def("stored", &ZarrKeys::stored);
    py::class_<Stage>(module, "Stage")
        .def(py::init<const std::string&, const py::bytes&>())
        .def("handle", &Stage::handle)
        .def("put", &Stage::put)
        .def("get", &Stage::get);
    py::class_<ChunkLock>(module, "ChunkLock")
        .def(py::init<const py::object&, std::string, std::uint64_t, const PlaceOptions&>())
        .def("__enter__", &ChunkLock::enter)
        .def("__exit__", [](ChunkLock& lock, const py::args&) { lock.leave(); });
    module.def("open_below", &open_below);
    module.def("batch_parts", &batch_parts);
    module.def("chunk_start", &chunk_start);
    module.def("store_fill", [](ArrayHandle& handle) { handle.array().store_fill(); });
}

}  // namespace tessera::python
