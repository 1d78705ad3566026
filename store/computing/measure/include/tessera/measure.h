// What the elements of arrays amount to: a digest, differences between two arrays, statistics.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/ndarray.h>
#include <tessera/selection.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

// The digest of an array: one hash of dtype, shape and content, independent of chunks, codecs, Zarr format and file
// format.
//
// Version 1, specified so that anybody can recompute it:
//
//   digest = "tessera1:" + hex(SHA-256(header + leaf digests))
//   header = "tessera1\n" + dtype + "\n" + shape + "\n", UTF-8; the dtype is NumPy's descr in little-endian order as
//            Python prints it ("<i4", "[('a', '<i4'), ('b', '<f8')]"; "string" and "bytes" for variable length), the
//            shape its tuple ("(3, 4)")
//   leaves: the array is cut into a grid of boxes. A box begins as the whole shape; as long as it has more than
//            2^20 bytes (an element of variable length counts as 16), the longest of its lengths (the first of
//            equals) is halved, rounded up. At the end of the array boxes are cut off. Leaves are in C order of the
//            grid; an empty array has none.
//   leaf digest = the 32 bytes of SHA-256 of the box's elements in C order, little-endian, padding of structures
//            zero. An element of variable length is its number of bytes as a little-endian u64, and then the bytes.

struct Located;

/// Computes the digest in parallel within io.max_memory (plus 32 bytes for each box).
[[nodiscard]] std::string digest(const ArraySource& source, const IoOptions& io = {});

/// The digest of an array, or of a group or an array file with all arrays below.
struct NodeDigest {
    std::string digest;
    bool group = false;
    std::vector<std::pair<std::string, std::string>> arrays = {};  ///< of a group: paths below it, and their digests
};

/// The digest of what lies at a path. Of a group, and of an array file of several arrays:
///   "tessera1-group:" + hex(SHA-256(lines)), a line for each array below, sorted by its bytes:
///   path below the group + " " + digest + "\n".
/// Attributes and empty groups do not count. Throws not_found, and the errors of open_source().
[[nodiscard]] NodeDigest digest(const Located& at, const IoOptions& io = {});

// Differences between two arrays, element by element, wherever they are stored.

/// The numbers that count as equal: |a − b| ≤ atol + rtol · |b|, or both NaN, as in numpy.isclose(equal_nan=True). With
/// both members 0, elements are compared bit for bit, apart from byte order and padding.
struct Tolerance {
    double atol = 0;
    double rtol = 0;
};

struct Difference {
    /// Differences other than elements, which may prevent comparing those: "shape (3,) is not (4,)". Empty if only
    /// elements may differ.
    std::vector<std::string> structure;
    bool compared = false;       ///< whether elements were compared
    std::int64_t elements = 0;   ///< compared
    std::int64_t different = 0;  ///< of these
    struct Place {
        Index index;
        std::string a, b;      ///< the two elements as text
        Value json_a, json_b;  ///< the same as JSON: NaN as "NaN", dates as ISO 8601 text
    };
    std::vector<Place> first;  ///< the first ones in C order
    /// The largest |a − b|, infinite if one of the two is not finite; nullopt if elements are not numbers.
    std::optional<double> largest;
    Index largest_at;
    /// Of difference_by_meaning() without differences: how the stored codes differ all the same: "4 of 9 differ".
    /// Empty: they do not.
    std::string codes = {};

    [[nodiscard]] bool none() const { return structure.empty() && different == 0; }
};

/// Compares within io.max_memory. Reads each array only once if their chunks allow it. At most `places` differing
/// elements are listed. Numbers of different types are compared by value, and the dtype is named as a difference.
[[nodiscard]] Difference difference(const ArraySource& a, const ArraySource& b, const Tolerance& tolerance = {},
                                    int places = 10, const IoOptions& io = {});

/// The same of what the elements stand for, as decoded() says: unpacked, and times as moments; missing elements are
/// equal. Values of different packings are equal within their rounding, unless a tolerance is given. Other units are a
/// difference. Of arrays without a meaning beside their codes, as difference().
[[nodiscard]] Difference difference_by_meaning(const ArraySource& a, const ArraySource& b,
                                               const Tolerance& tolerance = {}, int places = 10,
                                               const IoOptions& io = {});

// Statistics of an array's values, in one parallel pass.

/// Counts of values in bins of equal width. The width is a power of two, so that two arrays' bins can be compared.
struct Histogram {
    double start = 0;  ///< the lower end of the first bin, a multiple of width
    double width = 0;
    std::vector<std::int64_t> counts;  ///< bin i counts start + i·width ≤ value < start + (i + 1)·width
};

