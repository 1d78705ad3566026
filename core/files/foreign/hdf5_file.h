// The contents of an HDF5 file in Tessera's terms.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

/// An open handle of libhdf5. Thread rule: libhdf5 works for one thread at a time.
class Hdf5Id {
public:
    using Close = herr_t (*)(hid_t);
    Hdf5Id() = default;
    Hdf5Id(hid_t id, Close function) : id_(id), close_(function) {}
    Hdf5Id(Hdf5Id&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
    Hdf5Id& operator=(Hdf5Id&& o) noexcept {
        std::swap(id_, o.id_);
        std::swap(close_, o.close_);
        return *this;
    }
    ~Hdf5Id() {
        if (id_ >= 0) close_(id_);
    }
    [[nodiscard]] hid_t get() const { return id_; }
    [[nodiscard]] bool good() const { return id_ >= 0; }
    /// Closes it now. Whether that worked.
    [[nodiscard]] bool close() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }

private:
    hid_t id_ = -1;
    Close close_ = nullptr;
};

/// The innermost message of libhdf5's last error. Throws instead what reading the file's bytes threw.
[[nodiscard]] std::string hdf5_error();

/// An error: `what`, and libhdf5's message. It is unsupported if a newer libhdf5 may read the file, else corrupt.
[[nodiscard]] Error hdf5_failure(std::string_view what);

/// Where a region's elements lie in the dataset, and as many in memory, one after another.
struct Hdf5Region {
    Hdf5Region(hid_t dataset, const Region& region);
    Hdf5Id file, memory;
};

/// An element as it is read: our dtype and libhdf5's type of the same bytes.
struct Hdf5Type {
    DType dtype;
    Hdf5Id memory;
};
/// Throws unsupported, naming the type.
[[nodiscard]] Hdf5Type hdf5_type(hid_t file_type);

/// The attributes of a group or dataset, without those of netCDF-4's and HDF5's own conventions.
[[nodiscard]] Value hdf5_attributes(hid_t object);
/// An attribute that is one text; empty if there is none.
[[nodiscard]] std::string hdf5_text_attribute(hid_t object, const char* name);
/// The names of a dataset's dimensions by its dimension scales; nullopt if it has none.
[[nodiscard]] std::optional<Value> hdf5_dimensions(hid_t dataset, int rank, const std::string& name);

/// The shape by netCDF-4's rule: along an unlimited dimension a variable is as long as the dimension, and what was not
/// written is its fill.
[[nodiscard]] Shape netcdf4_shape(hid_t dataset, const Shape& stored);
/// The path in netCDF-4 of a variable with the name of a dimension that is not its coordinate variable.
[[nodiscard]] std::string hdf5_alias_of(const std::string& path);

struct Hdf5Tree {
    std::vector<std::string> arrays;          ///< paths; links to other files, too
    std::vector<std::string> groups;          ///< each before those in it; the first is ""
    std::vector<std::string> unlimited = {};  ///< paths of dimensions that may grow
    MemoryHold held = MemoryHold();
};
/// Everything below the root. A group with several names is listed once, so that cycles end.
[[nodiscard]] Hdf5Tree hdf5_tree(hid_t file);

/// Properties with which objects are opened. No link leads to another file, unless outside_allowed().
[[nodiscard]] Hdf5Id hdf5_access();
/// Opens an object by its path. Not good() if there is none. Throws corrupt, or, unless outside_allowed(), unsupported
/// for a link to another file.
[[nodiscard]] Hdf5Id find_hdf5_object(hid_t file, const std::string& path);
/// The same with a name as netCDF-4 shows it. Throws not_found, too.
[[nodiscard]] Hdf5Id open_hdf5_object(hid_t file, const std::string& path);

}  // namespace tessera
