// Array: a chunked array in a store, and ArrayOptions: how to create one, and in which format.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
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
#include <tessera/chunk_grid.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/ndarray.h>
#include <tessera/selection.h>
#include <tessera/shape.h>
#include <tessera/view.h>

namespace tessera {

/// How to create an array. Only shape and dtype are needed.
struct ArrayOptions {
    Shape shape;
    Shape chunks = {};  ///< empty: about 1 MiB is chosen (choose_chunks)
    DType dtype;
    /// Must fit the dtype. nullopt: the dialect's default, and in v2 with names of dimensions null, because xarray
    /// takes elements that equal v2's fill for missing ones.
    std::optional<Value> fill_value = std::nullopt;
    Shape shards = {};  ///< v3: shape of a shard, a multiple of chunks; empty: no sharding
    /// v3: the lengths along each dimension, where they differ, instead of `chunks` or `shards`. In shards that differ
    /// the chunks have one shape, of which every shard's is a multiple.
    std::vector<ChunkEdges> edges = {};
    std::vector<ChunkEdges> shard_edges = {};
    std::string codec = "blosc:lz4:5:shuffle";  ///< as parse_codecs reads it
    /// "zmeta", "v1", "v2", "v3" and so on. Empty: choose_format() chooses, usually zmeta, the project's own layout.
    /// Name "v3" for what other programs read, as the Python module does by default.
    std::string format = "";
    Order order = Order::C;       ///< of the elements within a chunk
    std::string separator = "";   ///< between the indices of chunk keys, "." or "/"; empty: the dialect's own
    std::string structures = "";  ///< v3: the name of structures, "struct", or "structured" for zarr-python before 3.3
    std::vector<std::optional<std::string>> dimension_names = {};  ///< empty, or one per dimension
    Value attributes = Value::object();                            ///< written when not empty
};

/// The format of new arrays for which none is named: `preferred`, else zmeta. Throws invalid_argument for no format's
/// name. The library reads no environment: what a user prefers is the caller's to say.
[[nodiscard]] const Dialect& default_format(std::string_view preferred = "");

struct FormatChoice {
    const Dialect* dialect = nullptr;
    std::optional<Note> note = std::nullopt;  ///< why it is not the default one, as a sentence
};
/// The format of a new array: the one that the options name; else the default one; else v3, if the default one cannot
/// express what is asked (codecs, shards, names of dimensions, …) and v3 can.
[[nodiscard]] FormatChoice choose_format(const ArrayOptions& options, std::string_view preferred = "");

/// The metadata that these options describe, in the dialect that they name (or that choose_format() chooses). If that
/// dialect has no dimension names, new_attributes() returns them. Throws as Array::create.
[[nodiscard]] ArrayMetadata make_metadata(const ArrayOptions& options);
/// The attributes, including xarray's `_ARRAY_DIMENSIONS` if the dialect has no other place for dimension names.
[[nodiscard]] Value new_attributes(const ArrayOptions& options);

/// A fill that is not defined.
[[nodiscard]] FillValue null_fill();
/// A warning if elements that were never written have no value in a new array, because its fill, which nobody chose, is
/// null: in formats whose fill xarray takes for missing.
[[nodiscard]] std::optional<Note> undefined_note(const Dialect& dialect, const ArrayMetadata& metadata);

/// One of many regions to read, and the memory that receives it. `out` has the region's shape and the array's dtype, in
/// any byte order.
struct RegionRead {
    Region region;
    MutableArrayView out;
};
/// One of many regions to write. `in` as RegionRead::out.
struct RegionWrite {
    Region region;
    ArrayView in;
};

/// How much of an array is stored. With shards each shard counts as one chunk here.
struct StoredSize {
    bool known = true;  ///< false: the store lists nothing, and no chunk was asked for; chunks_possible alone holds
    std::int64_t chunks = 0;  ///< chunk values that exist inside the grid
    std::int64_t chunks_possible = 0;
    std::uint64_t bytes = 0;  ///< of those chunk values; an estimate unless all were `sized`
    std::int64_t sized = 0;   ///< chunk values whose size was queried
    std::int64_t strays = 0;  ///< other values stored beside them: chunks outside the grid, locks, leftovers
};

/// Attributes of one array or group. Each call reads or writes the stored document. Thread rule: as Array.
class Attributes {
public:
    [[nodiscard]] Value all() const;                    ///< an object
    [[nodiscard]] std::optional<Value> stored() const;  ///< nullopt if none were ever stored
    [[nodiscard]] std::optional<Value> get(std::string_view key) const;
    void set(std::string_view key, Value value);
    bool erase(std::string_view key);  ///< false when it was absent
    /// Renames an attribute, keeping its position. Throws not_found, or already_exists if the new name is taken; both
    /// leave the attributes unchanged.
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

/// Contiguous elements of any type that DType::of knows; Array::write accepts them without view().
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                       !std::convertible_to<const R&, std::string_view> &&
                       !std::convertible_to<const R&, ArrayView>;
/// One value that Array::write assigns to all elements: a number, a bool, a string, a time, a structure.
template <class T>
concept OneElement = std::is_arithmetic_v<T> || std::convertible_to<const T&, std::string_view> || RegisteredType<T>;

/// A handle to a chunked array; copies are the same array.
/// Thread rule: every member may be called from several threads at once, and other handles to the same array may be
/// used beside it: writers of one chunk take turns, readers see each chunk whole, old or new.
class Array final : public ArraySource, public ArraySink {
public:
    /// Opens an existing array. Throws not_found (naming what is at the path instead), corrupt, unsupported.
    [[nodiscard]] static Array open(const std::filesystem::path& path, const StoreOptions& options = {});
    [[nodiscard]] static Array open(Place place);
    /// Creates a new array. Throws already_exists if something is there, and invalid_argument or unsupported for
    /// options that the dialect cannot express; nothing is written then. If another run is making something at the same
    /// place, waits for it.
    static Array create(const std::filesystem::path& path, const ArrayOptions& options, const StoreOptions& store = {});
    static Array create(Place place, const ArrayOptions& options);
    /// The same, with complete metadata. If `publish` is false, the metadata is not written until publish(), so that an
    /// unfinished array does not open.
    static Array create(Place place, const Dialect& dialect, ArrayMetadata metadata, bool publish = true);
    void publish();

