#include "hdf5_sink.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/buffer.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>

#include "foreign.h"
#include "helper_process.h"
#include "wire.h"

namespace tessera {

namespace {

/// `bytes` as HDF5's filters shuffle and deflate make them, in one of the two buffers. `bytes` has room for the bound.
ByteSpan shuffled_and_deflated(Buffer& bytes, std::size_t size, std::size_t item, int level, Buffer& other) {
    const auto* raw = reinterpret_cast<const unsigned char*>(bytes.data());
    Buffer* from = &bytes;
    Buffer* to = &other;
    if (item > 1) {
        auto* planes = reinterpret_cast<unsigned char*>(other.data());
        const std::size_t count = size / item;
        for (std::size_t plane = 0; plane < item; ++plane) {
            for (std::size_t i = 0; i < count; ++i) *planes++ = raw[i * item + plane];
        }
        std::swap(from, to);
    }
    const auto free = [](libdeflate_compressor* c) { libdeflate_free_compressor(c); };
    const std::unique_ptr<libdeflate_compressor, decltype(free)> compressor(libdeflate_alloc_compressor(level), free);
    if (compressor == nullptr) throw std::bad_alloc();
    const std::size_t made = libdeflate_zlib_compress(compressor.get(), from->data(), size, to->data(), to->size());
    return to->span().first(made);
}

}  // namespace

std::string folder_of_paths() {
    std::error_code ignored;
    return std::filesystem::current_path(ignored).string();
}

/// The helper that has the file open, for the threads that write. Thread rule: any thread may call ask().
struct HelperWriter::Helper {
    std::mutex mutex;
    HelperSession session;

    /// Errors of the helper itself do not know the array.
    Buffer ask(const std::string& name, HelperWish wish) {
        wish.library = ForeignLibrary::hdf5;
        try {
            const std::lock_guard lock(mutex);
            return session.ask(wish);
        } catch (const Error& e) {
            const bool named = std::string_view(e.what()).find(name) != std::string_view::npos;
            if (named || e.code() == ErrorCode::cancelled) throw;
            throw e.within(name);
        }
    }
    Buffer ask(const std::string& name, ForeignTask task, const Buffer& request) {
        return ask(name, {.task = task, .library = ForeignLibrary::hdf5, .request = request});
    }
};

/// One dataset of a writer.
class HelperWriter::Sink final : public ArraySink {
public:
    /// `level`: of deflate, after shuffle; 0: the chunks, if there are any, have no filters.
    Sink(std::shared_ptr<Helper> helper, std::string name, std::uint64_t number, ArrayInfo info, int level)
        : helper_(std::move(helper)), name_(std::move(name)), number_(number), info_(std::move(info)), level_(level) {}
    ~Sink() override {
        try {
            if (!finished_) finish();
        } catch (...) {
            return;  // the writer's finish() fails, too
        }
    }
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }
    void finish() override {
        finished_ = true;
        (void)helper_->ask(name_, ForeignTask::write_close, wired(number_));
    }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const StopScope scope(io.stop);
        if (level_ == 0) return write_elements(region, in);
        // libhdf5 would deflate one chunk after the other.
        const ChunkGrid grid(info_.shape, info_.chunks);
        const Region touched = grid.overlapping(region);
        parallel_in_memory(touched.count(), io, [&](std::int64_t n) {
            const ChunkPart chunk = chunk_part(grid, region, touched, n);
            const Region part = intersection(grid.chunk_region(chunk.chunk), region);
            const ArrayView elements = in.part(chunk.in_request);
            chunk.whole ? write_chunk(part, elements) : write_elements(part, elements);
        });
    }

private:
    /// A chunk, or what of it lies in the array; its other elements are zero.
    void write_chunk(const Region& part, const ArrayView& in) {
        const auto size = static_cast<std::size_t>(byte_count(info_.chunks, info_.dtype.size()));
        const std::size_t room = libdeflate_zlib_compress_bound(nullptr, size);
        Buffer bytes(room);
        if (part.extent != info_.chunks) std::ranges::fill(bytes.span().first(size), std::byte{0});
        Arena arena;
        copy_elements(in, MutableArrayView{bytes.data(), info_.dtype, part.extent,
                                           contiguous_strides(info_.chunks, info_.dtype.size()), &arena});
        Buffer other(room);
        const auto item = static_cast<std::size_t>(info_.dtype.size());
        const ByteSpan made = shuffled_and_deflated(bytes, size, item, level_, other);
        const Buffer request = wired(number_, part);
        (void)helper_->ask(name_, {.task = ForeignTask::write_chunk,
                                   .library = ForeignLibrary::hdf5,
                                   .request = request,
                                   .space = made.size(),
                                   .give = [&](MutableByteSpan space) { std::ranges::copy(made, space.begin()); }});
    }

    void write_elements(const Region& region, const ArrayView& in) {
        if (info_.dtype.is_variable()) return write_texts(region, in);
        const Buffer request = wired(number_, region);
        const auto give = [&](MutableByteSpan space) {
            copy_elements(in, MutableArrayView{space.data(), info_.dtype, region.extent,
                                               contiguous_strides(region.extent, info_.dtype.size()), nullptr});
        };
        (void)helper_->ask(name_, {.task = ForeignTask::write_elements,
                                   .library = ForeignLibrary::hdf5,
                                   .request = request,
                                   .space = static_cast<std::size_t>(byte_count(region.extent, info_.dtype.size())),
                                   .give = give});
    }

    void write_texts(const Region& region, const ArrayView& in) {
        const auto count = static_cast<std::size_t>(element_count(region.extent));
        Buffer bytes(count * sizeof(VariableSlot));
        Arena arena;
        copy_elements(in, MutableArrayView{bytes.data(), info_.dtype, region.extent,
                                           contiguous_strides(region.extent, info_.dtype.size()), &arena});
        const auto* slots = reinterpret_cast<const VariableSlot*>(bytes.data());
        WireWriter request;
        request(number_, region);
        for (std::size_t i = 0; i < count; ++i) {
            const std::string_view text = slots[i].view();
            if (text.find('\0') != std::string_view::npos) throw unsupported("{}: a text with a NUL in it", name_);
            request(text);
        }
        (void)helper_->ask(name_, ForeignTask::write_elements, request.take());
    }

    std::shared_ptr<Helper> helper_;
    std::string name_;
    std::uint64_t number_;
    ArrayInfo info_;
    int level_;
    bool finished_ = false;
};

