#include "hdf5_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>

#include <tessera/unicode.h>

#include "../array_file_row.h"
#include "../hdf5_index.h"
#include "hdf5_absent.h"
#include "hdf5_driver.h"
#include "hdf5_file.h"
#include "hdf5_sources.h"

namespace tessera {

namespace {

Hdf5Id open_hdf5_file(const ArrayPath& path) {
    forget_hdf5_failure();
    const std::string& name = path.path.native();
    Hdf5Id file = path.is_elsewhere() ? open_hdf5_bytes(path.opened)
                                      : Hdf5Id(H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!file.good()) throw hdf5_failure(fmt::format("{}: libhdf5 cannot open it", name));
    return file;
}

/// One dataset.
class Hdf5Source final : public ArraySource {
public:
    Hdf5Source(const ArrayPath& path, const std::string& member) : Hdf5Source(path, member, open_hdf5_file(path)) {
        in_context([&] { return name_; },
                   [&] {
                       absent_ = Hdf5Absent::find(file_.get(), dataset_.get(), *path.bytes(), type_, stored_);
                       if (stored_ != info_.shape) beyond_ = Hdf5Absent::all(dataset_.get(), type_, info_.shape);
                   });
        rethrow_hdf5();
    }
    /// By its header alone: no elements are read by way of it.
    Hdf5Source(const ArrayPath& path, const std::string& member, Hdf5Id file)
        : name_(fmt::format("{}::{}", path.path.native(), member)),
          elsewhere_(path.is_elsewhere()),
          file_(std::move(file)) {
        in_context([&] { return name_; }, [&] { open(member); });
        rethrow_hdf5();
    }
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }
    Value attribute_values() const override { return attributes_; }
    const Value& facts() const { return facts_; }
    std::optional<std::vector<std::byte>> absent_element() const override {
        return absent_ && !is_utf8_ ? absent_->element() : std::nullopt;
    }
    bool visit_stored(const std::function<void(const Region&)>& each) const override {
        if (!absent_ || is_utf8_) return false;
        absent_->visit_stored(each);
        return true;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        in_context([&] { return name_; },
                   [&] {
                       require_inside(region, info_.shape);
                       if (region.empty()) return;
                       if (io.stop.stop_requested()) throw cancelled("stopped on request");
                       is_utf8_ ? read_utf8(region, out) : read_part(region, out);
                   });
    }

private:
    void read_part(const Region& region, const MutableArrayView& out) const {
        const Region part = beyond_ ? intersection(region, Region::whole(stored_)) : region;
        if (part.extent != region.extent) beyond_->fill(out);
        if (part.empty()) return;
        Region inside = part;
        for (int d = 0; d < part.rank(); ++d) inside.start[d] -= region.start[d];
        const MutableArrayView to = out.part(inside);
        absent_ ? read_stored(part, to) : read(part, to);
    }

    /// Texts of fixed length, whose bytes are UTF-8.
    void read_utf8(const Region& region, const MutableArrayView& out) const {
        NDArray codes(type_.dtype, region.extent);
        read_part(region, codes.view());
        const auto size = static_cast<std::size_t>(type_.dtype.size());
        const MemoryHold held(static_cast<std::uint64_t>(codes.count()) * sizeof(VariableSlot));
        std::vector<VariableSlot> slots;
        for (std::int64_t i = 0; i < codes.count(); ++i) {
            std::string text(reinterpret_cast<const char*>(codes.bytes().data()) + static_cast<std::size_t>(i) * size,
                             size);
            text.erase(text.find_last_not_of('\0') + 1);
            slots.push_back(out.arena->add(count_utf8(text) ? text : latin1_to_utf8(text)));
        }
        copy_elements(view_bytes(reinterpret_cast<const std::byte*>(slots.data()), info_.dtype, region.extent), out);
    }

    void read(const Region& region, const MutableArrayView& out) const {
        require_memory(chunk_bytes_);
        type_.dtype.is_variable() ? read_texts(region, out) : read_elements(region, out);
    }

    void read_stored(const Region& region, const MutableArrayView& out) const {
        const Region chunks = absent_->grid().overlapping(region);
        if (!absent_->any_stored(chunks)) return absent_->fill(out);
        if (!type_.dtype.is_variable() || chunks.count() == 1) return read(region, out);
        for (std::int64_t n = 0; n < chunks.count(); ++n) {
            const ChunkPart part = chunk_part(absent_->grid(), region, chunks, n);
            Region piece = part.in_request;
            for (int d = 0; d < piece.rank(); ++d) piece.start[d] += region.start[d];
            read_stored(piece, out.part(part.in_request));
        }
    }

