// Array: a chunked array in a store. A thin handle; the loops live in region_io.h, resize.h and copy.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/blocks.h>
#include <tessera/cast.h>
#include <tessera/chunk_grid.h>
#include <tessera/dialect.h>
#include <tessera/key_value_store.h>
#include <tessera/metadata.h>
#include <tessera/ndarray.h>
#include <tessera/pipeline.h>
#include <tessera/selection.h>

namespace tessera {

/// How to create an array. Only shape and dtype are needed.
struct ArrayOptions {
    Shape shape;
    Shape chunks = {};  ///< empty: about 1 MiB is chosen (choose_chunks)
    DType dtype;
    std::optional<Value> fill_value = std::nullopt;  ///< must fit the dtype; none: the dialect's default
    Shape shards =
        {};  ///< v3: chunks are kept together in shards of this shape, a multiple of chunks; empty: each alone
    std::string codec = "blosc:lz4:5:shuffle";  ///< as parse_codecs reads it
    std::string format = "zmeta";
    Order order = Order::C;      ///< of the elements within a chunk
    std::string separator = "";  ///< between the indices of chunk keys, "." or "/"; empty: the dialect's own
    std::vector<std::optional<std::string>> dimension_names = {};  ///< empty, or one per dimension
    Value attributes = Value::object();                            ///< written when not empty
};

/// The metadata that these options stand for, in the dialect that they name; dimension names of a dialect that has none
/// are in new_attributes. Throws as Array::create.
[[nodiscard]] ArrayMetadata make_metadata(const ArrayOptions& options);
/// The attributes, with dimension names as xarray's `_ARRAY_DIMENSIONS` where the dialect has no other place for them.
[[nodiscard]] Value new_attributes(const ArrayOptions& options);

/// How much of an array is stored. With shards each shard counts as one chunk here.
struct StoredSize {
    std::int64_t chunks = 0;  ///< chunk values that exist inside the grid
    std::int64_t chunks_possible = 0;
    std::uint64_t bytes = 0;  ///< of those chunk values; estimated where not all were `sized`
    std::int64_t sized = 0;   ///< chunk values whose size was asked for
    std::int64_t strays = 0;  ///< other values among them: outside the grid, locks, leftovers
};

/// Attributes of one array or group, read and written through at once. Thread rule: as Array.
class Attributes {
public:
    [[nodiscard]] Value all() const;                    ///< an object
    [[nodiscard]] std::optional<Value> stored() const;  ///< nothing when there are none and never were
    [[nodiscard]] std::optional<Value> get(std::string_view key) const;
    void set(std::string_view key, Value value);
    bool erase(std::string_view key);  ///< false when it was absent
    /// Gives an attribute another name, in its place among the others. Throws not_found, and already_exists where the
    /// new name is taken; nothing is changed then.
    void rename(std::string_view key, std::string_view new_key);
    /// Sets every member of an object in one step; the other attributes stay.
    void merge(const Value& attributes);
    void replace(const Value& attributes);

private:
    friend class Array;
    friend class Group;
    explicit Attributes(std::shared_ptr<struct NodeState> state) : state_(std::move(state)) {}
    std::shared_ptr<struct NodeState> state_;
};

/// One of many regions to read, and the memory that it goes to: of the region's shape, this dtype but for byte order.
struct RegionRead {
    Region region;
    MutableArrayView out;
};
/// One of many regions to write, likewise.
struct RegionWrite {
    Region region;
    ArrayView in;
};

/// Contiguous elements that Array::write takes without view(): of any type that DType::of knows.
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                       !std::convertible_to<const R&, std::string_view> &&
                       !std::convertible_to<const R&, ArrayView>;
/// One value that Array::write takes for all elements: a number, a bool, a text.
template <class T>
concept OneElement = std::is_arithmetic_v<T> || std::convertible_to<const T&, std::string_view>;

/// A handle to a chunked array; copies are the same array.
/// Thread rule: every member may be called from several threads at once, and other handles to the same array may be
/// used beside it: writers of one chunk take turns, readers see each chunk whole, old or new.
class Array final : public ArraySource, public ArraySink {
public:
    /// Opens an existing array. Throws not_found (saying what is there instead), corrupt, unsupported.
    [[nodiscard]] static Array open(const std::filesystem::path& path, const StoreOptions& options = {});
    [[nodiscard]] static Array open(std::shared_ptr<KeyValueStore> store, std::string_view prefix = "");
    /// Creates a new array. Throws already_exists when something lies there; invalid_argument or unsupported for
    /// options that the dialect cannot express; nothing is written then. Waits for another run that makes something
    /// there just now: see DestinationLock.
    static Array create(const std::filesystem::path& path, const ArrayOptions& options, const StoreOptions& store = {});
    static Array create(std::shared_ptr<KeyValueStore> store, std::string_view prefix, const ArrayOptions& options);
    /// The same, with metadata that is already complete; `publish` false leaves the metadata unwritten until
    /// publish(), so that what is unfinished does not open.
    static Array create(std::shared_ptr<KeyValueStore> store, std::string_view prefix, const Dialect& dialect,
                        ArrayMetadata metadata, bool publish = true);
    void publish();

