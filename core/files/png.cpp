// PNG pictures as array files: (height, width) of u1 or u2, or (height, width, 2 to 4) with alpha and colours.
//
// Rows are read one after another, and written in bands (png_writer). An interlaced picture is decoded as a whole.
// Palettes become colours, transparency becomes alpha, and grey of 1, 2 or 4 bits is spread to 8, as other programs
// show it.
#ifdef TESSERA_PNG
#include <png.h>
#endif

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/array_file.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>

#include "array_file_row.h"
#include "png_writer.h"

namespace tessera {

namespace {

constexpr std::string_view signature = "\x89PNG\r\n\x1A\n";

bool png_recognise(ByteSpan first) {
    return starts_with(first, signature);
}

#ifdef TESSERA_PNG

constexpr int bits_of_byte = 8;

/// libpng's objects for reading, and its errors as exceptions. libpng is C and leaves by longjmp. So no
/// exception passes through it, and no object that must be destroyed lies between `run` and its callbacks.
class Png {
public:
    explicit Png(std::string name) : name_(std::move(name)) {
        png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, on_error, on_warning, this, on_allocate, on_free);
        info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
        if (info_ == nullptr) {
            destroy();
            if (thrown_) std::rethrow_exception(thrown_);
            throw std::bad_alloc();
        }
        constexpr png_uint_32 most = 0x7FFFFFFF;
        png_set_user_limits(png_, most, most);
    }
    ~Png() { destroy(); }
    Png(const Png&) = delete;
    Png& operator=(const Png&) = delete;

    [[nodiscard]] png_structp png() const { return png_; }
    [[nodiscard]] png_infop info() const { return info_; }

    /// Calls libpng, then rethrows what its callbacks have thrown.
    template <class Call>
    void run(const Call& call) {
        if (setjmp(png_jmpbuf(png_)) != 0) fail();  // NOLINT(cert-err52-cpp): how libpng reports errors
        call();
    }

    /// For callbacks: keeps what `body` throws, and leaves libpng.
    template <class Body>
    void guard(const Body& body) noexcept {
        try {
            body();
        } catch (...) {
            thrown_ = std::current_exception();
        }
    }
    void leave_if_thrown() {
        if (thrown_) png_error(png_, "");
    }

private:
    [[noreturn]] void fail() {
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
        throw corrupt("{}: {}", name_, static_cast<const char*>(message_));
    }
    static void on_error(png_structp png, png_const_charp message) {
        auto* self = static_cast<Png*>(png_get_error_ptr(png));
        std::strncpy(self->message_, message, sizeof self->message_ - 1);
        png_longjmp(png, 1);
    }
    static void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

    /// libpng's memory counts as Buffers do: a row is as long as a file says. The size stands before what is allocated.
    static png_voidp on_allocate(png_structp png, png_alloc_size_t size) {
        auto* self = static_cast<Png*>(png_get_mem_ptr(png));
        void* p = nullptr;
        self->guard([&] {
            Buffer memory(size + before_memory);
            std::byte* const start = memory.data();
            p = start + before_memory;
            new (start) Buffer(std::move(memory));
        });
        return p;
    }
    static void on_free(png_structp /*png*/, png_voidp p) {
        const Buffer freed = std::move(*reinterpret_cast<Buffer*>(static_cast<std::byte*>(p) - before_memory));
    }

    void destroy() { png_destroy_read_struct(&png_, &info_, nullptr); }

    static constexpr std::size_t before_memory = 64;  ///< the Buffer that owns the rest, and keeps it aligned
    static_assert(sizeof(Buffer) <= before_memory);

