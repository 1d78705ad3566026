// ArraySource and ArraySink: arrays that can be read or written by region, whatever holds them.
// .npy files, .npz members and store arrays implement them; copy_array joins any two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/dtype.h>
#include <tessera/parallel.h>
#include <tessera/selection.h>
#include <tessera/shape.h>
#include <tessera/value.h>
#include <tessera/view.h>

namespace tessera {

/// The order of access that is fast for a source or sink, or the only possible one.
enum class Access : std::uint8_t {
    any,         ///< any region, in any order, from several threads (chunked arrays, plain files)
    sequential,  ///< regions in ascending memory order of `order`; jumping back costs a restart (a compressed member)
    stream,      ///< as sequential, and going back is an error (a sink that cannot seek)
};

/// The facts of an array that are known before any element is read.
struct ArrayInfo {
    DType dtype;
    Shape shape;
    /// The block that is decoded or encoded whole: the chunk shape. Empty (rank 0, although the array is not 0-d) for
    /// plain files, which take any block, best in memory order.
    Shape chunks;
    Order order = Order::C;  ///< the order of elements in a plain file
    Access access = Access::any;
    /// For a sink that is a part of a larger array: the offset within a chunk (with shards: within a shard) at which it
    /// begins, along each dimension. Empty: starts on a chunk boundary.
    Index chunk_offset = {};
    /// If chunks are kept together in shards: the shape of a shard, which is written as a whole. Else empty.
    Shape shards = {};
    /// Of a source that computes its elements: the least memory in bytes that one thread takes for that, beside the
    /// elements that it returns. 0: nothing but chunks as stored and decoded.
    std::int64_t working = 0;
    /// Of int64: missing_integer stands for what is missing, as NaT does among times.
    bool marks_missing = false;
};

/// What a missing element of int64 is, where ArrayInfo::marks_missing says so; the count of NaT.
inline constexpr std::int64_t missing_integer = INT64_MIN;

/// Thread rule: const members may be called from several threads at once.
class ArraySource {
public:
    virtual ~ArraySource() = default;
    [[nodiscard]] virtual ArrayInfo info() const = 0;
    /// Reads a region into `out`. `out` has the shape region.extent and the source's dtype, except for byte order.
    /// Throws out_of_bounds, invalid_argument, corrupt, io, cancelled; `out` is then indeterminate.
    virtual void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const = 0;
    /// What read_selection_into does: by regions, between whose first and last element all are read. For sources that
    /// read the steps of a selection chunk by chunk.
    virtual void read_picked(const Selection& selection, const MutableArrayView& out, const IoOptions& io) const;
    /// The elements at many indices, as a 1-d array in their order.
    [[nodiscard]] virtual class NDArray read_points(std::span<const Index> points, const IoOptions& io = {}) const;
    /// The bytes of an element of its fill value; nullopt if it has none.
    [[nodiscard]] virtual std::optional<std::vector<std::byte>> fill_bytes() const { return std::nullopt; }
    /// What elements that are not stored read as, for a source that can tell which ones are; nullopt for others.
    [[nodiscard]] virtual std::optional<std::vector<std::byte>> absent_element() const { return std::nullopt; }
    /// Calls `each` with regions in which all stored elements lie. False: something else may be stored, too.
    [[nodiscard]] virtual bool visit_stored(const std::function<void(const Region&)>& /*each*/) const { return false; }
    /// The array's name for people: a path, "file.npz::member".
    [[nodiscard]] virtual const std::string& name() const = 0;
    /// Attributes that travel with the data; an empty object if the format has none.
    [[nodiscard]] virtual Value attribute_values() const { return Value::object(); }
    /// Of a source with other values, and some other attributes, but the dtype and shape of another: that one, of which
    /// a copy keeps codecs and all else. It lives as long as this source. nullptr: there is none.
    [[nodiscard]] virtual const ArraySource* model() const { return nullptr; }
    /// Of a source that converts another one's elements, each at its index: that one, which has the names, coordinates
    /// and format. It lives as long as this source. nullptr: there is none.
    [[nodiscard]] virtual const ArraySource* converted_from() const { return nullptr; }
};

/// A source's model, or the source itself.
[[nodiscard]] inline const ArraySource& model_of(const ArraySource& source) {
    const ArraySource* const model = source.model();
    return model != nullptr ? *model : source;
}

/// The attributes that a source has and its model has not, or with other values; an empty object without a model.
[[nodiscard]] Value attributes_beside_model(const ArraySource& source);

/// Thread rule: write may be called from several threads at once for different blocks when access is `any`.
class ArraySink {
public:
    virtual ~ArraySink() = default;
    [[nodiscard]] virtual ArrayInfo info() const = 0;
    /// Writes a region. `in` has the shape region.extent and the sink's dtype, except for byte order.
    virtual void write(const Region& region, const ArrayView& in, const IoOptions& io) = 0;
    /// Makes the complete content visible. Without it a new file never appears.
    virtual void finish() = 0;
    /// One shard of this sink as a sink of its own, for shards larger than memory. `region` (of this sink) lies in one
    /// shard. One thread writes it in blocks that end where chunks end, each chunk once. The new shard replaces the old
    /// one at finish(). This sink outlives it. nullptr if there are no shards.
    [[nodiscard]] virtual std::unique_ptr<ArraySink> open_shard(const Region& /*region*/) { return nullptr; }
    [[nodiscard]] virtual const std::string& name() const = 0;
};

/// Elements in memory as a source. The caller keeps them alive.
[[nodiscard]] std::unique_ptr<ArraySource> view_source(const ArrayView& elements, std::string name);
std::unique_ptr<ArraySource> view_source(const NDArray&& elements, std::string name) = delete;
std::unique_ptr<ArraySource> view_source(const TemporaryView&& elements, std::string name) = delete;

/// Reads the elements of a selection into `out`, whose shape is selection.full_shape() (dropped dimensions as 1).
/// Memory beyond `out` stays within a few MiB, whatever the steps.
void read_selection_into(const ArraySource& source, const Selection& selection, const MutableArrayView& out,
                         const IoOptions& io = {});
/// Reads the elements of a selection into a fresh array without the dropped dimensions.
[[nodiscard]] NDArray read_selection(const ArraySource& source, const Selection& selection, const IoOptions& io = {});

}  // namespace tessera
