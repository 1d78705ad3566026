// The class behind tessera.KeyStore: keys and values of a place, each value replaced as a whole.
#include <pybind11/stl.h>

#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/key_value_store.h>
#include <tessera/own_names.h>
#include <tessera/store_kind.h>
#include <tessera/verify.h>

#include <algorithm>
#include <string_view>

#include "bytes.h"
#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

struct ByteRange {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
};

/// The part of `size` bytes that a range names; what lies beyond the end is left out.
ByteRange range_within(const py::object& range, std::uint64_t size) {
    if (range.is_none()) return {0, size};
    const auto pair = py::reinterpret_borrow<py::tuple>(range);
    const auto start = py::cast<std::int64_t>(pair[0]);
    const std::uint64_t first = start >= 0 ? std::min<std::uint64_t>(static_cast<std::uint64_t>(start), size)
                                           : size - std::min<std::uint64_t>(static_cast<std::uint64_t>(-start), size);
    const std::uint64_t stop = pair[1].is_none() ? size : std::min(py::cast<std::uint64_t>(pair[1]), size);
    return {first, stop > first ? stop - first : 0};
}

/// The first part of a key that names what Tessera keeps for itself, and what no listing shows; empty if there is none.
std::string_view own_part(std::string_view key) {
    for (std::size_t begin = 0; begin < key.size();) {
        const std::size_t end = std::min(key.find('/', begin), key.size());
        const std::string_view part = key.substr(begin, end - begin);
        if (part == own_folder || part.starts_with(temporary_prefix)) return part;
        begin = end + 1;
    }
    return {};
}

class KeyStoreHandle {
public:
    KeyStoreHandle(const py::object& path, PlaceOptions options)
        : path_(path_from_python(path)), options_(std::move(options)), place_(open()) {}

    /// This process's store: a forked child reopens the place.
    [[nodiscard]] std::shared_ptr<KeyValueStore> store() {
        if (place_.inherited()) place_ = Held<Place>(open());
        return place_->store;
    }

    py::object get(const std::string& key, const py::object& range) {
        const auto from = store();
        const auto value = Work({}, Length::brief).run([&](const IoOptions&) { return from->open(at(key)); });
        return value == nullptr ? py::object(py::none()) : bytes_in(*value, range);
    }
    /// False if the key has a value already, whichever program made it.
    bool put_new(const std::string& key, const py::object& value) {
        const auto to = store();
        const Bytes bytes(value);
        return Work({}, Length::brief).run([&](const IoOptions&) {
            to->require_unsealed(at(key));
            const bool made = to->put_new(at(key), bytes.span());
            to->sync();
            return made;
        });
    }
    void put(const std::string& key, const py::object& value) {
        const auto to = store();
        const Bytes bytes(value);
        Work({}, Length::brief).run([&](const IoOptions&) {
            to->require_unsealed(at(key));
            note_replaced_chunk(*to, at(key));
            to->put(at(key), bytes.span());
            to->sync();
        });
    }
    bool erase(const std::string& key) {
        const auto from = store();
        return Work({}, Length::brief).run([&](const IoOptions&) {
            from->require_unsealed(at(key));
            forget_stored_chunks(*from, at(key));
            const bool was_there = from->erase(at(key));
            from->sync();
            return was_there;
        });
    }
    void erase_below(const std::string& prefix) {
        const auto from = store();
        Work().run([&](const IoOptions&) {
            from->require_unsealed(at(prefix));
            from->erase_below(at(prefix));
            from->sync();
        });
    }
    void move(const std::string& from, const std::string& to) {
        const auto in = store();
        Work().run([&](const IoOptions&) {
            in->require_unsealed(at(from));
            in->require_unsealed(at(to));
            in->move(at(from), at(to));
            in->sync();
        });
    }
    /// Names of values, and of folders.
    std::pair<std::vector<std::string>, std::vector<std::string>> list(const std::string& prefix) {
        if (!own_part(prefix).empty()) return {};
        const auto from = store();
        Listing listing = Work().run([&](const IoOptions&) { return from->list(at(prefix)); });
        std::erase(listing.prefixes, own_folder);
        return {std::move(listing.keys), std::move(listing.prefixes)};
    }
    std::optional<std::uint64_t> size(const std::string& key) {
        const auto from = store();
        const auto stamp = Work({}, Length::brief).run([&](const IoOptions&) { return from->stamp(at(key)); });
        return stamp ? std::optional(stamp->size) : std::nullopt;
    }

private:
    /// A directory need not be there yet; places of other kinds of stores may lie deeper in theirs.
    [[nodiscard]] std::unique_ptr<Place> open() const {
        return Work({}, Length::brief).run([&](const IoOptions&) {
            if (is_local(path_)) return std::make_unique<Place>(directory_store(path_, options_.store()));
            return std::make_unique<Place>(store_kind_of(path_).place(path_, options_.store()));
        });
    }
    /// In the store. Throws invalid_argument for a key with an own_part().
    [[nodiscard]] std::string at(std::string_view key) const {
        if (const std::string_view own = own_part(key); !own.empty()) {
            throw invalid_argument("{}: {} in a key is Tessera's own name; choose another one", place_->key(key), own);
        }
        return place_->key(key);
    }

    std::string path_;
    PlaceOptions options_;
    Held<Place> place_;
};

}  // namespace

py::object bytes_in(const ByteSource& source, const py::object& range) {
    const ByteRange part = range_within(range, source.size());
    auto bytes =
        py::reinterpret_steal<py::object>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(part.size)));
    if (!bytes) throw py::error_already_set();
    auto* const to = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes.ptr()));
    Work({}, Length::brief).run([&](const IoOptions&) { source.read(part.offset, {to, part.size}); });
    return bytes;
}

py::object bytes_in(ByteSpan bytes, const py::object& range) {
    const ByteRange part = range_within(range, bytes.size());
    return py::bytes(reinterpret_cast<const char*>(bytes.data()) + part.offset, part.size);
}

void bind_keys(py::module_& module) {
    py::class_<KeyStoreHandle>(module, "KeyStoreHandle")
        .def(py::init<const py::object&, PlaceOptions>())
        .def("get", &KeyStoreHandle::get, py::arg("key"), py::arg("range") = py::none())
        .def("put_new", &KeyStoreHandle::put_new)
        .def("put", &KeyStoreHandle::put)
        .def("erase", &KeyStoreHandle::erase)
        .def("erase_below", &KeyStoreHandle::erase_below)
        .def("move", &KeyStoreHandle::move)
        .def("list", &KeyStoreHandle::list)
        .def("size", &KeyStoreHandle::size);
}

}  // namespace tessera::python