    [[nodiscard]] ArrayInfo info() const override;
    [[nodiscard]] const std::string& name() const override;
    [[nodiscard]] Value attribute_values() const override { return attributes().all(); }
    [[nodiscard]] std::optional<ElementBytes> fill_bytes() const override { return metadata().fill.bytes; }
    [[nodiscard]] std::optional<ElementBytes> absent_element() const override;
    [[nodiscard]] bool visit_stored(const std::function<void(const Region&)>& each) const override;
    [[nodiscard]] Attributes attributes() const;
    [[nodiscard]] const Dialect& dialect() const;
    /// The metadata as last loaded; a resize through another handle shows after refresh().
    [[nodiscard]] ArrayMetadata metadata() const;
    [[nodiscard]] Shape shape() const { return info().shape; }
    [[nodiscard]] DType dtype() const { return info().dtype; }
    [[nodiscard]] Shape chunks() const { return info().chunks; }  ///< units of decoding: with shards, inner chunks
    [[nodiscard]] Shape shards() const { return info().shards; }  ///< empty without sharding
    /// Loads the metadata again if they changed, because another handle or process resized the array, for example. This
    /// handle's copies see them, too. Elements need no refresh: each read takes the stored ones.
    void refresh();
    /// Makes this handle and its copies store chunks that equal the fill, instead of erasing them.
    void store_fill();
    /// One field of an array of structures, for reading and writing it alone: `table.field("close")`. Throws not_found,
    /// listing the fields, and invalid_argument if elements are not structures.
    [[nodiscard]] class ArrayField field(std::string_view name) const;