    [[nodiscard]] ArrayInfo info() const override;
    [[nodiscard]] const std::string& name() const override;
    [[nodiscard]] Value attribute_values() const override { return attributes().all(); }
    [[nodiscard]] Attributes attributes() const;
    [[nodiscard]] const Dialect& dialect() const;
    /// The metadata as last loaded; a resize through another handle shows after refresh().
    [[nodiscard]] ArrayMetadata metadata() const;
    [[nodiscard]] Shape shape() const { return info().shape; }
    [[nodiscard]] DType dtype() const { return info().dtype; }
    [[nodiscard]] Shape chunks() const { return info().chunks; }  ///< what is decoded whole: within a shard, if any
    [[nodiscard]] Shape shards() const { return info().shards; }  ///< empty without sharding
    void refresh();
    /// One field of structures, to read and write by itself: `table.field("close")`; include <tessera/array_field.h>.
    /// Throws not_found, naming the fields that there are, and invalid_argument for elements that are no structures.
    [[nodiscard]] class ArrayField field(std::string_view name) const;

    /// Reads what a selection picks (dropped dimensions left out) into a fresh array.
    [[nodiscard]] NDArray read(std::string_view selection = "", const IoOptions& io = {}) const;
    [[nodiscard]] NDArray read(const Selection& selection, const IoOptions& io = {}) const;
    [[nodiscard]] NDArray read(const Region& region, const IoOptions& io = {}) const;
    /// The same with the elements as another dtype: `a.read<float>("3, :5")`. Throws invalid_argument where `rule`
    /// does not allow it (cast.h), naming the first element that does not fit.
    template <class T>
    [[nodiscard]] NDArray read(std::string_view selection = "", Cast rule = Cast::same_kind,
                               const IoOptions& io = {}) const {
        return read_as(DType::of<T>(), selection, rule, io);
    }
    [[nodiscard]] NDArray read_as(const DType& dtype, std::string_view selection = "", Cast rule = Cast::same_kind,
                                  const IoOptions& io = {}) const;
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io = {}) const override;
    void read_into(const Selection& selection, const MutableArrayView& out, const IoOptions& io = {}) const;
    void read_into(std::string_view selection, const MutableArrayView& out, const IoOptions& io = {}) const;

