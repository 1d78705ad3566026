// New files of HDF5, which a helper (helper_process.h) writes by libhdf5. Private to core/files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/byte_io.h>

namespace tessera {

/// Where relative paths begin now.
[[nodiscard]] std::string folder_of_paths();

/// Writes under a temporary name beside `path`; the file appears at finish(). Thread rule: one thread, except for the
/// sinks.
class HelperWriter {
public:
    /// With `adds`, what a file at `path` holds stays. add() replaces an array that is there.
    HelperWriter(const std::filesystem::path& path, bool durable, bool adds = false);
    ~HelperWriter();
    HelperWriter(const HelperWriter&) = delete;
    HelperWriter& operator=(const HelperWriter&) = delete;

    void group(const ArrayFileGroup& group);
    /// An array with its groups. `info.chunks` empty: contiguous, or if deflated about 1 MiB. Throws unsupported for
    /// dtypes that HDF5 does not get.
    [[nodiscard]] std::unique_ptr<ArraySink> add(const std::string& path, const ArrayInfo& info,
                                                 const Value& attributes, int deflate_level);
    /// Names the dimensions and makes the file visible. All sinks are finished by then.
    void finish();

private:
    struct Helper;
    class Sink;

    std::string name_, temporary_;
    std::unique_ptr<ByteSink> sink_;
    std::shared_ptr<Helper> helper_;
};

[[nodiscard]] std::unique_ptr<ArraySink> create_hdf5(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                                     const ArrayFileOptions& options);

}  // namespace tessera