    /// Reads the elements of a selection into a fresh array without the dropped dimensions. No read refreshes: texts
    /// and bounds are those of shape(), as last loaded. If others may have resized the array, call refresh() first.
    [[nodiscard]] NDArray read(SelectionText selection = "", const IoOptions& io = {}) const;
    [[nodiscard]] NDArray read(const Selection& selection, const IoOptions& io = {}) const;
    [[nodiscard]] NDArray read(const Region& region, const IoOptions& io = {}) const;
    /// The same, converted to another dtype: `a.read<float>("3, :5")`. If `rule` does not allow the conversion
    /// (derived_source.h), throws invalid_argument, naming the first element that does not fit.
    template <class T>
    [[nodiscard]] NDArray read(SelectionText selection = "", Cast rule = Cast::same_kind,
                               const IoOptions& io = {}) const {
        return read_as(DType::of<T>(), selection, rule, io);
    }
    [[nodiscard]] NDArray read_as(const DType& dtype, SelectionText selection = "", Cast rule = Cast::same_kind,
                                  const IoOptions& io = {}) const;
    /// The same into memory of the caller, with the array's dtype in any byte order. Does not refresh either.
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io = {}) const override;
    void read_into(const Selection& selection, const MutableArrayView& out, const IoOptions& io = {}) const;
    void read_into(SelectionText selection, const MutableArrayView& out, const IoOptions& io = {}) const;
    void read_picked(const Selection& selection, const MutableArrayView& out, const IoOptions& io) const override {
        read_into(selection, out, io);
    }

