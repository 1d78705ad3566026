// ArraySource and ArraySink: arrays that can be read or written by region, whatever holds them.
// .npy files, .npz members and store arrays implement them; copy_array joins any two.
#pragma once

#include <memory>
#include <string>

#include <tessera/dtype.h>
#include <tessera/parallel.h>
#include <tessera/selection.h>
#include <tessera/shape.h>
#include <tessera/value.h>
#include <tessera/view.h>

namespace tessera {

/// The order of access in which a source or sink is fast, or the only one it can do.
enum class Access : std::uint8_t {
    any,         ///< any region, in any order, from several threads (chunked arrays, plain files)
    sequential,  ///< regions in ascending memory order of `order`; jumping back costs a restart (a compressed member)
    stream,      ///< as sequential, and going back is an error (a sink that cannot seek)
};

/// What is known of an array before any element is read.
struct ArrayInfo {
    DType dtype;
    Shape shape;
    /// The block that is decoded or encoded whole: the chunk shape, or for plain files empty (rank 0 of an array that
    /// is not 0-d), which means any block, best in memory order.
    Shape chunks;
    Order order = Order::C;  ///< the order of elements in a plain file
    Access access = Access::any;
    /// For a sink that is a part of a larger array: where within a chunk (with shards: within a shard) it begins, along
    /// each dimension. Empty: starts on a chunk boundary.
    Index chunk_offset = {};
    /// Where chunks are kept together in shards: the shape of one, which is written as a whole. Else empty.
    Shape shards = {};
};

/// Thread rule: const members may be called from several threads at once.
class ArraySource {
public:
    virtual ~ArraySource() = default;
    [[nodiscard]] virtual ArrayInfo info() const = 0;
    /// Reads a region into `out`, whose shape is region.extent and whose dtype is the source's but for byte order.
    /// Throws out_of_bounds, invalid_argument, corrupt, io, cancelled; `out` is then indeterminate.
    virtual void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const = 0;
    /// What a person calls this array: a path, "file.npz::member".
    [[nodiscard]] virtual const std::string& name() const = 0;
    /// Attributes that travel with the data; an empty object where the format has none.
    [[nodiscard]] virtual Value attribute_values() const { return Value::object(); }
};

/// Thread rule: write may be called from several threads at once for different blocks when access is `any`.
class ArraySink {
public:
    virtual ~ArraySink() = default;
    [[nodiscard]] virtual ArrayInfo info() const = 0;
    /// Writes a region. `in` has the shape region.extent and the sink's dtype but for byte order.
    virtual void write(const Region& region, const ArrayView& in, const IoOptions& io) = 0;
    /// Everything is written: make it visible. Without it a new file never appears.
    virtual void finish() = 0;
    /// One shard of this sink as a sink of its own, for shards larger than memory: `region` (of this sink) lies in one
    /// shard; it is written by one thread in blocks that end where chunks end, each chunk once, and replaces the old
    /// shard when it is finished. This sink outlives it. nullptr where there are no shards.
    [[nodiscard]] virtual std::unique_ptr<ArraySink> open_shard(const Region& /*region*/) { return nullptr; }
    [[nodiscard]] virtual const std::string& name() const = 0;
};

/// Elements in memory as a source. The caller keeps them alive.
[[nodiscard]] std::unique_ptr<ArraySource> view_source(const ArrayView& elements, std::string name);
std::unique_ptr<ArraySource> view_source(const NDArray&& elements, std::string name) = delete;
std::unique_ptr<ArraySource> view_source(const TemporaryView&& elements, std::string name) = delete;

/// Reads what a selection picks into `out`, whose shape is selection.full_shape() (dropped dimensions as 1). Memory
/// beyond `out` stays within a few MiB, whatever the steps.
void read_selection_into(const ArraySource& source, const Selection& selection, const MutableArrayView& out,
                         const IoOptions& io = {});
/// Reads what a selection picks, into a fresh array without the dropped dimensions.
[[nodiscard]] class NDArray read_selection(const ArraySource& source, const Selection& selection,
                                           const IoOptions& io = {});

}  // namespace tessera
