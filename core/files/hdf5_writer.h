// New HDF5 files with netCDF-4's conventions. Private to core/files; compiled if libhdf5 is installed.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/byte_io.h>

#include "hdf5_file.h"

namespace tessera {

/// Writes under a temporary name beside `path`; the file appears at finish(). Thread rule: one thread, except for the
/// sinks.
class Hdf5Writer {
public:
    /// With `adds`, what a file at `path` holds stays. add() replaces an array that is there.
    Hdf5Writer(const std::filesystem::path& path, bool durable, bool adds = false);
    ~Hdf5Writer();
    Hdf5Writer(const Hdf5Writer&) = delete;
    Hdf5Writer& operator=(const Hdf5Writer&) = delete;

    /// A group ("": the root) and its attributes.
    void group(const std::string& path, const Value& attributes);
    /// An array with its groups. `info.chunks` empty: contiguous, or if deflated about 1 MiB. Throws unsupported for
    /// dtypes that HDF5 does not get.
    [[nodiscard]] std::unique_ptr<ArraySink> add(const std::string& path, const ArrayInfo& info, Value attributes,
                                                 int deflate_level);
    /// Names the dimensions and makes the file visible. All sinks are gone by then.
    void finish();

private:
    struct Scale {
        std::string path;
        std::int64_t length = 0;
    };
    struct Use {
        std::string path, group;
        std::vector<std::string> names;
        Shape shape;
    };
    void give_way();
    Hdf5Id new_dataset(const std::string& path, const std::string& stored, const Hdf5Id& type, const Shape& shape,
                       const Hdf5Id& list);
    void add_bare_dimension(const std::string& path, const std::string& name, std::int64_t length);
    void attach_scales();
    void require_written() const;
    /// What the file has at a path, if it is a dataset.
    [[nodiscard]] Hdf5Id found_dataset(const std::string& path) const;
    [[nodiscard]] std::optional<std::int64_t> scale_length(const std::string& path) const;

    std::string name_, temporary_;
    std::unique_ptr<ByteSink> sink_;
    bool adds_;
    std::shared_ptr<int> error_;  ///< of writing; 0: none
    Hdf5Id file_;
    std::vector<Scale> scales_;
    std::vector<Use> uses_;
};

}  // namespace tessera