    void open(const std::string& member) {
        dataset_ = open_hdf5_object(file_.get(), member);
        if (H5Iget_type(dataset_.get()) != H5I_DATASET) throw not_found("is a group; name an array in it");
        const Hdf5Id type(H5Dget_type(dataset_.get()), H5Tclose);
        type_ = hdf5_type(type.get());
        const Hdf5Id space(H5Dget_space(dataset_.get()), H5Sclose);
        if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) throw unsupported("has no elements, not even none");
        std::array<hsize_t, H5S_MAX_RANK> lengths{};
        const int rank = H5Sget_simple_extent_dims(space.get(), lengths.data(), nullptr);
        if (rank < 0) throw hdf5_failure("its shape cannot be read");
        if (rank > max_rank) throw unsupported("{} dimensions: Tessera handles at most {}", rank, max_rank);
        is_utf8_ = type_.dtype.kind() == Kind::bytes && type_.dtype.size() > 1 &&
                   H5Tget_cset(type_.memory.get()) == H5T_CSET_UTF8;
        info_ = {is_utf8_ ? DType::variable_text() : type_.dtype, {}, {}};
        for (int d = 0; d < rank; ++d) {
            const hsize_t length = lengths[static_cast<std::size_t>(d)];
            if (length > static_cast<hsize_t>(INT64_MAX)) throw corrupt("dimension {} has length {}", d, length);
            info_.shape.push_back(static_cast<std::int64_t>(length));
        }
        stored_ = info_.shape;
        info_.shape = netcdf4_shape(dataset_.get(), stored_);
        try {
            (void)byte_count(info_.shape, info_.dtype.size());
        } catch (const Error& e) {
            throw corrupt(e.what());
        }
        require_hdf5_sources(dataset_.get(), elsewhere_);
        dataset_ = open_with_hdf5_folder(std::move(dataset_));
        storage();
        attributes_ = hdf5_attributes(dataset_.get());
        if (auto names = hdf5_dimensions(dataset_.get(), rank, member)) {
            attributes_.set("_ARRAY_DIMENSIONS", *std::move(names));
        }
    }

