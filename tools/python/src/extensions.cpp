// Codecs and kinds of stores that are Python objects: tessera.add_codec and tessera.add_store.
#include <pybind11/stl.h>

#include <tessera/address.h>
#include <tessera/codec.h>
#include <tessera/error_text.h>
#include <tessera/store_kind.h>

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "bytes.h"
#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// Runs `body` with the GIL. A Python exception becomes an Error of this code: "ValueError: the text of it".
template <class Body>
auto in_python(ErrorCode code, const Body& body) {
    const py::gil_scoped_acquire acquired;
    try {
        return body();
    } catch (const py::error_already_set& error) {
        const std::string name = py::str(error.type().attr("__name__"));
        std::string text;
        try {
            text = py::str(error.value());
        } catch (const py::error_already_set&) {
            text = "(no text)";
        }
        throw Error(code, text.empty() ? name : fmt::format("{}: {}", name, text));
    } catch (const py::builtin_exception& error) {
        throw Error(code, error.what());
    }
}

/// A Python object that any thread may use and drop.
class SharedObject {
public:
    explicit SharedObject(py::object object) : object_(std::move(object)) {}
    SharedObject(const SharedObject&) = delete;
    SharedObject& operator=(const SharedObject&) = delete;
    ~SharedObject() {
        if (!Py_IsInitialized()) {  // the interpreter has ended, and its objects with it
            object_.release();
            return;
        }
        const py::gil_scoped_acquire acquired;
        object_ = py::object();
    }
    [[nodiscard]] const py::object& operator*() const { return object_; }

private:
    py::object object_;
};

py::bytes python_bytes(ByteSpan span) {
    return {reinterpret_cast<const char*>(span.data()), span.size()};
}

/// Copies what a Python call returned to out(size). A codec may return anything with the buffer protocol.
template <class Out>
bool copy_result(const py::object& result, const Out& out) {
    const Bytes bytes(result);
    const ByteSpan from = bytes.span();
    std::byte* const to = out(from.size());
    if (to != nullptr && !from.empty()) std::memcpy(to, from.data(), from.size());
    return to != nullptr || from.empty();
}

/// An object with encode(bytes) and decode(bytes), as numcodecs' codecs are. It gets bytes of its own, which it may
/// keep.
class PythonCodec final : public BytesToBytesCodec {
public:
    explicit PythonCodec(py::object codec) : codec_(std::move(codec)) {}

    void encode(ByteSpan in, Buffer& out) const override {
        const std::uint64_t most = encoded_bound(in.size());
        call(ErrorCode::invalid_argument, "encode", in, [&](std::size_t size) {
            if (size > most) {
                throw invalid_argument("{} bytes were encoded to {}; at most {} are expected", in.size(), size, most);
            }
            out.reset(size);
            return out.data();
        });
    }
    void decode(ByteSpan in, MutableByteSpan out) const override {
        call(ErrorCode::corrupt, "decode", in, [&](std::size_t size) {
            if (size == out.size()) return out.data();
            throw corrupt("the data decode to {} bytes, expected {}", size, out.size());
        });
    }
    [[nodiscard]] bool decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const override {
        return call(ErrorCode::corrupt, "decode", in, [&](std::size_t size) -> std::byte* {
            if (size > limit) return nullptr;
            out.reset(size);
            return out.data();
        });
    }
    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override {
        return 2 * in_size + (std::uint64_t{1} << 16);
    }

private:
    template <class Out>
    bool call(ErrorCode code, const char* method, ByteSpan in, const Out& out) const {
        return in_python(code, [&] {
            const py::object result = (*codec_).attr(method)(python_bytes(in));
            return copy_result(result, out);
        });
    }

    SharedObject codec_;
};

/// What a row points to. Never freed: rows stay until the process ends.
struct PythonRow {
    std::string name;
    std::string about;
    py::object make;
};

