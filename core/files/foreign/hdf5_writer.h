// New HDF5 files with netCDF-4's conventions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/buffer.h>

#include "hdf5_file.h"

namespace tessera {

/// Writes a file under a name that the parent gives another one.
class Hdf5Writer {
public:
    /// `name` is for messages. With `adds`, what is in the file stays; add() replaces an array that is there.
    Hdf5Writer(const std::string& name, const std::string& temporary, bool adds);
    /// Removes what is not finished.
    ~Hdf5Writer();
    Hdf5Writer(const Hdf5Writer&) = delete;
    Hdf5Writer& operator=(const Hdf5Writer&) = delete;

    /// A group ("": the root) and its attributes.
    void group(const std::string& path, const Value& attributes);

    struct Added {
        std::uint64_t number = 0;
        Shape chunks;   ///< empty: contiguous
        int level = 0;  ///< of deflate, after shuffle; 0: chunks have no filters
    };
    /// An array with its groups. `info.chunks` empty: contiguous, or if deflated about 1 MiB. Throws unsupported for
    /// dtypes that HDF5 does not get.
    [[nodiscard]] Added add(const std::string& path, const ArrayInfo& info, Value attributes, int deflate_level);
    /// How many bytes the elements of a region have; 0 for texts. Throws out_of_bounds.
    [[nodiscard]] std::int64_t element_bytes(std::uint64_t number, const Region& region);
    [[nodiscard]] bool has_texts(std::uint64_t number);
    /// `from`: elements, or pointers to texts.
    void write_elements(std::uint64_t number, const Region& region, const void* from);
    /// A chunk as filters have encoded it.
    void write_chunk(std::uint64_t number, const Region& part, ByteSpan encoded);
    void close(std::uint64_t number);
    /// Names the dimensions and closes the file. All arrays are closed by then.
    void finish();

private:
    struct Array {
        std::string name;
        Hdf5Id dataset, type;
        DType dtype;
        Shape shape;
    };
    struct Scale {
        std::string path;
        std::int64_t length = 0;
    };
    struct Use {
        std::string path, group;
        std::vector<std::string> names;
        Shape shape;
        std::vector<bool> grows;  ///< which dimensions are unlimited; empty: none
    };
    Array& array(std::uint64_t number);
    void give_way();
    Hdf5Id new_dataset(const std::string& path, const std::string& stored, const Hdf5Id& type, const Shape& shape,
                       const std::vector<bool>& grows, const Hdf5Id& list);
    void add_bare_dimension(const std::string& path, const std::string& name, std::int64_t length, bool grows);
    void attach_scales();
    void require_written() const;
    /// The dataset at a path, if there is one.
    [[nodiscard]] Hdf5Id found_dataset(const std::string& path) const;
    [[nodiscard]] std::optional<std::int64_t> scale_length(const std::string& path) const;

    std::string name_, temporary_;
    bool adds_;
    std::shared_ptr<int> error_;  ///< of writing; 0: none
    Hdf5Id file_;
    std::vector<Array> arrays_;
    std::vector<Scale> scales_;
    std::vector<Use> uses_;
};

}  // namespace tessera