    std::string name_;
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    std::exception_ptr thrown_;
    char message_[128] = {};
};

/// Decodes a picture row by row.
class PngDecoder {
public:
    explicit PngDecoder(const ByteSource& file) : file_(file), png_(file.name()) {
        png_set_read_fn(png_.png(), this, on_read);
        // Texts, profiles and the like are skipped: they may be many, and elements have nothing of them.
        png_set_keep_unknown_chunks(png_.png(), PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
        png_.run([&] { begin(); });
        row_.resize(static_cast<std::size_t>(row_bytes_));
        if (!interlaced_) return;
        // All rows are there only after the last pass.
        all_.resize(static_cast<std::size_t>(checked_multiply(row_bytes_, height_, "the size of the picture")));
        for (int pass = 0; pass < passes_; ++pass) {
            for (std::int64_t i = 0; i < height_; ++i) {
                png_.run([&] { png_read_row(png_.png(), at(all_, i), nullptr); });
            }
        }
    }

    [[nodiscard]] std::int64_t next() const { return next_; }  ///< the row that comes next
    /// Row `i`, which is the last decoded row or a later one.
    const std::byte* row(std::int64_t i) {
        if (interlaced_) return all_.data() + i * row_bytes_;
        for (; next_ <= i; ++next_) {
            png_.run([&] { png_read_row(png_.png(), at(row_, 0), nullptr); });
        }
        return row_.data();
    }
    [[nodiscard]] Shape shape() const {
        return channels_ == 1 ? Shape{height_, width_} : Shape{height_, width_, channels_};
    }
    [[nodiscard]] DType dtype() const {
        return bits_ == bits_of_byte ? DType::scalar(Kind::unsigned_integer, 1)
                                     : DType::scalar(Kind::unsigned_integer, 2);
    }
    [[nodiscard]] bool interlaced() const { return interlaced_; }

private:
    png_bytep at(Buffer& rows, std::int64_t i) const {
        return reinterpret_cast<png_bytep>(rows.data() + i * row_bytes_);
    }

    void begin() {
        png_structp png = png_.png();
        png_infop info = png_.info();
        png_read_info(png, info);
        require_room(png_get_image_height(png, info), png_get_rowbytes(png, info));
        png_set_expand(png);
        if (std::endian::native == std::endian::little) png_set_swap(png);
        interlaced_ = png_get_interlace_type(png, info) != PNG_INTERLACE_NONE;
        passes_ = png_set_interlace_handling(png);
        png_read_update_info(png, info);
        height_ = png_get_image_height(png, info);
        width_ = png_get_image_width(png, info);
        channels_ = png_get_channels(png, info);
        bits_ = png_get_bit_depth(png, info);
        row_bytes_ = static_cast<std::int64_t>(png_get_rowbytes(png, info));
    }

    /// Before anything as large as a row is allocated: a small file may say that its rows are huge.
    void require_room(std::uint64_t rows, std::uint64_t row_bytes) const {
        constexpr std::uint64_t best_ratio = 1032;  // of deflate: 258 bytes take two bits
        const std::uint64_t file_bytes = file_.size();
        if (rows <= file_bytes * best_ratio / row_bytes) return;
        throw corrupt("{}: expected {} rows of {} bytes, as its header says; a file of {} bytes cannot hold them",
                      file_.name(), rows, row_bytes, file_bytes);
    }

    static void on_read(png_structp png, png_bytep out, std::size_t size) {
        auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
        self->png_.guard([&] {
            require_not_stopped();
            self->file_.read(self->offset_, {reinterpret_cast<std::byte*>(out), size});
            self->offset_ += size;
        });
        self->png_.leave_if_thrown();
    }

    const ByteSource& file_;
    Png png_;
    std::uint64_t offset_ = 0;
    std::int64_t height_ = 0, width_ = 0, channels_ = 1, row_bytes_ = 0, next_ = 0;
    int bits_ = 0, passes_ = 1;
    bool interlaced_ = false;
    Buffer row_, all_;
};

class PngSource final : public ArraySource {
public:
    explicit PngSource(std::shared_ptr<const ByteSource> file)
        : file_(std::move(file)), decoder_(std::make_unique<PngDecoder>(*file_)) {
        info_ = {.dtype = decoder_->dtype(), .shape = decoder_->shape(), .chunks = {}};
        if (!decoder_->interlaced()) info_.access = Access::sequential;
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const std::lock_guard lock(mutex_);
        if (decoder_->next() > region.start[0] + 1) decoder_ = std::make_unique<PngDecoder>(*file_);
        // A row as an array of its own.
        Shape shape = info_.shape;
        shape[0] = 1;
        Region columns = region;
        columns.start[0] = 0;
        columns.extent[0] = 1;
        Strides strides = out.strides;
        std::int64_t step = info_.dtype.size();
        for (int d = shape.rank() - 1; d >= 0; --d) {
            strides[d] = step;
            step *= shape[d];
        }
        Region to = Region::whole(region.extent);
        to.extent[0] = 1;
        for (std::int64_t i = 0; i < region.extent[0]; ++i) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            to.start[0] = i;
            const ArrayView row(decoder_->row(region.start[0] + i), info_.dtype, shape, strides);
            copy_elements(row.part(columns), out.part(to));
        }
    }

    [[nodiscard]] const std::string& name() const override { return file_->name(); }
    [[nodiscard]] bool interlaced() const { return decoder_->interlaced(); }

private:
    std::shared_ptr<const ByteSource> file_;
    ArrayInfo info_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<PngDecoder> decoder_;
};

class PngSink final : public ArraySink {
public:
    PngSink(std::unique_ptr<ByteSink> sink, const DType& dtype, const Shape& shape)
        : dtype_(dtype), shape_(shape), sink_(std::move(sink)), writer_(*sink_, header_of(dtype, shape)) {}

    [[nodiscard]] ArrayInfo info() const override {
        return {.dtype = dtype_, .shape = shape_, .chunks = {}, .access = Access::stream};
    }

