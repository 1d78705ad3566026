// Requests of the library to its helper, and the greeting (helper_process.h). Private to core/files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/error.h>
#include <tessera/value.h>

namespace tessera {

/// Each has a program of its own.
enum class ForeignLibrary : std::uint8_t { hdf5, tiff, grib };

/// All requests. The tables at the end of the sources in foreign/ have the functions that answer them.
enum class ForeignTask : std::uint64_t {
    // One file of HDF5; each begins with a ForeignFile.
    hdf5_members,   ///< → names
    hdf5_listed,    ///< → ForeignMembers
    hdf5_groups,    ///< → ArrayFileGroups
    hdf5_packed,    ///< → PackedArrays
    hdf5_chunked,   ///< → a PackedArray or none
    hdf5_describe,  ///< → Value
    hdf5_open,      ///< → ForeignArray
    hdf5_stored,    ///< → Regions, or none
    hdf5_read,      ///< Region; elements come in the shared memory, texts in the answer
    hdf5_close,     ///< the number of an array
    // A new file of HDF5, in a helper of its own.
    write_begin,     ///< ForeignOutput
    write_group,     ///< ArrayFileGroup
    write_add,       ///< path, ArrayInfo, attributes, level of deflate → number of the array, its chunks, level
    write_elements,  ///< number, Region; elements as for hdf5_read
    write_chunk,     ///< number, start, bytes of the chunk in the shared memory
    write_close,     ///< number
    write_finish,
    tiff_require,  ///< compression
    tiff_decode,   ///< ForeignTiff; elements come in the shared memory
    // Messages of GRIB: they come with the request, and nothing is kept.
    grib_keys,       ///< GribHeaders → a GribKeys for each
    grib_about,      ///< a message → GribAbout
    grib_positions,  ///< GribWanted, the message in the shared memory; numbers come there
    grib_values,     ///< the same
    // For tests.
    test_end,    ///< ends with this exit code
    test_sleep,  ///< for so many milliseconds; → the process's number
};

/// Identifies a build: a number made of its sources. Made by tools/cmake/BuildId.cmake.
[[nodiscard]] std::string_view build_id();

/// Before the bytes that it speaks of, in both directions.
struct ForeignHead {
    enum class Kind : std::uint64_t { hello, request, answer, error, read };
    Kind kind = Kind::request;
    std::uint64_t size = 0;                      ///< of what follows; of a read
    std::uint64_t place = 0;                     ///< the task; the offset of a read; in a hello, the helper's memory
    std::uint64_t space = 0;                     ///< of the shared memory
    std::uint64_t source = 0;                    ///< tells HelperWish::source from others
    std::uint64_t limit = UINT64_MAX, used = 0;  ///< the memory account of who asks
};
/// The name of helpers in lists of processes.
inline constexpr const char* helper_name = "tessera-helper";
/// Open in the helper when it starts.
inline constexpr int helper_socket = 3, helper_memory = 4;
/// The first argument of a program that is its own helper; the second is the build_id().
inline constexpr const char* helper_argument = "--tessera-helper";

struct ForeignFile {
    std::uint64_t array = 0;  ///< a number for what is open; 0: none
    std::string folder;       ///< where a relative path begins
    std::string path;
    std::optional<std::string> member;
    bool outside = false;                    ///< outside_allowed()
    std::optional<std::uint64_t> elsewhere;  ///< no file of this machine: bytes of this size, which are asked for
    std::string version;                     ///< of an array that was opened before

    static void fields(auto& x, auto& visit) {
        visit(x.array, x.folder, x.path, x.member, x.outside, x.elsewhere, x.version);
    }
};

struct ForeignArray {
    std::string version;  ///< of its file
    std::string name;
    ArrayInfo info;
    Value attributes;
    std::uint64_t offset = 0;  ///< where the elements begin if they lie in the file as they are; else 0
    std::optional<std::vector<std::byte>> absent;

    static void fields(auto& x, auto& visit) { visit(x.version, x.name, x.info, x.attributes, x.offset, x.absent); }
};

/// An Error.
struct ForeignError {
    ErrorCode code{};
    std::string text;
    std::vector<Advice> advice;

    static void fields(auto& x, auto& visit) { visit(x.code, x.text, x.advice); }
};
[[nodiscard]] inline ForeignError foreign_error(const Error& e) {
    return {.code = e.code(), .text = e.what(), .advice = e.advice()};
}
/// Throws corrupt if it is none.
[[nodiscard]] Error error_of(const ForeignError& error);

/// One of both.
struct ForeignMember {
    std::string name;
    std::optional<ArrayInfo> info;
    std::optional<ForeignError> error;

    static void fields(auto& x, auto& visit) { visit(x.name, x.info, x.error); }
};

struct ForeignOutput {
    std::string folder;
    std::string name;       ///< for messages
    std::string temporary;  ///< where it is written
    bool adds = false;      ///< `temporary` holds arrays already

    static void fields(auto& x, auto& visit) { visit(x.folder, x.name, x.temporary, x.adds); }
};

struct ForeignTiff {
    std::uint64_t file = 0;  ///< a number for it
    std::string name;
    std::uint64_t size = 0;
    std::uint64_t directory = 0;
    int compression = 0, photometric = 0;
    bool tiled = false;
    std::int64_t chunk = 0;

    static void fields(auto& x, auto& visit) {
        visit(x.file, x.name, x.size, x.directory, x.compression, x.photometric, x.tiled, x.chunk);
    }
};

/// Messages of GRIB without their values.
struct GribHeaders {
    std::vector<std::vector<std::byte>> messages;

    static void fields(auto& x, auto& visit) { visit(x.messages); }
};

/// What one of them says.
struct GribKeys {
    std::optional<ForeignError> error;
    /// Of attributes: those that fields of one variable have in common, and those that are the same for a data set.
    Value common, shared;
    /// Where the field stands along axes: a list of numbers in the order of GribAxis, null where it does not say.
    Value at;
    std::int64_t bits = 0;  ///< of a packed value that matter

    static void fields(auto& x, auto& visit) { visit(x.error, x.common, x.shared, x.at, x.bits); }
};

/// What the first message says of a variable.
struct GribAbout {
    std::string name;
    Value attributes;
    std::int64_t rows = 0, columns = 0;  ///< of its grid; 0: ecCodes does not say
    bool by_columns = false;             ///< jPointsAreConsecutive
    bool zigzag = false;                 ///< alternativeRowScanning
    bool backwards = false;              ///< iScansNegatively
    bool upwards = false;                ///< jScansPositively
    bool positions = false;              ///< whether ecCodes knows where the points are

    static void fields(auto& x, auto& visit) {
        visit(x.name, x.attributes, x.rows, x.columns, x.by_columns, x.zigzag, x.backwards, x.upwards, x.positions);
    }
};

/// Numbers of a message in C order.
struct GribWanted {
    std::uint64_t message = 0;           ///< its bytes
    std::int64_t rows = 0, columns = 0;  ///< of the grid
    bool by_columns = false, zigzag = false;
    bool wide = false;  ///< values as float64
    std::string key;    ///< of positions

    static void fields(auto& x, auto& visit) {
        visit(x.message, x.rows, x.columns, x.by_columns, x.zigzag, x.wide, x.key);
    }
};

}  // namespace tessera