    /// Writes; `in` has the shape of the region or selection (dropped dimensions may be left out of it), and this dtype
    /// but for byte order. Chunks that become equal to the fill are erased.
    void write(const Region& region, const ArrayView& in, const IoOptions& io = {}) override;
    void write(const Selection& selection, const ArrayView& in, const IoOptions& io = {});
    void write(std::string_view selection, const ArrayView& in, const IoOptions& io = {});
    /// The same from contiguous elements (a vector, an array, a span) in C order, as many as are picked:
    /// `a.write("3, :5", std::vector{1, 2, 3, 4, 5})`.
    template <ElementRange R>
    void write(const Region& region, const R& elements, const IoOptions& io = {}) {
        write(region, tessera::view(elements, region.extent), io);
    }
    template <ElementRange R>
    void write(const Selection& selection, const R& elements, const IoOptions& io = {}) {
        write(selection, tessera::view(elements, selection.full_shape()), io);
    }
    template <ElementRange R>
    void write(std::string_view selection, const R& elements, const IoOptions& io = {}) {
        refresh();
        write(Selection::parse(selection, shape()), elements, io);
    }
    /// The same value for every picked element, as fill: `a.write("3, :5", 0)`.
    template <OneElement T>
    void write(const Region& region, const T& value, const IoOptions& io = {}) {
        fill(Selection(region, shape()), Value(value), io);
    }
    template <OneElement T>
    void write(const Selection& selection, const T& value, const IoOptions& io = {}) {
        fill(selection, Value(value), io);
    }
    template <OneElement T>
    void write(std::string_view selection, const T& value, const IoOptions& io = {}) {
        fill(selection, Value(value), io);
    }
    /// For writes in several parts, before the first: throws invalid_argument, naming it, where a link that must not be
    /// followed (StoreOptions::follow_links) leads to chunks of the selection. Each write asks for itself.
    void require_direct(const Selection& selection) const;
    /// Reads many regions, or single elements, at once: far faster than one after another, because each chunk that they
    /// touch is read and decoded once, whatever their order. Throws as read_into.
    void read_many(std::span<const RegionRead> parts, const IoOptions& io = {}) const;
    /// Writes many regions at once: each chunk that they touch is decoded and encoded once. Where they overlap, the
    /// later one holds. Not one step: another reader may see some chunks written and others not.
    void write_many(std::span<const RegionWrite> parts, const IoOptions& io = {});
    /// Elements at many places, in the order of these, as an array of one dimension; and written likewise. A place that
    /// is given twice holds the later value.
    [[nodiscard]] NDArray read_points(std::span<const Index> points, const IoOptions& io = {}) const;
    void write_points(std::span<const Index> points, const ArrayView& values, const IoOptions& io = {});
    /// Changes elements by what they are: each chunk's part of the selection is read, changed by the function and
    /// written under that chunk's lock, so that no change of anybody else is lost, increments of many processes too.
    /// Chunks are changed one by one, each durable as the store says, and not all at once. `change` gets the part as
    /// an array of its own, with `place` telling where that lies in the selection's full_shape(); it may run in several
    /// threads at once, and again for the same part where memory ran short; it must not write to this array. What it
    /// throws is thrown here: that chunk is then as it was, and chunks that were changed before stay changed.
    using Change = std::function<void(const Region& place, const MutableArrayView& elements)>;
    void update(const Selection& selection, const Change& change, const IoOptions& io = {});
    void update(std::string_view selection, const Change& change, const IoOptions& io = {});
    /// Sets every picked element to one value, as NumPy's a[sel] = v, but refusing what does not fit the dtype.
    void fill(const Selection& selection, const Value& value, const IoOptions& io = {});
    void fill(std::string_view selection, const Value& value, const IoOptions& io = {});
    [[nodiscard]] std::unique_ptr<ArraySink> open_shard(const Region& region) override;
    void finish() override;  ///< the end of what went through open_shard(); every write is complete when it returns

    /// Names the dimensions, one name (or none) for each; no names at all take those that are there away. They are a
    /// member of v3's metadata, and xarray's attribute `_ARRAY_DIMENSIONS` elsewhere. Throws invalid_argument for
    /// another number of names.
    void set_dimension_names(const std::vector<std::optional<std::string>>& names);
    /// Grows or shrinks along any dimensions. New elements read as fill, also inside boundary chunks; chunks outside
    /// are deleted. Growing writes data first and metadata last, shrinking the other way round.
    void resize(const Shape& shape, const IoOptions& io = {});
    /// Writes `in` after the present end along `axis`: data first, then the shape. Returns the old length there.
    /// One with a dimension less, which lacks `axis`, is appended as one step along it.
    std::int64_t append(const ArraySource& in, int axis = 0, const IoOptions& io = {});
    std::int64_t append(const ArrayView& in, int axis = 0, const IoOptions& io = {});

    /// Counts the stored chunks. Their sizes are asked for one by one, which takes several times as long as counting:
    /// for all of the first `exactly`, and for one in 64 of those beyond, each of which then stands for 64.
    [[nodiscard]] StoredSize stored_size(std::int64_t exactly = std::numeric_limits<std::int64_t>::max()) const;
    /// Whether every chunk (with shards: every shard) that a region touches is stored.
    [[nodiscard]] bool is_stored(const Region& region) const;
    /// The chunks (with shards: the shards) as blocks, each with a halo round it; is_stored() of a block's region says
    /// whether it is there. See blocks.h for a loop with threads.
    [[nodiscard]] Blocks blocks(const Shape& halo = {}) const;

private:
    friend struct ArrayAccess;  ///< for the rest of the library
    explicit Array(std::shared_ptr<struct ArrayState> state) : state_(std::move(state)) {}
    std::shared_ptr<struct ArrayState> state_;
};

}  // namespace tessera