    void storage() {
        const Hdf5Id list(H5Dget_create_plist(dataset_.get()), H5Pclose);
        const H5D_layout_t layout = H5Pget_layout(list.get());
        constexpr std::array<const char*, 4> layouts{"compact", "contiguous", "chunked", "virtual"};
        facts_.set("layout", layout >= 0 && layout < 4 ? layouts[static_cast<std::size_t>(layout)] : "unknown");
        Value filters = Value::array();
        for (int i = 0; i < H5Pget_nfilters(list.get()); ++i) {
            unsigned flags = 0, config = 0;
            std::size_t count = 0;
            std::array<char, 80> text{};
            const H5Z_filter_t id = H5Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &count, nullptr,
                                                   text.size() - 1, text.data(), &config);
            const std::string shown = hdf5_filter_name(id, text.data());
            if (H5Zfilter_avail(id) <= 0) {
                throw unsupported("its chunks need the filter {}, for which libhdf5 finds no plug-in", shown);
            }
            filters.push_back(shown);
        }
        facts_.set("filters", std::move(filters));
        if (layout != H5D_CHUNKED || info_.shape.empty()) return;
        std::array<hsize_t, H5S_MAX_RANK> lengths{};
        H5Pget_chunk(list.get(), info_.shape.rank(), lengths.data());
        std::int64_t bytes = type_.dtype.size();
        for (int d = 0; d < info_.shape.rank(); ++d) {
            const auto length = static_cast<std::int64_t>(lengths[static_cast<std::size_t>(d)]);
            bytes = checked_multiply(bytes, length, "the size of a chunk");
            info_.chunks.push_back(std::clamp<std::int64_t>(length, 1, std::max<std::int64_t>(info_.shape[d], 1)));
        }
        chunk_bytes_ = 2 * static_cast<std::uint64_t>(bytes);  // as stored and decoded
        facts_.set("chunks", Value::Array(info_.chunks.begin(), info_.chunks.end()));
    }

    static std::string hdf5_filter_name(H5Z_filter_t id, const char* text) {
        switch (id) {
            case H5Z_FILTER_DEFLATE:
                return "deflate";
            case H5Z_FILTER_SHUFFLE:
                return "shuffle";
            case H5Z_FILTER_FLETCHER32:
                return "fletcher32";
            case H5Z_FILTER_SZIP:
                return "szip";
            case H5Z_FILTER_NBIT:
                return "nbit";
            case H5Z_FILTER_SCALEOFFSET:
                return "scaleoffset";
            default:
                return fmt::format("{} ({})", id, *text == '\0' ? "no name" : text);
        }
    }

    void read_raw(const Region& region, void* to) const {
        forget_hdf5_failure();
        const Hdf5Region at(dataset_.get(), region);
        if (H5Dread(dataset_.get(), type_.memory.get(), at.memory.get(), at.file.get(), H5P_DEFAULT, to) < 0) {
            throw hdf5_failure(fmt::format("region {} cannot be read", region.to_string()));
        }
    }

    void read_elements(const Region& region, const MutableArrayView& out) const {
        if (out.dtype == type_.dtype && out.contiguous()) return read_raw(region, out.data);
        Buffer bytes(static_cast<std::size_t>(byte_count(region.extent, type_.dtype.size())));
        read_raw(region, bytes.data());
        copy_elements(view_bytes(std::as_const(bytes).data(), type_.dtype, region.extent), out);
    }

    void read_texts(const Region& region, const MutableArrayView& out) const {
        const auto count = static_cast<std::size_t>(element_count(region.extent));
        const MemoryHold held(count * (sizeof(char*) + sizeof(VariableSlot)));
        std::vector<char*> texts(count);
        std::vector<VariableSlot> slots(count);
        read_raw(region, texts.data());
        Arena* const arena = out.arena;
        for (std::size_t i = 0; i < count; ++i) {
            if (texts[i] == nullptr) continue;
            const std::string_view text = texts[i];
            slots[i] = arena->add(count_utf8(text) ? std::string(text) : latin1_to_utf8(text));
        }
        const std::array<hsize_t, 1> length{count};
        const Hdf5Id space(H5Screate_simple(1, length.data(), nullptr), H5Sclose);
        H5Dvlen_reclaim(type_.memory.get(), space.get(), H5P_DEFAULT, texts.data());
        copy_elements(view_bytes(reinterpret_cast<const std::byte*>(slots.data()), type_.dtype, region.extent), out);
    }

    std::string name_;
    bool elsewhere_;
    Hdf5Id file_, dataset_;
    Hdf5Type type_;
    ArrayInfo info_;
    Value attributes_ = Value::object(), facts_ = Value::object();
    std::uint64_t chunk_bytes_ = 0;
    bool is_utf8_ = false;                       ///< texts of fixed length as texts of any length
    Shape stored_;                               ///< netCDF-4's shape may be longer
    std::optional<Hdf5Absent> absent_, beyond_;  ///< chunks; what lies beyond `stored_`
};

Hdf5Tree tree_of(const ArrayPath& path) {
    const Hdf5Id file = open_hdf5_file(path);
    Hdf5Tree tree = in_context([&] { return path.path.string(); }, [&] { return hdf5_tree(file.get()); });
    rethrow_hdf5();
    return tree;
}

}  // namespace

std::vector<std::string> hdf5_members(const ArrayPath& path) {
    return tree_of(path).arrays;
}

std::vector<ArrayFileMember> hdf5_listed(const ArrayPath& path) {
    const Hdf5Id file = open_hdf5_file(path);
    std::vector<ArrayFileMember> members;
    for (const std::string& name : hdf5_tree(file.get()).arrays) {
        ArrayFileMember& member = members.emplace_back(ArrayFileMember{.name = name, .info = {}, .error = {}});
        try {
            H5Iinc_ref(file.get());
            member.info = Hdf5Source(path, name, Hdf5Id(file.get(), H5Fclose)).info();
        } catch (const Error& e) {
            member.error = e;
        }
    }
    rethrow_hdf5();
    return members;
}