    /// Takes elements in C order; a region may be any part of rows.
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        NDArray packed(
            DType::scalar(Kind::unsigned_integer, dtype_.size(), dtype_.size() == 1 ? ByteOrder::none : ByteOrder::big),
            region.extent);
        copy_elements(in, packed);
        writer_.append(std::as_const(packed).bytes(), io);
    }

    void finish() override {
        writer_.finish();
        sink_->finish();
    }
    [[nodiscard]] const std::string& name() const override { return sink_->name(); }

private:
    static PngHeader header_of(const DType& dtype, const Shape& shape) {
        return {.width = static_cast<std::uint32_t>(shape[1]),
                .height = static_cast<std::uint32_t>(shape[0]),
                .bits = static_cast<int>(dtype.size()) * bits_of_byte,
                .channels = shape.rank() == 2 ? 1 : static_cast<int>(shape[2])};
    }

    DType dtype_;
    Shape shape_;
    std::unique_ptr<ByteSink> sink_;
    PngWriter writer_;
};

std::unique_ptr<PngSource> open_picture(const ArrayPath& path) {
    require_no_member(path);
    return within_memory(path.path.string(), [&] { return std::make_unique<PngSource>(path.bytes()); });
}

std::unique_ptr<ArraySource> png_open(const ArrayPath& path, const ArrayFileOptions& /*options*/) {
    return open_picture(path);
}

void require_picture(const std::string& file, const DType& dtype, const Shape& shape) {
    if (dtype.kind() != Kind::unsigned_integer || dtype.size() > 2) {
        throw unsupported("{}: a .png holds u1 or u2, not {}", file, dtype.to_string())
            .advising(Action::dtype, "converts, if they fit", "u2");
    }
    const bool picture = shape.rank() == 2 || (shape.rank() == 3 && shape[2] >= 1 && shape[2] <= 4);
    constexpr std::int64_t most = 0x7FFFFFFF;
    if (!picture || shape[0] < 1 || shape[1] < 1 || shape[0] > most || shape[1] > most) {
        throw unsupported(
            "{}: a .png has the shape (height, width), or (height, width, 2 to 4) with alpha and colours, not {}", file,
            shape.to_string())
            .advising(Action::selection, "picks a part")
            .advising(Action::unstack, "makes many");
    }
}

std::unique_ptr<ArraySink> png_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                      const ArrayFileOptions& options) {
    require_no_member(path);
    require_picture(path.path.string(), dtype, shape);
    return std::make_unique<PngSink>(create_file(path.path, options.durable), dtype, shape);
}

/// Bytes that are kept.
class BytesSink final : public ByteSink {
public:
    BytesSink(Buffer& bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
    [[nodiscard]] bool random_access() const override { return false; }
    void append(ByteSpan bytes) override { bytes_.append(bytes); }
    void write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {}  // never: see random_access()
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    Buffer& bytes_;
    std::string name_;
};

Value png_describe(const ArrayPath& path) {
    const auto source = open_picture(path);
    const ArrayInfo info = source->info();
    Value facts = Value::object();
    facts.set("format", "png");
    facts.set("dtype", info.dtype.to_string());
    facts.set("shape", Value::Array(info.shape.begin(), info.shape.end()));
    facts.set("interlaced", source->interlaced());
    return facts;
}

#else

[[noreturn]] void refuse(const std::string& name) {
    throw unsupported("{}: this Tessera was built without libpng (Debian's libpng-dev), and so without .png files",
                      name);
}

[[noreturn]] void refuse(const ArrayPath& path) {
    refuse(path.path.string());
}

std::unique_ptr<ArraySource> png_open(const ArrayPath& path, const ArrayFileOptions& /*options*/) {
    refuse(path);
}

std::unique_ptr<ArraySink> png_create(const ArrayPath& path, const DType& /*dtype*/, const Shape& /*shape*/,
                                      const ArrayFileOptions& /*options*/) {
    refuse(path);
}

Value png_describe(const ArrayPath& path) {
    refuse(path);
}

#endif

}  // namespace

Buffer encode_png(const ArrayView& pixels, const std::string& name) {
    Buffer bytes;
#ifdef TESSERA_PNG
    require_picture(name, pixels.dtype, pixels.shape);
    PngSink sink(std::make_unique<BytesSink>(bytes, name), pixels.dtype, pixels.shape);
    sink.write(Region::whole(pixels.shape), pixels, {});
    sink.finish();
#else
    (void)pixels;
    refuse(name);
#endif
    return bytes;
}

extern constinit const ArrayFileFormat png_format{
    .name = "png",
    .extension = ".png",
    .about = "picture of 8 or 16 bits: grey, colours, alpha",
    .recognise = png_recognise,
    .open = png_open,
    .create = png_create,
    .describe = png_describe,
};

}  // namespace tessera