    /// Writes. `in` has the shape of the region or selection (dropped dimensions may be left out) and the array's
    /// dtype, in any byte order. Chunks that become equal to the fill are erased.
    ///
    /// Each write refreshes. A text is then read for the present shape. A Region or Selection that was made of an older
    /// shape stays as it is, and one value for a Region must lie in shape() as last loaded.
    ///
    /// Write whole chunks (with shards: whole shards) where you can, each once. A write to a part of a chunk reads,
    /// decodes and encodes that chunk again, as a rule. A write to a part of a shard stores the whole shard anew.
    void write(const Region& region, const ArrayView& in, const IoOptions& io = {}) override;
    void write(const Selection& selection, const ArrayView& in, const IoOptions& io = {});
    void write(SelectionText selection, const ArrayView& in, const IoOptions& io = {});
    /// The same with contiguous elements (a vector, an array, a span) in C order, one for each picked element:
    /// `a.write("3, :5", std::vector{1, 2, 3, 4, 5})`. Texts are read as by parse_selection: "time=2020-01, lat~45".
    template <ElementRange R>
    void write(const Region& region, const R& elements, const IoOptions& io = {}) {
        write(region, tessera::view(elements, region.extent), io);
    }
    template <ElementRange R>
    void write(const Selection& selection, const R& elements, const IoOptions& io = {}) {
        write(selection, tessera::view(elements, selection.full_shape()), io);
    }
    template <ElementRange R>
    void write(SelectionText selection, const R& elements, const IoOptions& io = {}) {
        refresh();
        write(parse_selection(selection, *this), elements, io);
    }
    /// The same with elements of another dtype: `a.write("3", std::vector{1.5, 2.5}, Cast::round)`. They are converted
    /// first. If `rule` does not allow the conversion (derived_source.h), throws invalid_argument, naming the first
    /// element that does not fit; nothing is written then.
    void write(const Region& region, const ArrayView& in, Cast rule, const IoOptions& io = {});
    void write(const Selection& selection, const ArrayView& in, Cast rule, const IoOptions& io = {});
    void write(SelectionText selection, const ArrayView& in, Cast rule, const IoOptions& io = {});
    template <ElementRange R>
    void write(const Region& region, const R& elements, Cast rule, const IoOptions& io = {}) {
        write(region, tessera::view(elements, region.extent), rule, io);
    }
    template <ElementRange R>
    void write(const Selection& selection, const R& elements, Cast rule, const IoOptions& io = {}) {
        write(selection, tessera::view(elements, selection.full_shape()), rule, io);
    }
    template <ElementRange R>
    void write(SelectionText selection, const R& elements, Cast rule, const IoOptions& io = {}) {
        refresh();
        write(parse_selection(selection, *this), elements, rule, io);
    }
    /// The same value for every picked element, as fill: `a.write("3, :5", 0)`.
    template <OneElement T>
    void write(const Region& region, const T& value, const IoOptions& io = {}) {
        write(Selection(region, shape()), value, io);
    }
    template <OneElement T>
    void write(const Selection& selection, const T& value, const IoOptions& io = {}) {
        if constexpr (RegisteredType<T>) {
            fill(selection, ArrayView(&value, {}, {}), io);
        } else {
            fill(selection, Value(value), io);
        }
    }
    template <OneElement T>
    void write(SelectionText selection, const T& value, const IoOptions& io = {}) {
        refresh();
        write(parse_selection(selection, *this), value, io);
    }
    /// Call before the first part of a write in several parts. Throws invalid_argument, naming the link, if chunks of
    /// the selection lie behind a link that must not be followed (StoreOptions::follow_links). Each single write makes
    /// this check itself.
    void require_direct(const Selection& selection) const;
    /// Reads many regions, or single elements, at once. Much faster than one call for each: every touched chunk is read
    /// and decoded only once, in whatever order the regions come. Throws as read_into.
    void read_many(std::span<const RegionRead> parts, const IoOptions& io = {}) const;
    /// Writes many regions at once: each chunk that they touch is decoded and encoded once. Where regions overlap, the
    /// later one wins. Not atomic: a reader may see some chunks written and others not.
    void write_many(std::span<const RegionWrite> parts, const IoOptions& io = {});
    /// Reads or writes the elements at many indices, as a 1-d array in the order of `points`. If an index is written
    /// twice, the later value wins.
    [[nodiscard]] NDArray read_points(std::span<const Index> points, const IoOptions& io = {}) const override;
    /// `a.read_points({{3, 4}, {1, 2}})`
    [[nodiscard]] NDArray read_points(std::initializer_list<Index> points, const IoOptions& io = {}) const {
        return read_points(std::span<const Index>(points.begin(), points.size()), io);
    }
    /// The same for the rows of a table of indices: rank() numbers for each element of `out`, a 1-d view (any stride)
    /// with the array's dtype in either byte order. Only the needed blocks of each chunk are decoded.
    void read_points(std::span<const std::int64_t> indices, const MutableArrayView& out,
                     const IoOptions& io = {}) const;
    void write_points(std::span<const Index> points, const ArrayView& values, const IoOptions& io = {});
    /// Read-modify-write. Each chunk's part of the selection is read, changed by `change` and written back under that
    /// chunk's lock, so that no concurrent change is lost, not even increments from many processes. Chunks are changed
    /// one by one, not atomically together; each is as durable as the store's Durability says. `change` gets the part
    /// as an array of its own; `place` is its position in the selection's full_shape(). `change` may run in several
    /// threads at once, and again for the same part if memory ran short. If it writes to this array, that throws. Its
    /// exceptions propagate: that chunk stays as it was, and chunks changed earlier stay changed.
    using Change = std::function<void(const Region& place, const MutableArrayView& elements)>;
    void update(const Selection& selection, const Change& change, const IoOptions& io = {});
    void update(SelectionText selection, const Change& change, const IoOptions& io = {});
    /// Sets every picked element to one value, as NumPy's a[sel] = v, but throws if the value does not fit the dtype.
    void fill(const Selection& selection, const Value& value, const IoOptions& io = {});
    /// The same with an element, a view without dimensions. Times may have another unit than the array.
    void fill(const Selection& selection, const ArrayView& element, const IoOptions& io = {});
    void fill(SelectionText selection, const Value& value, const IoOptions& io = {});
    [[nodiscard]] std::unique_ptr<ArraySink> open_shard(const Region& region) override;
    void finish() override;  ///< ends writing through open_shard(); all writes are complete afterwards