HelperWriter::HelperWriter(const std::filesystem::path& path, bool durable, bool adds)
    : name_(path.string()), sink_(create_file(path, durable)), helper_(std::make_shared<Helper>()) {
    temporary_ = (path.parent_path() / temporary_name()).string();
    std::error_code error;
    const bool there = adds && std::filesystem::exists(path, error);
    try {
        if (there && !std::filesystem::copy_file(path, temporary_, error)) {
            throw io_error("cannot copy", name_, error.value());
        }
        helper_->ask(
            name_, ForeignTask::write_begin,
            wired(ForeignOutput{.folder = folder_of_paths(), .name = name_, .temporary = temporary_, .adds = there}));
    } catch (...) {
        helper_->session.end();
        std::filesystem::remove(temporary_, error);
        throw;
    }
}

HelperWriter::~HelperWriter() {
    helper_->session.end();
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
}

void HelperWriter::group(const ArrayFileGroup& group) {
    (void)helper_->ask(name_, ForeignTask::write_group, wired(group));
}

std::unique_ptr<ArraySink> HelperWriter::add(const std::string& path, const ArrayInfo& info, const Value& attributes,
                                             int deflate_level) {
    const std::string name = fmt::format("{}::{}", name_, path);
    std::uint64_t number = 0;
    ArrayInfo made{.dtype = info.dtype, .shape = info.shape, .chunks = {}};
    int level = 0;
    const auto read = [&](WireReader in) {
        in(number, made.chunks, level);
        const bool chunked = !made.chunks.empty();
        if ((chunked && made.chunks.rank() != made.shape.rank()) ||
            (level != 0 && (level != deflate_level || !chunked))) {
            throw corrupt("what the helper says of it contradicts itself");
        }
        for (int d = 0; d < made.chunks.rank(); ++d) {
            if (made.chunks[d] < 1 || made.chunks[d] > made.shape[d])
                throw corrupt("its chunks are {}", made.chunks[d]);
        }
    };
    const Buffer request = wired(path, info, attributes, deflate_level);
    (void)helper_->ask(name, {.task = ForeignTask::write_add, .request = request, .read = read});
    return std::make_unique<Sink>(helper_, name, number, std::move(made), level);
}

void HelperWriter::finish() {
    (void)helper_->ask(name_, ForeignTask::write_finish, {});
    helper_->session.end();
    // libhdf5 writes only files by their names; the sink makes the new one visible with its rights and durability.
    const std::unique_ptr<ByteSource> made = open_file(temporary_);
    constexpr std::uint64_t piece = 4 << 20;
    for (std::uint64_t at = 0; at < made->size(); at += piece) {
        sink_->append(read_range(*made, at, std::min(piece, made->size() - at)).span());
    }
    sink_->finish();
}

namespace {

/// A new file of one array.
class SingleHdf5Sink final : public ArraySink {
public:
    SingleHdf5Sink(const ArrayPath& path, const ArrayInfo& info, const ArrayFileOptions& options)
        : writer_(path.path, options.durable, path.member.has_value()),
          array_(writer_.add(path.member.value_or("data"), info, options.attributes, options.deflate_level)),
          info_(array_->info()),
          name_(array_->name()) {}
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        array_->write(region, in, io);
    }
    void finish() override {
        array_->finish();
        array_.reset();
        writer_.finish();
    }

private:
    HelperWriter writer_;
    std::unique_ptr<ArraySink> array_;  ///< gone after finish()
    ArrayInfo info_;
    std::string name_;
};

}  // namespace

std::unique_ptr<ArraySink> create_hdf5(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                       const ArrayFileOptions& options) {
    return std::make_unique<SingleHdf5Sink>(path, ArrayInfo{.dtype = dtype, .shape = shape, .chunks = options.chunks},
                                            options);
}

}  // namespace tessera