std::vector<ArrayFileGroup> hdf5_groups(const ArrayPath& path) {
    const Hdf5Id file = open_hdf5_file(path);
    std::vector<ArrayFileGroup> groups;
    const Hdf5Tree tree = tree_of(path);
    for (const std::string& name : tree.groups) {
        groups.push_back({.name = name, .attributes = hdf5_attributes(open_hdf5_object(file.get(), name).get())});
    }
    for (const std::string& dimension : tree.unlimited) {
        const std::size_t slash = dimension.rfind('/');
        const std::string group = slash == std::string::npos ? "" : dimension.substr(0, slash);
        const auto of = std::ranges::find(groups, group, &ArrayFileGroup::name);
        if (of != groups.end()) of->unlimited.push_back(dimension.substr(slash == std::string::npos ? 0 : slash + 1));
    }
    rethrow_hdf5();
    return groups;
}

namespace {

std::unique_ptr<Hdf5Source> hdf5_source(const ArrayPath& path) {
    const std::string member = path.member ? *path.member : chosen_member(path, tree_of(path).arrays);
    return std::make_unique<Hdf5Source>(path, member);
}

}  // namespace

std::unique_ptr<ArraySource> hdf5_open(const ArrayPath& path) {
    return hdf5_source(path);
}

namespace {

// ---- chunks as Zarr v2 says them

/// One of HDF5's filters as a codec of numcodecs.
Value codec_of_filter(H5Z_filter_t id, const std::vector<unsigned>& values, std::int64_t item) {
    constexpr H5Z_filter_t bzip2 = 307, blosc = 32001, zstd = 32015;
    const auto number = [&](std::size_t i, std::int64_t otherwise) {
        return i < values.size() ? static_cast<std::int64_t>(values[i]) : otherwise;
    };
    switch (id) {
        case H5Z_FILTER_DEFLATE:
            return {{"id", "zlib"}, {"level", number(0, 1)}};
        case H5Z_FILTER_SHUFFLE:
            return {{"id", "shuffle"}, {"elementsize", number(0, item)}};
        case H5Z_FILTER_FLETCHER32:
            return {{"id", "fletcher32"}};
        case bzip2:
            return {{"id", "bz2"}, {"level", number(0, 9)}};
        case blosc: {
            constexpr std::array<const char*, 6> names{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
            const auto name = static_cast<std::size_t>(number(6, 0));
            return {{"id", "blosc"},
                    {"cname", name < names.size() ? names[name] : "lz4"},
                    {"clevel", number(4, 5)},
                    {"shuffle", number(5, 1)},
                    {"blocksize", 0}};
        }
        case zstd:
            return {{"id", "zstd"}, {"level", number(0, 3)}};
        default:
            throw unsupported("its chunks have a filter that Zarr does not have ({})", id);
    }
}

/// A dataset by its layout alone. Throws unsupported for what Zarr v2 cannot say.
class PackedDataset {
public:
    PackedDataset(const ByteSource& bytes, hid_t file, const std::string& member)
        : bytes_(bytes), dataset_(open_hdf5_object(file, member)) {
        if (H5Iget_type(dataset_.get()) != H5I_DATASET) throw not_found("is a group; name an array in it");
        array_.name = member;
        H5O_info_t own, root;
        if (H5Oget_info(dataset_.get(), &own) < 0 || H5Oget_info(file, &root) < 0) {
            throw hdf5_failure("its header cannot be read");
        }
        if (own.fileno != root.fileno) throw unsupported("it lies in another file");
        type_ = hdf5_type(Hdf5Id(H5Dget_type(dataset_.get()), H5Tclose).get());
        list_ = Hdf5Id(H5Dget_create_plist(dataset_.get()), H5Pclose);
    }

    PackedArray read() {
        const Hdf5Id stored(H5Dget_type(dataset_.get()), H5Tclose);
        const bool utf8 = type_.dtype.kind() == Kind::bytes && type_.dtype.size() > 1 &&
                          H5Tget_cset(type_.memory.get()) == H5T_CSET_UTF8;
        if (type_.dtype.is_variable() || utf8 || H5Tequal(stored.get(), type_.memory.get()) <= 0) {
            throw unsupported("its elements are stored in a way that only HDF5 reads");
        }
        if (H5Pget_external_count(list_.get()) > 0) throw unsupported("its elements lie in other files");
        array_.dtype = type_.dtype;
        const Hdf5Id space(H5Dget_space(dataset_.get()), H5Sclose);
        std::array<hsize_t, H5S_MAX_RANK> lengths{}, longest{};
        const int rank = H5Sget_simple_extent_dims(space.get(), lengths.data(), longest.data());
        if (rank < 0 || rank > max_rank || H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
            throw unsupported("it has no shape that Zarr has");
        }
        Shape most;
        for (int d = 0; d < rank; ++d) {
            array_.shape.push_back(length_of(lengths[static_cast<std::size_t>(d)]));
            const hsize_t n = longest[static_cast<std::size_t>(d)];
            most.push_back(n == H5S_UNLIMITED ? -1 : length_of(n));
        }
        if (netcdf4_shape(dataset_.get(), array_.shape) != array_.shape) {
            throw unsupported("it is stored shorter than its dimensions are");
        }
        array_.attributes = hdf5_attributes(dataset_.get());
        if (auto names = hdf5_dimensions(dataset_.get(), rank, array_.name)) {
            array_.attributes.set("_ARRAY_DIMENSIONS", *std::move(names));
        }
        const H5D_layout_t layout = H5Pget_layout(list_.get());
        if (layout == H5D_CONTIGUOUS) {
            const haddr_t offset = H5Dget_offset(dataset_.get());
            if (offset == HADDR_UNDEF) throw unsupported("it has no elements yet");
            array_.offset = offset;
            return std::move(array_);
        }
        if (layout != H5D_CHUNKED) throw unsupported("its elements do not lie in chunks");
        read_chunks(most);
        return std::move(array_);
    }

private:
    static std::int64_t length_of(hsize_t n) {
        if (n > static_cast<hsize_t>(INT64_MAX)) throw corrupt("a dimension has length {}", n);
        return static_cast<std::int64_t>(n);
    }

    void read_chunks(const Shape& most) {
        const int rank = array_.shape.rank();
        std::array<hsize_t, H5S_MAX_RANK> lengths{};
        H5Pget_chunk(list_.get(), rank, lengths.data());
        for (int d = 0; d < rank; ++d) {
            array_.chunks.push_back(std::max<std::int64_t>(length_of(lengths[static_cast<std::size_t>(d)]), 1));
        }
        const std::int64_t chunk_bytes = byte_count(array_.chunks, array_.dtype.size());
        const bool filtered = read_filters(0);
        H5O_info_t info;
        if (H5Oget_info(dataset_.get(), &info) < 0) throw corrupt("its header cannot be found: {}", hdf5_error());
        Hdf5Chunks found = read_hdf5_index(bytes_, info.addr, array_.shape, most, array_.chunks, chunk_bytes, filtered);
        const ChunkGrid grid(array_.shape, array_.chunks);
        bool at_edge = false;
        for (int d = 0; d < rank; ++d) at_edge = at_edge || array_.shape[d] % array_.chunks[d] != 0;
        if (found.edges_unfiltered && at_edge && filtered) throw unsupported("chunks at its end have no filters");
        array_.held.add(found.chunks.size() * sizeof(PackedArray::Chunk));
        const std::uint32_t left_out = found.chunks.empty() ? 0 : found.chunks.front().mask;
        for (const Hdf5Chunk& chunk : found.chunks) {
            if (chunk.mask != left_out) throw unsupported("some of its chunks were stored without one of the filters");
            array_.stored.push_back({chunk.number, chunk.offset, chunk.size});
        }
        if (left_out != 0 && !read_filters(left_out))
            array_.filters = Value::array();  // none, where libhdf5 asks for some
        read_fill(std::cmp_less(array_.stored.size(), grid.chunk_count()));
    }

    /// HDF5's shuffle leaves bytes behind the last whole element as they are, and Zarr's refuses them. `size` is that
    /// of a chunk before this codec; it becomes that after it, or nullopt if chunks differ.
    static void require_whole_elements(const Value& codec, std::optional<std::int64_t>& size) {
        constexpr std::int64_t checksum = 4;
        if (codec.at("id") == Value("shuffle")) {
            const std::int64_t item = std::max<std::int64_t>(codec.at("elementsize").as_int64(), 1);
            if (item > 1 && (!size || *size % item != 0)) {
                throw unsupported("its chunks are shuffled after a filter that changes their size");
            }
        } else if (codec.at("id") == Value("fletcher32")) {
            if (size) *size += checksum;
        } else {
            size.reset();
        }
    }

    /// Filter i is not one of the array's if bit i of `left_out` is set.
    bool read_filters(std::uint32_t left_out) {
        std::vector<Value> codecs;
        std::optional<std::int64_t> size = byte_count(array_.chunks, array_.dtype.size());
        array_.filters = array_.compressor = Value();
        for (int i = 0; i < H5Pget_nfilters(list_.get()); ++i) {
            if (i < 32 && (left_out >> i & 1U) != 0) continue;
            unsigned flags = 0, config = 0;
            std::array<unsigned, 32> values{};
            std::size_t count = values.size();
            const H5Z_filter_t id = H5Pget_filter2(list_.get(), static_cast<unsigned>(i), &flags, &count, values.data(),
                                                   0, nullptr, &config);
            const std::vector<unsigned> given(
                values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(count, values.size())));
            codecs.push_back(codec_of_filter(id, given, array_.dtype.size()));
            require_whole_elements(codecs.back(), size);
        }
        const bool any = !codecs.empty();
        const auto only_filters = [](const Value& codec) {
            return codec.at("id") == Value("shuffle") || codec.at("id") == Value("fletcher32");
        };
        if (any && !only_filters(codecs.back())) {
            array_.compressor = std::move(codecs.back());
            codecs.pop_back();
        }
        if (!codecs.empty()) array_.filters = Value(Value::Array(codecs.begin(), codecs.end()));
        return any;
    }

    /// Where chunks are missing, _FillValue must be what they read as.
    void read_fill(bool some_missing) {
        const Value* const given = array_.attributes.find("_FillValue");
        ElementBytes fill;
        if (given != nullptr) {
            try {
                fill = element_from_value(array_.dtype, *given, Assign::exact);
            } catch (const Error&) {
                fill.clear();  // a fill of another type is only an attribute
            }
        }
        if (some_missing) {
            ElementBytes own(static_cast<std::size_t>(array_.dtype.size()));
            H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
            H5Pfill_value_defined(list_.get(), &defined);
            if (defined != H5D_FILL_VALUE_UNDEFINED) {
                H5Pget_fill_value(list_.get(), type_.memory.get(), own.data());
            }
            if (own != fill) throw unsupported("its missing chunks do not read as its _FillValue");
        }
        if (!fill.empty()) array_.fill = element_to_value(array_.dtype, fill.data());
    }

    const ByteSource& bytes_;
    Hdf5Id dataset_, list_;
    Hdf5Type type_;
    PackedArray array_;
};

}  // namespace

