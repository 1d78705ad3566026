// Handles: the state of the Python package's array and group classes.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <tessera/array.h>
#include <tessera/cached_array.h>
#include <tessera/chunk_bytes.h>
#include <tessera/edit.h>
#include <tessera/group.h>
#include <tessera/memory_account.h>
#include <tessera/npy.h>
#include <tessera/sequences.h>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "basic_index.h"
#include "work.h"

namespace tessera::python {

namespace py = pybind11;

/// An object of the library that a forked child must not inherit. A child neither uses nor destroys it, because its
/// locks and files belong to the parent.
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
    /// Whether it exists and belongs to this process.
    [[nodiscard]] bool usable() const { return value_ != nullptr && process_ == process_number(); }
    [[nodiscard]] bool inherited() const { return value_ != nullptr && process_ != process_number(); }
    T* operator->() const { return value_.get(); }
    T& operator*() const { return *value_; }
    /// Keeps it alive while a call runs without the GIL, even if another thread resets it.
    [[nodiscard]] std::shared_ptr<T> share() const { return value_; }
    /// Destroys it, without the GIL; an inherited one is leaked.
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

/// Reopens a place in a forked child.
using Reopen = std::function<std::unique_ptr<struct ArrayParts>()>;

/// An array of any kind. The members that are set determine its operations.
struct ArrayParts {
    std::unique_ptr<ArraySource> source;  ///< an array file, or a cache
    std::optional<Array> array;           ///< chunks in a store
    std::unique_ptr<MappedArray> mapped;  ///< an array file written in place
    CachedArray* cached = nullptr;        ///< `source`, if that is a cache
    std::once_flag chunks_made = {};
    std::optional<ChunkBytes> chunks;  ///< of `array`, made on demand

    [[nodiscard]] const ArraySource& readable() const {
        return source ? *source : static_cast<const ArraySource&>(*array);
    }
};

/// The state of tessera.Array.
class ArrayHandle {
public:
    ArrayHandle(std::unique_ptr<ArrayParts> parts, Reopen reopen);

    /// This process's parts: a forked child reopens the array. Throws if that is impossible (a cache, a batch).
    [[nodiscard]] std::shared_ptr<ArrayParts> parts();
    [[nodiscard]] Array array();  ///< throws unsupported if the array has no chunks

    [[nodiscard]] const DType& dtype() const { return dtype_; }
    [[nodiscard]] const py::dtype& numpy_dtype() const { return numpy_dtype_; }
    /// Of elements that are sequences: the dtype of their items.
    [[nodiscard]] const std::optional<DType>& items() const { return items_; }

    /// Reads into `out`, whose shape is picked.shape. With the GIL.
    void read(const Picked& picked, const py::array& out, const WorkOptions& options);
    void write(const Picked& picked, const py::array& values, const WorkOptions& options);

    /// Reads the metadata again. An array that another one took the place of is opened anew.
    void refresh();

    /// Releases what is open. parts() throws from then on.
    void close() { parts_.reset(); }
    [[nodiscard]] bool closed() const { return !parts_.usable() && !parts_.inherited(); }

    /// The library's dtype of `array`: this array's dtype, in any byte order.
    [[nodiscard]] DType dtype_of(const py::array& array) const;

private:
    Held<ArrayParts> parts_;
    Reopen reopen_;
    DType dtype_;
    py::dtype numpy_dtype_;
    std::optional<DType> items_;
};

/// The state of tessera.Group.
class GroupHandle {
public:
    using Open = std::function<std::unique_ptr<Group>()>;
    explicit GroupHandle(Open open) : open_(std::move(open)), group_(opened()) {}
    /// The same with the group open already.
    GroupHandle(std::unique_ptr<Group> group, Open open) : open_(std::move(open)), group_(std::move(group)) {}
    /// This process's group: a forked child reopens it.
    [[nodiscard]] Group& group() {
        if (group_.inherited()) group_ = Held<Group>(opened());
        if (!group_.usable()) throw invalid_argument("the group is closed; open it again");
        return *group_;
    }
    void close() { group_.reset(); }
    [[nodiscard]] bool closed() const { return !group_.usable() && !group_.inherited(); }

private:
    [[nodiscard]] std::unique_ptr<Group> opened() const {
        return Work().run([&](const IoOptions&) { return open_(); });
    }

    Open open_;
    Held<Group> group_;
};

/// The caller's options for opening places.
struct PlaceOptions {
    bool read_only = true;
    std::string durability = "commit";
    bool locks = true;
    bool follow_links = false;
    bool break_seal = false;
    std::shared_ptr<const RemoteOptions> remote = nullptr;
    [[nodiscard]] StoreOptions store() const {
        StoreOptions options = store_options(read_only, durability, locks, follow_links);
        options.break_seal = break_seal;
        options.remote = remote;
        return options;
    }
};

/// The options of tessera.create_array and similar functions, by their Python names.
[[nodiscard]] ArrayOptions array_options(const py::dict& options);
/// Chooses their format, as the program does: that of the group around the path, or else the default one, which is v3
/// here. Warns where the choice is not the obvious one. `all_written`: the values of all elements follow.
/// What the user prefers for new arrays: a format, else v3; codecs, or nothing.
[[nodiscard]] std::string usual_format();
[[nodiscard]] std::string usual_codec();
void settle_format(const std::string& path, const Dialect* around, ArrayOptions& options, bool all_written = false);

/// Whether this many bytes take long enough to need interruption.
[[nodiscard]] inline Length length_of(const Shape& shape, const DType& dtype) {
    constexpr std::int64_t brief = std::int64_t{1} << 18;
    return byte_count(shape, dtype.size()) <= brief ? Length::brief : Length::any;
}

void bind_errors(py::module_& module);
void bind_extensions(py::module_& module);
void bind_arrays(py::module_& module);
void bind_points(py::class_<ArrayHandle>& handle);  ///< of bind_arrays()
void bind_batches(py::module_& module);
void bind_groups(py::module_& module);
void bind_open(py::module_& module);
void bind_copies(py::module_& module);
void bind_computed(py::module_& module);
void bind_jobs(py::module_& module);
void bind_checks(py::module_& module);
void bind_keys(py::module_& module);
void bind_chunks(py::module_& module);
void bind_servers(py::module_& module);
void bind_arrow(py::module_& module);
void bind_zarr(py::module_& module);

}  // namespace tessera::python