std::unique_ptr<BytesToBytesCodec> make_python_codec(const void* context, const Value& configuration,
                                                     std::int64_t /*item_size*/) {
    return in_python(ErrorCode::invalid_argument, [&]() -> std::unique_ptr<BytesToBytesCodec> {
        py::object codec = static_cast<const PythonRow*>(context)->make(value_to_python(configuration));
        return std::make_unique<PythonCodec>(std::move(codec));
    });
}

void add_python_codec(const std::string& name, const std::string& about, const py::object& make) {
    auto row = std::make_unique<PythonRow>(PythonRow{name, about, make});
    add_codec(
        {.name = row->name, .about = row->about, .bytes_to_bytes = {make_python_codec, row.get()}, .compressor = true});
    static_cast<void>(row.release());
}

/// A mapping from keys to bytes.
class PythonStore final : public SimpleStore {
public:
    PythonStore(std::string name, const StoreOptions& options, py::object mapping)
        : SimpleStore(std::move(name), options), mapping_(std::move(mapping)) {}

private:
    template <class Body>
    auto at(std::string_view key, const Body& body) const {
        return in_context([&] { return join_key(name(), key); }, [&] { return in_python(ErrorCode::io, body); });
    }

protected:
    [[nodiscard]] std::optional<Buffer> load(std::string_view key) const override {
        return at(key, [&]() -> std::optional<Buffer> {
            Buffer value;
            py::object found;
            try {
                found = (*mapping_)[py::str(key.data(), key.size())];
            } catch (const py::error_already_set& error) {
                if (error.matches(PyExc_KeyError)) return std::nullopt;
                throw;
            }
            copy_result(found, [&](std::size_t size) {
                value.reset(size);
                return value.data();
            });
            return value;
        });
    }
    void store(std::string_view key, ByteSpan value) override {
        at(key, [&] { (*mapping_).attr("__setitem__")(py::str(key.data(), key.size()), python_bytes(value)); });
    }
    bool remove(std::string_view key) override {
        return at(key, [&] {
            try {
                (*mapping_).attr("__delitem__")(py::str(key.data(), key.size()));
                return true;
            } catch (const py::error_already_set& error) {
                if (error.matches(PyExc_KeyError)) return false;
                throw;
            }
        });
    }
    [[nodiscard]] std::vector<std::string> keys(std::string_view prefix) const override {
        return at(prefix, [&] {
            const std::string start = prefix.empty() ? "" : std::string(prefix) + '/';
            std::vector<std::string> found;
            for (const py::handle key : py::list(*mapping_)) {
                auto text = py::cast<std::string>(key);
                if (text.starts_with(start)) found.push_back(std::move(text));
            }
            return found;
        });
    }

private:
    SharedObject mapping_;
};

Place python_place(const void* context, const std::filesystem::path& path, const StoreOptions& options) {
    const auto* const row = static_cast<const PythonRow*>(context);
    auto parts = split_store_path(path);
    const std::string& name = parts.first;  // Clang 14 captures no structured bindings
    const std::string own = name.substr(row->name.size() + 1);
    auto store = in_context([&] { return name; },
                            [&] {
                                return in_python(ErrorCode::io, [&]() -> std::shared_ptr<KeyValueStore> {
                                    return std::make_shared<PythonStore>(name, options, row->make(own));
                                });
                            });
    return {std::move(store), std::move(parts.second)};
}

void add_python_store(const std::string& scheme, const std::string& about, const py::object& open) {
    auto row = std::make_unique<PythonRow>(PythonRow{scheme, about, open});
    add_store_kind({.scheme = row->name, .about = row->about, .place = {python_place, row.get()}});
    static_cast<void>(row.release());
}

}  // namespace

void bind_extensions(py::module_& module) {
    module.def("add_codec", &add_python_codec);
    module.def("add_store", &add_python_store);
    module.def("own_path", [](const py::object& path) { return own_path(path_from_python(path)); });
    module.def("is_local", [](const py::object& path) { return is_local(path_from_python(path)); });
}

}  // namespace tessera::python