std::vector<PackedArray> hdf5_packed(const ArrayPath& path) {
    const std::string name = path.path.string();
    const Hdf5Id file = open_hdf5_file(path);
    const auto bytes = path.bytes();
    std::vector<PackedArray> arrays;
    const auto add = [&](const std::string& member) {
        in_context([&] { return fmt::format("{}::{}", name, member); },
                   [&] { arrays.push_back(PackedDataset(*bytes, file.get(), member).read()); });
        rethrow_hdf5();
    };
    if (path.member) {
        add(*path.member);
        return arrays;
    }
    for (const std::string& member : tree_of(path).arrays) add(member);
    return arrays;
}

std::optional<PackedArray> hdf5_chunked(const ArrayPath& path) {
    try {
        ArrayPath one = path;
        if (!one.member) one.member = chosen_member(path, tree_of(path).arrays);
        std::vector<PackedArray> arrays = hdf5_packed(one);
        const PackedArray& array = arrays.front();
        const bool encoded = !array.filters.is_null() || !array.compressor.is_null();
        // Of a file that is far away many chunks are asked for at once.
        if (!encoded && (!path.is_elsewhere() || array.chunks.empty())) return std::nullopt;
        return std::move(arrays.front());
    } catch (const Error& e) {
        // libhdf5 may read it, or says why not. A damaged index, however, may lead it to fill values.
        if (e.code() != ErrorCode::unsupported && e.code() != ErrorCode::not_found) throw;
        return std::nullopt;
    }
}

Value hdf5_describe(const ArrayPath& path) {
    Value facts = Value::object();
    facts.set("format", "hdf5");
    if (path.member) {
        const auto source = hdf5_source(path);
        for (const auto& [name, value] : source->facts().as_object()) facts.set(name, value);
        facts.set("attributes", source->attribute_values());
        return facts;
    }
    const Hdf5Id file = open_hdf5_file(path);
    facts.set("attributes", hdf5_attributes(open_hdf5_object(file.get(), "").get()));
    rethrow_hdf5();
    return facts;
}

}  // namespace tessera
