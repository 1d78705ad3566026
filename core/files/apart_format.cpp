#include "apart_format.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/in_process.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>
#include <tessera/outside.h>
#include <tessera/parallel.h>

#include "plain_array.h"
#include "reader_process.h"
#include "wire.h"

namespace tessera {

namespace {

enum class ApartTask : std::uint64_t { members, groups, packed, chunked, open, describe, stored, read, close };

// ---- what goes over

void put_info(WireWriter& out, const ArrayInfo& info) {
    out.dtype(info.dtype);
    out.dims(info.shape);
    out.dims(info.chunks);
}

ArrayInfo get_info(WireReader& in) {
    ArrayInfo info;
    info.dtype = in.dtype();
    info.shape = in.dims();
    info.chunks = in.dims();
    return info;
}

void put_packed(WireWriter& out, const PackedArray& a) {
    out.text(a.name);
    put_info(out, {.dtype = a.dtype, .shape = a.shape, .chunks = a.chunks});
    out.number(a.offset);
    out.number(static_cast<std::uint64_t>(a.row_stride));
    for (const Value* v : {&a.attributes, &a.filters, &a.compressor, &a.fill}) out.value(*v);
    out.number(a.stored.size());
    out.raw(a.stored.data(), a.stored.size() * sizeof(PackedArray::Chunk));
}

PackedArray get_packed(WireReader& in) {
    PackedArray a;
    a.name = in.text();
    ArrayInfo info = get_info(in);
    a.dtype = std::move(info.dtype);
    a.shape = info.shape;
    a.chunks = info.chunks;
    a.offset = in.number();
    a.row_stride = static_cast<std::int64_t>(in.number());
    for (Value* v : {&a.attributes, &a.filters, &a.compressor, &a.fill}) *v = in.value();
    const std::uint64_t count = in.count(sizeof(PackedArray::Chunk));
    const ByteSpan bytes = in.part(count * sizeof(PackedArray::Chunk));
    a.held.add(bytes.size());
    a.stored.resize(static_cast<std::size_t>(count));
    std::ranges::copy(bytes, reinterpret_cast<std::byte*>(a.stored.data()));
    return a;
}

void put_region(WireWriter& out, const Region& region) {
    out.dims(region.start);
    out.dims(region.extent);
}

Region get_region(WireReader& in) {
    Region region;
    region.start = in.dims();
    region.extent = in.dims();
    return region;
}

/// What tells versions of files apart; what stands before the first space tells files apart.
std::string version_of(const std::string& path) {
    struct stat s {};
    if (::stat(path.c_str(), &s) != 0) return {};
    return fmt::format("{}:{} {} {} {}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

// ---- in the child

/// An array that the child has open.
struct OpenArray {
    std::uint64_t id = 0;
    std::string version;  ///< of its file
    std::unique_ptr<ArraySource> source;
};

std::deque<OpenArray>& open_arrays() {
    static std::deque<OpenArray> arrays;
    return arrays;
}

void close_arrays() {
    open_arrays().clear();
}

/// What all requests but `close` begin with.
struct ApartRequest {
    const InnerFormat* inner = nullptr;
    ArrayPath path;
    std::string version;  ///< of the file now; empty if it is elsewhere
};

/// A library that has a file open gives what it knows of it to whoever opens it again, even if it was written since.
void close_older(const std::string& version) {
    const std::string_view file = std::string_view(version).substr(0, version.find(' ') + 1);
    std::erase_if(open_arrays(),
                  [&](const OpenArray& a) { return a.version.starts_with(file) && a.version != version; });
}

const ArraySource& array_of(const ApartRequest& request, std::uint64_t id, std::string_view version) {
    auto& arrays = open_arrays();
    const auto known = std::ranges::find(arrays, id, &OpenArray::id);
    if (known != arrays.end()) return *known->source;
    if (!version.empty() && request.version != version) {
        throw Error(ErrorCode::io, fmt::format("{}: the file has changed since it was opened; open it again",
                                               request.path.path.string()));
    }
    constexpr std::size_t most = 32;
    if (arrays.size() >= most) arrays.pop_front();
    arrays.push_back({id, request.version, request.inner->row.open(request.path, {})});
    when_reader_rests(close_arrays);
    return *arrays.back().source;
}

/// Where the elements begin if they lie in the file as they are; else 0.
std::uint64_t plain_offset(const ApartRequest& request, const ArrayInfo& info) {
    if (!info.chunks.empty() || info.dtype.is_variable() || element_count(info.shape) == 0) return 0;
    try {
        const std::vector<PackedArray> arrays = request.inner->row.packed(request.path);
        const bool plain = arrays.size() == 1 && arrays.front().chunks.empty() && arrays.front().row_stride == 0 &&
                           arrays.front().dtype == info.dtype && arrays.front().shape == info.shape;
        return plain ? arrays.front().offset : 0;
    } catch (const Error&) {
        return 0;  // the library reads them
    }
}

void put_elements(const ArraySource& source, const Region& region, ReaderCall& call) {
    const DType dtype = source.info().dtype;
    if (!dtype.is_variable()) {
        const MutableArrayView out{call.space.data(), dtype, region.extent,
                                   contiguous_strides(region.extent, dtype.size()), nullptr};
        return source.read_into(region, out, {.threads = 1});
    }
    NDArray texts(dtype, region.extent);
    source.read_into(region, texts.view(), {.threads = 1});
    WireWriter out;
    const auto* const slots = reinterpret_cast<const VariableSlot*>(std::as_const(texts).view().data);
    for (std::int64_t i = 0; i < element_count(region.extent); ++i) out.text(slots[i].view());
    call.answer = out.take();
}

/// Reads what all requests but `close` begin with, and enters the folder of their paths.
ApartRequest get_request(WireReader& in) {
    ApartRequest request;
    request.inner = std::bit_cast<const InnerFormat*>(static_cast<std::uintptr_t>(in.number()));
    const std::string folder(in.text());
    if (::chdir(folder.c_str()) != 0) throw io_error("entering", folder, errno);
    request.path.path = std::string(in.text());
    const bool has_member = in.number() != 0;
    const std::string member(in.text());
    if (has_member) request.path.member = member;
    allow_outside(in.number() != 0);
    const bool elsewhere = in.number() != 0;
    const std::uint64_t size = in.number();
    if (elsewhere) {
        request.path.opened = std::make_shared<ParentBytes>(request.path.path.string(), size);
    } else {
        request.version = version_of(request.path.path.string());
        close_older(request.version);
    }
    return request;
}

void put_members(const ApartRequest& request, WireWriter& out) {
    const auto names = request.inner->row.members(request.path);
    out.number(names.size());
    for (const std::string& name : names) out.text(name);
}

void put_groups(const ApartRequest& request, WireWriter& out) {
    const auto groups = request.inner->row.groups(request.path);
    out.number(groups.size());
    for (const ArrayFileGroup& group : groups) {
        out.text(group.name);
        out.value(group.attributes);
    }
}

void put_all_packed(const ApartRequest& request, WireWriter& out) {
    const auto arrays = request.inner->row.packed(request.path);
    out.number(arrays.size());
    for (const PackedArray& a : arrays) put_packed(out, a);
}

void put_chunked(const ApartRequest& request, WireWriter& out) {
    const auto array = request.inner->row.chunked(request.path);
    out.number(array ? 1 : 0);
    if (array) put_packed(out, *array);
}

void put_opened(const ApartRequest& request, std::uint64_t id, WireWriter& out) {
    out.text(request.version);
    const ArraySource& source = array_of(request, id, {});
    out.text(source.name());
    put_info(out, source.info());
    out.value(source.attribute_values());
    out.number(plain_offset(request, source.info()));
    const auto absent = source.absent_element().value_or(std::vector<std::byte>());
    out.text({reinterpret_cast<const char*>(absent.data()), absent.size()});
}

void put_stored(const ArraySource& source, WireWriter& out) {
    const bool known = source.visit_stored([&](const Region& region) {
        out.number(1);
        put_region(out, region);
    });
    out.number(0);
    out.number(known ? 1 : 0);
}

void do_apart(ReaderCall& call) {
    WireReader in(call.request);
    const auto task = static_cast<ApartTask>(in.number());
    const std::uint64_t id = in.number();
    if (task == ApartTask::close) {
        std::erase_if(open_arrays(), [&](const OpenArray& a) { return a.id == id; });
        return;
    }
    const ApartRequest request = get_request(in);
    WireWriter out;
    switch (task) {
        case ApartTask::members:
            put_members(request, out);
            break;
        case ApartTask::groups:
            put_groups(request, out);
            break;
        case ApartTask::packed:
            put_all_packed(request, out);
            break;
        case ApartTask::chunked:
            put_chunked(request, out);
            break;
        case ApartTask::describe:
            out.value(request.inner->row.describe(request.path));
            break;
        case ApartTask::open:
            put_opened(request, id, out);
            break;
        case ApartTask::stored:
            put_stored(array_of(request, id, in.text()), out);
            break;
        case ApartTask::read: {
            const std::string_view version = in.text();
            const Region region = get_region(in);
            return put_elements(array_of(request, id, version), region, call);
        }
        case ApartTask::close:
            break;
    }
    call.answer = out.take();
}

// ---- in the parent

/// Where a relative path begins now.
std::string folder_of_paths() {
    std::error_code ignored;
    return std::filesystem::current_path(ignored).string();
}

WireWriter request_for(ApartTask task, const InnerFormat& inner, const ArrayPath& path, const std::string& folder,
                       std::uint64_t id = 0) {
    WireWriter out;
    out.number(static_cast<std::uint64_t>(task));
    out.number(id);
    out.number(std::bit_cast<std::uintptr_t>(&inner));
    out.text(folder);
    out.text(path.path.string());
    out.number(path.member ? 1 : 0);
    out.text(path.member.value_or(""));
    out.number(outside_allowed() ? 1 : 0);
    const bool elsewhere = path.is_elsewhere();
    out.number(elsewhere ? 1 : 0);
    out.number(elsewhere ? path.opened->size() : 0);
    return out;
}

/// Errors of the child itself do not know the file.
Buffer ask(const InnerFormat& inner, const std::string& name, ReaderWish wish) {
    wish.library = inner.library;
    wish.function = do_apart;
    wish.still = inner.still;
    try {
        return read_apart(wish);
    } catch (const Error& e) {
        const bool named = std::string_view(e.what()).find(name) != std::string_view::npos;
        if (named || e.code() == ErrorCode::cancelled) throw;
        throw e.within(name);
    }
}

Buffer ask(ApartTask task, const InnerFormat& inner, const ArrayPath& path) {
    const WireWriter request = request_for(task, inner, path, folder_of_paths());
    return ask(inner, path.path.string(),
               {.library = {},
                .function = nullptr,
                .request = request.bytes(),
                .source = path.opened.get(),
                .file = path.path.c_str()});
}

class ApartSource final : public ArraySource {
public:
    ApartSource(const InnerFormat& inner, ArrayPath path)
        : inner_(inner), path_(std::move(path)), folder_(folder_of_paths()), id_(next_id()) {
        std::shared_ptr<const ByteSource> file = path_.opened;
        if (!path_.is_elsewhere()) path_.opened = nullptr;
        name_ = path_.path.string();
        const WireWriter request = request_for(ApartTask::open, inner_, path_, folder_, id_);
        const Buffer answer = ask(inner_, name_, wish_for(request));
        WireReader in(answer);
        version_ = in.text();
        name_ = in.text();
        info_ = get_info(in);
        attributes_ = in.value();
        offset_ = in.number();
        const ByteSpan absent = in.part(in.number());
        if (!absent.empty()) absent_.emplace(absent.begin(), absent.end());
        item_ = info_.dtype.size();
        const auto bytes = static_cast<std::uint64_t>(byte_count(info_.shape, item_));
        if (offset_ != 0) file_ = file ? std::move(file) : path_.bytes();
        if (file_ && (bytes > file_->size() || offset_ > file_->size() - bytes)) file_ = nullptr;
        pieces_ = ChunkGrid(info_.shape, piece_shape());
        if (!info_.chunks.empty()) chunk_bytes_ = static_cast<std::uint64_t>(byte_count(info_.chunks, item_));
    }
    ~ApartSource() override {
        try {
            WireWriter out;
            out.number(static_cast<std::uint64_t>(ApartTask::close));
            out.number(id_);
            tell_readers(do_apart, out.bytes());
        } catch (...) {
            return;  // it closes the file when it rests
        }
    }
    ApartSource(const ApartSource&) = delete;
    ApartSource& operator=(const ApartSource&) = delete;

    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }
    Value attribute_values() const override { return attributes_; }
    std::optional<std::vector<std::byte>> absent_element() const override { return absent_; }

    bool visit_stored(const std::function<void(const Region&)>& each) const override {
        WireWriter request = request_for(ApartTask::stored, inner_, path_, folder_, id_);
        request.text(version_);
        const Buffer answer = ask(inner_, name_, wish_for(request));
        WireReader in(answer);
        while (in.number() != 0) each(get_region(in));
        return in.number() != 0;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        in_context([&] { return name_; }, [&] { require_inside(region, info_.shape); });
        if (region.empty()) return;
        if (file_) {
            const PlainLayout layout{.name = name_, .data_offset = offset_, .dtype = info_.dtype, .shape = info_.shape};
            return read_plain(*file_, layout, region, out, io);
        }
        const Region touched = pieces_.overlapping(region);
        parallel_in_memory(touched.count(), io, [&](std::int64_t n) {
            const ChunkPart part = chunk_part(pieces_, region, touched, n);
            Region piece = part.in_request;
            for (int d = 0; d < piece.rank(); ++d) piece.start[d] += region.start[d];
            read_piece(piece, out.part(part.in_request), io);
        });
    }

private:
    [[nodiscard]] ReaderWish wish_for(const WireWriter& request) const {
        return {.library = {},
                .function = nullptr,
                .request = request.bytes(),
                .source = path_.opened.get(),
                .file = path_.path.c_str()};
    }

    static std::uint64_t next_id() {
        static std::atomic<std::uint64_t> last = 0;
        return ++last;
    }

    /// Whole chunks of a few MiB, so that little memory is shared and several children work on large regions.
    [[nodiscard]] Shape piece_shape() const {
        constexpr std::int64_t wanted = 4 << 20;
        Shape piece = info_.chunks.empty() ? Shape::filled(info_.shape.rank(), 1) : info_.chunks;
        for (int d = 0; d < piece.rank(); ++d) piece[d] = std::max<std::int64_t>(piece[d], 1);
        for (int d = piece.rank() - 1; d >= 0; --d) {
            const std::int64_t bytes = std::max<std::int64_t>(byte_count(piece, item_), 1);
            const std::int64_t times = std::max<std::int64_t>(wanted / bytes, 1);
            const std::int64_t most = ceil_div(std::max<std::int64_t>(info_.shape[d], 1), piece[d]);
            piece[d] *= std::min(times, most);
            if (times < most) break;
        }
        return piece;
    }

    void read_piece(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
        const StopScope scope(io.stop);
        const std::uint64_t decoding = 2 * chunk_bytes_;  // as stored and decoded
        const MemoryHold held_by_child(decoding);
        WireWriter request = request_for(ApartTask::read, inner_, path_, folder_, id_);
        request.text(version_);
        put_region(request, region);
        const bool texts = info_.dtype.is_variable();
        ReaderWish wish = wish_for(request);
        wish.granted = decoding;
        if (!texts) {
            wish.space = static_cast<std::size_t>(byte_count(region.extent, item_));
            wish.take = [&](ByteSpan space) {
                copy_elements(view_bytes(space.data(), info_.dtype, region.extent), out);
            };
        }
        const Buffer answer = ask(inner_, name_, std::move(wish));
        if (!texts) return;
        const auto count = static_cast<std::size_t>(element_count(region.extent));
        const MemoryHold held(count * sizeof(VariableSlot));
        std::vector<VariableSlot> slots(count);
        WireReader in(answer);
        for (VariableSlot& slot : slots) {
            const std::string_view text = in.text();
            if (!text.empty()) slot = out.arena->add(text);
        }
        copy_elements(view_bytes(reinterpret_cast<const std::byte*>(slots.data()), info_.dtype, region.extent), out);
    }

    const InnerFormat& inner_;
    ArrayPath path_;      ///< `opened` only if it is elsewhere
    std::string folder_;  ///< a read may come when the program is in another one
    std::uint64_t id_;
    std::string name_, version_;
    ArrayInfo info_;
    Value attributes_;
    std::optional<std::vector<std::byte>> absent_;
    std::int64_t item_ = 0;
    std::shared_ptr<const ByteSource> file_;  ///< if the elements lie in it as they are, from offset_ on
    std::uint64_t offset_ = 0;
    std::uint64_t chunk_bytes_ = 0;
    ChunkGrid pieces_{Shape{}, Shape{}};
};

}  // namespace

std::vector<std::string> members_apart(const InnerFormat& inner, const ArrayPath& path) {
    if (reads_in_process()) return inner.row.members(path);
    const Buffer answer = ask(ApartTask::members, inner, path);
    WireReader in(answer);
    std::vector<std::string> names;
    for (std::uint64_t n = in.count(); n > 0; --n) names.emplace_back(in.text());
    return names;
}

std::vector<ArrayFileGroup> groups_apart(const InnerFormat& inner, const ArrayPath& path) {
    if (reads_in_process()) return inner.row.groups(path);
    const Buffer answer = ask(ApartTask::groups, inner, path);
    WireReader in(answer);
    std::vector<ArrayFileGroup> groups;
    for (std::uint64_t n = in.count(); n > 0; --n) {
        std::string name(in.text());
        groups.push_back({std::move(name), in.value()});
    }
    return groups;
}

std::vector<PackedArray> packed_apart(const InnerFormat& inner, const ArrayPath& path) {
    if (reads_in_process()) return inner.row.packed(path);
    const Buffer answer = ask(ApartTask::packed, inner, path);
    WireReader in(answer);
    std::vector<PackedArray> arrays;
    for (std::uint64_t n = in.count(); n > 0; --n) arrays.push_back(get_packed(in));
    return arrays;
}

std::optional<PackedArray> chunked_apart(const InnerFormat& inner, const ArrayPath& path) {
    if (reads_in_process()) return inner.row.chunked(path);
    const Buffer answer = ask(ApartTask::chunked, inner, path);
    WireReader in(answer);
    if (in.number() == 0) return std::nullopt;
    return get_packed(in);
}

std::unique_ptr<ArraySource> open_apart(const InnerFormat& inner, const ArrayPath& path,
                                        const ArrayFileOptions& options) {
    if (reads_in_process()) return inner.row.open(path, options);
    return std::make_unique<ApartSource>(inner, path);
}

Value describe_apart(const InnerFormat& inner, const ArrayPath& path) {
    if (reads_in_process()) return inner.row.describe(path);
    const Buffer answer = ask(ApartTask::describe, inner, path);
    return WireReader(answer).value();
}

}  // namespace tessera
