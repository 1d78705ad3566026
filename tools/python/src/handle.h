// Handles: what the classes of the Python package hold of arrays and groups.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <tessera/array.h>
#include <tessera/cached_array.h>
#include <tessera/chunk_bytes.h>
#include <tessera/edit.h>
#include <tessera/group.h>
#include <tessera/mapped_array.h>
#include <tessera/memory_account.h>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "picked.h"
#include "work.h"

namespace tessera::python {

namespace py = pybind11;

/// Something of the library that a fork must not hand on: in a child it is neither used nor destroyed, because its
/// locks and files are the parent's.
template <class T>
class Held {
public:
    Held() = default;
    explicit Held(std::unique_ptr<T> value) : value_(std::move(value)) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    Held& operator=(Held&& other) noexcept {
        reset();
        value_ = std::move(other.value_);
        process_ = other.process_;
        return *this;
    }
    ~Held() { reset(); }
    /// Whether it is here, and this process's own.
    [[nodiscard]] bool usable() const { return value_ != nullptr && process_ == process_number(); }
    [[nodiscard]] bool inherited() const { return value_ != nullptr && process_ != process_number(); }
    T* operator->() const { return value_.get(); }
    T& operator*() const { return *value_; }
    /// Keeps it while a call works without the GIL, whoever ends it meanwhile.
    [[nodiscard]] std::shared_ptr<T> share() const { return value_; }
    /// Lets it go, without the GIL; an inherited one is forgotten.
    void reset() {
        if (inherited()) {
            static_cast<void>(new std::shared_ptr<T>(std::move(value_)));
            return;
        }
        if (!value_) return;
        if (PyGILState_Check() == 0) {
            value_.reset();
            return;
        }
        const py::gil_scoped_release released;
        value_.reset();
    }

private:
    std::shared_ptr<T> value_;
    int process_ = process_number();
};

/// How a place is opened again: by a forked child.
using Reopen = std::function<std::unique_ptr<struct ArrayParts>()>;

/// An array, whatever holds it. Which members are there says what can be done with it.
struct ArrayParts {
    std::unique_ptr<ArraySource> source;  ///< an array file, or a cache
    std::optional<Array> array;           ///< chunks in a store
    std::unique_ptr<MappedArray> mapped;  ///< an array file that is written in place
    CachedArray* cached = nullptr;        ///< `source`, where that is a cache
    std::once_flag chunks_made = {};
    std::optional<ChunkBytes> chunks;  ///< of `array`, once they are asked for

    [[nodiscard]] const ArraySource& readable() const {
        return source ? *source : static_cast<const ArraySource&>(*array);
    }
};

/// What tessera.Array holds.
class ArrayHandle {
public:
    ArrayHandle(std::unique_ptr<ArrayParts> parts, Reopen reopen);

    /// Of this process: a forked child opens the array anew. Throws where that cannot be (a cache, a batch).
    [[nodiscard]] std::shared_ptr<ArrayParts> parts();
    [[nodiscard]] Array array();  ///< throws unsupported for what is no array of chunks

    [[nodiscard]] const DType& dtype() const { return dtype_; }
    [[nodiscard]] const py::dtype& numpy_dtype() const { return numpy_dtype_; }

    /// Reads into `out`, whose shape is picked.shape. With the GIL.
    void read(const Picked& picked, const py::array& out, const WorkOptions& options);
    void write(const Picked& picked, const py::array& values, const WorkOptions& options);

    /// Ends a cache or the handle of a batch.
    void close() { parts_.reset(); }

    /// The elements of `array` as the library's: of this array's dtype, or of it in another byte order.
    [[nodiscard]] DType dtype_of(const py::array& array) const;

private:
    Held<ArrayParts> parts_;
    Reopen reopen_;
    DType dtype_;
    py::dtype numpy_dtype_;
};

/// What tessera.Group holds.
class GroupHandle {
public:
    using Open = std::function<std::unique_ptr<Group>()>;
    explicit GroupHandle(Open open) : open_(std::move(open)), group_(open_()) {}
    /// Of this process: a forked child opens the group anew.
    [[nodiscard]] Group& group() {
        if (group_.inherited()) group_ = Held<Group>(open_());
        return *group_;
    }

private:
    Open open_;
    Held<Group> group_;
};

/// How the caller wants places opened.
struct PlaceOptions {
    bool read_only = true;
    std::string durability = "commit";
    bool locks = true;
    bool follow_links = false;
    [[nodiscard]] StoreOptions store() const { return store_options(read_only, durability, locks, follow_links); }
};

/// What tessera.create_array and its like take, by their Python names.
[[nodiscard]] ArrayOptions array_options(const py::dict& options);

/// Whether so many bytes take long enough for a person to want it ended.
[[nodiscard]] inline Length length_of(const Shape& shape, const DType& dtype) {
    constexpr std::int64_t brief = std::int64_t{1} << 18;
    return byte_count(shape, dtype.size()) <= brief ? Length::brief : Length::any;
}

void bind_errors(py::module_& module);
void bind_arrays(py::module_& module);
void bind_points(py::class_<ArrayHandle>& handle);  ///< of bind_arrays()
void bind_batches(py::module_& module);
void bind_groups(py::module_& module);
void bind_open(py::module_& module);
void bind_copies(py::module_& module);
void bind_checks(py::module_& module);
void bind_keys(py::module_& module);
void bind_chunks(py::module_& module);

}  // namespace tessera::python