    /// Names the dimensions, one name (or none) for each; an empty vector removes existing names. Names are a member of
    /// v3's metadata, and xarray's attribute `_ARRAY_DIMENSIONS` elsewhere. Throws invalid_argument for a wrong number
    /// of names.
    void set_dimension_names(const std::vector<std::optional<std::string>>& names);
    /// Grows or shrinks along any dimensions. New elements read as fill, also inside boundary chunks. Chunks outside
    /// the new shape are deleted. Growing writes data first and metadata last; shrinking does the reverse.
    void resize(const Shape& shape, const IoOptions& io = {});
    /// Writes `in` after the present end along `axis`: data first, then the shape. Returns the old length of `axis`. If
    /// `in` lacks the dimension `axis`, it is appended as one step along it.
    std::int64_t append(const ArraySource& in, int axis = 0, const IoOptions& io = {});
    std::int64_t append(const ArrayView& in, int axis = 0, const IoOptions& io = {});
    /// The same with contiguous elements (a vector, an array, a span), as one dimension: `a.append(std::vector{1, 2})`.
    template <ElementRange R>
    std::int64_t append(const R& elements, int axis = 0, const IoOptions& io = {}) {
        return append(tessera::view(elements), axis, io);
    }

    /// Counts the stored chunks and sums their sizes. Querying a size takes several times as long as counting the
    /// chunk. So sizes are queried for the first `exactly` chunks, and beyond them for one in 64, which counts for 64.
    [[nodiscard]] StoredSize stored_size(std::int64_t exactly = std::numeric_limits<std::int64_t>::max()) const;
    /// Whether all chunks (with shards: all shards) that a region touches are stored.
    [[nodiscard]] bool is_stored(const Region& region) const;
    /// The chunks (with shards: the shards) as blocks, each surrounded by a halo. is_stored() of a block's region says
    /// whether the block is stored. See Blocks for a loop with threads.
    [[nodiscard]] Blocks blocks(const Shape& halo = {}) const;

private:
    friend struct ArrayAccess;  ///< for the rest of the library
    explicit Array(std::shared_ptr<struct ArrayState> state) : state_(std::move(state)) {}
    std::shared_ptr<struct ArrayState> state_;
};

/// The source as a stored array; nullptr if it is none: an array file, or something that is computed as it is read.
[[nodiscard]] const Array* as_array(const ArraySource& source);

/// A handle to a field, as Array::field() gives it. The dimensions of a sub-array follow those of the array.
/// Thread rule: as Array.
class ArrayField final : public ArraySource {
public:
    ArrayField(const Array& array, std::string_view name);

    [[nodiscard]] ArrayInfo info() const override { return source_->info(); }
    [[nodiscard]] const std::string& name() const override { return source_->name(); }
    [[nodiscard]] Value attribute_values() const override { return source_->attribute_values(); }
    [[nodiscard]] Shape shape() const { return info().shape; }
    [[nodiscard]] DType dtype() const { return info().dtype; }
    [[nodiscard]] const Array& array() const { return array_; }

    /// Reads the elements of a selection. Only the chunks that it touches are read, and only the field is kept.
    [[nodiscard]] NDArray read(SelectionText selection = "", const IoOptions& io = {}) const;
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io = {}) const override;

    /// Writes the field of the structures that a selection picks. Their other fields keep even concurrent changes
    /// (Array::update). `in` has the shape of the selection and the field's dtype, in any byte order.
    void write(const Selection& selection, const ArrayView& in, const IoOptions& io = {});
    void write(SelectionText selection, const ArrayView& in, const IoOptions& io = {});
    /// As Array::require_direct.
    void require_direct(const Selection& selection) const;

private:
    Array array_;
    std::string field_;
    std::shared_ptr<const ArraySource> source_;
};

}  // namespace tessera
