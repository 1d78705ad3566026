// The class behind tessera.KeyStore: keys and values of a directory, each value replaced as a whole.
#include <pybind11/stl.h>

#include <tessera/key_value_store.h>

#include <fmt/format.h>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// The bytes of anything with the buffer protocol.
class Bytes {
public:
    explicit Bytes(const py::object& object) {
        if (PyObject_CheckBuffer(object.ptr()) == 0) {
            throw py::type_error(fmt::format("a value is bytes or another buffer, found {}",
                                             py::cast<std::string>(py::repr(py::type::of(object)))));
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

struct OpenStore {
    std::shared_ptr<KeyValueStore> store;
};

class KeyStoreHandle {
public:
    KeyStoreHandle(const py::object& path, PlaceOptions options)
        : path_(path_from_python(path)), options_(std::move(options)), store_(open()) {}

    /// This process's store: a forked child reopens the directory.
    [[nodiscard]] std::shared_ptr<KeyValueStore> store() {
        if (store_.inherited()) store_ = Held<OpenStore>(open());
        return store_->store;
    }

    py::object get(const std::string& key) {
        const auto from = store();
        Buffer value;
        const bool found = Work({}, Length::brief).run([&](const IoOptions&) { return from->get(key, value); });
        if (!found) return py::none();
        return py::bytes(reinterpret_cast<const char*>(value.data()), value.size());
    }
    void put(const std::string& key, const py::object& value) {
        const auto to = store();
        const Bytes bytes(value);
        Work({}, Length::brief).run([&](const IoOptions&) {
            to->require_unsealed(key);
            to->put(key, bytes.span());
            to->sync();
        });
    }
    bool erase(const std::string& key) {
        const auto from = store();
        return Work({}, Length::brief).run([&](const IoOptions&) {
            from->require_unsealed(key);
            const bool was_there = from->erase(key);
            from->sync();
            return was_there;
        });
    }
    void erase_below(const std::string& prefix) {
        const auto from = store();
        Work().run([&](const IoOptions&) {
            from->require_unsealed(prefix);
            from->erase_below(prefix);
            from->sync();
        });
    }
    void move(const std::string& from, const std::string& to) {
        const auto in = store();
        Work().run([&](const IoOptions&) {
            in->require_unsealed(from);
            in->require_unsealed(to);
            in->move(from, to);
            in->sync();
        });
    }
    /// Names of values, and of folders.
    std::pair<std::vector<std::string>, std::vector<std::string>> list(const std::string& prefix) {
        const auto from = store();
        Listing listing = Work().run([&](const IoOptions&) { return from->list(prefix); });
        return {std::move(listing.keys), std::move(listing.prefixes)};
    }
    std::optional<std::uint64_t> size(const std::string& key) {
        const auto from = store();
        const auto stamp = Work({}, Length::brief).run([&](const IoOptions&) { return from->stamp(key); });
        return stamp ? std::optional(stamp->size) : std::nullopt;
    }

private:
    [[nodiscard]] std::unique_ptr<OpenStore> open() const {
        return std::make_unique<OpenStore>(OpenStore{directory_store(path_, options_.store())});
    }

    std::string path_;
    PlaceOptions options_;
    Held<OpenStore> store_;
};

}  // namespace

void bind_keys(py::module_& module) {
    py::class_<KeyStoreHandle>(module, "KeyStoreHandle")
        .def(py::init<const py::object&, PlaceOptions>())
        .def("get", &KeyStoreHandle::get)
        .def("put", &KeyStoreHandle::put)
        .def("erase", &KeyStoreHandle::erase)
        .def("erase_below", &KeyStoreHandle::erase_below)
        .def("move", &KeyStoreHandle::move)
        .def("list", &KeyStoreHandle::list)
        .def("size", &KeyStoreHandle::size);
}

}  // namespace tessera::python