/// Statistics of one array, or of one field of its structures. Min, max, mean and deviation ignore NaN and NaT, as
/// NumPy's nanmin, nanmean and nanstd do. Infinities count, as in NumPy, except in the histogram.
struct Statistics {
    std::string field;  ///< "" for the elements themselves; "n.x" for a field
    DType dtype;
    std::int64_t count = 0;
    std::int64_t nans = 0;   ///< NaN or NaT, or marked as missing (ArrayInfo::marks_missing)
    std::int64_t fills = 0;  ///< elements that equal the array's fill value bit for bit
    /// Elements of the dtype, for real numbers and times; −0.0 is less than 0.0. For text and bytes, the first and last
    /// in byte order.
    std::optional<std::string> min, max;  ///< as element_to_text
    Value min_json, max_json;             ///< the same as JSON (see Difference); null if there is none
    ElementBytes min_bytes, max_bytes;    ///< the same as elements in host order, of fixed size; empty if there is none
    /// Of real numbers, or of times in their unit; 64-bit integers are rounded to double first. The deviation has a
    /// relative error of about 1e-13. The error of the mean is about 1e-13 of the mean absolute deviation, plus the
    /// last place of the double. Both hold however far from zero the values lie. The last places may depend on the
    /// chunks and the number of threads.
    std::optional<double> mean;
    std::optional<std::string> mean_date;  ///< of datetimes: the same in ISO 8601
    std::optional<double> deviation;       ///< standard deviation, with N as divisor
    std::optional<Histogram> histogram;    ///< of real numbers
};

/// Statistics of every field, or one entry for plain elements. `fill` is the array's fill element, if it has one (see
/// ArrayMetadata): its bytes, or for variable-length elements the content. The histogram has at most `bins` bins, which
/// must be 4 or more; 0 omits it and takes a third less time. Elements are processed in blocks that stay in cache, with
/// kernels by C type. `selection` restricts them to a part of the source.
[[nodiscard]] std::vector<Statistics> statistics(const ArraySource& source, const std::optional<ElementBytes>& fill,
                                                 int bins = 32, const IoOptions& io = {},
                                                 const std::optional<Selection>& selection = std::nullopt);

/// The index of an array's chunks: tessera/chunk_index.h.
class ChunkIndex;
/// Whether statistics() take from an index what it says.
enum class IndexUse : std::uint8_t {
    use,
    ignore,  ///< read all, but in the same steps: the results are the same, to the last bit
};
/// The same statistics of an array that may have an index of its chunks: only what it does not say is read. Then they
/// do not depend on the number of threads. Null, or where the index cannot be used (other bins than 0 and 32, a
/// selection with steps): as above.
[[nodiscard]] std::vector<Statistics> statistics(const ArraySource& source,
                                                 const std::shared_ptr<const ChunkIndex>& index, IndexUse use,
                                                 const std::optional<ElementBytes>& fill, int bins,
                                                 const IoOptions& io = {},
                                                 const std::optional<Selection>& selection = std::nullopt);

/// Statistics of the elements at each position along one axis of `source`, or of the part given by `selection`: an
/// entry for each position, as from statistics(), without histograms. A negative axis counts from the last one. Every
/// chunk is decoded once. Throws out_of_bounds for an axis that does not exist, and budget if the positions are too
/// many for the memory of this thread's account.
[[nodiscard]] std::vector<std::vector<Statistics>> statistics_along(
    const ArraySource& source, int axis, const std::optional<ElementBytes>& fill, const IoOptions& io = {},
    const std::optional<Selection>& selection = std::nullopt);

/// The same with ISO 8601 in place of the extremes and the mean, of an array that counts times in another calendar than
/// datetime64's ("noleap"); of any other array as they are.
[[nodiscard]] std::vector<Statistics> with_dates(std::vector<Statistics> found, const ArraySource& source);

/// How many elements lie outside of what the array's attributes `valid_min`, `valid_max` or `valid_range` say, which
/// are in stored units; missing ones do not count. nullopt without such attributes. The array is read once.
[[nodiscard]] std::optional<std::int64_t> outside_valid_range(const ArraySource& source, const IoOptions& io = {},
                                                              const std::optional<Selection>& selection = std::nullopt);

/// One more statistic of the same elements without NaN and NaT: a reduction by its word (parse_reduction), "median",
/// "p95" or "var". Its shape is () or, with `axis`, which may be negative, the length of that axis. Exact whatever the
/// memory, as in reduce_source(), for which the array is read once more. Throws as that, and out_of_bounds for an axis
/// that does not exist.
[[nodiscard]] NDArray statistic(const ArraySource& source, std::string_view word,
                                std::optional<int> axis = std::nullopt, const IoOptions& io = {},
                                const std::optional<Selection>& selection = std::nullopt);

}  // namespace tessera
