#include "tiff_decoder.h"

#ifdef TESSERA_TIFF
#include <tiffio.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <exception>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/in_process.h>
#include <tessera/memory_account.h>

#include "reader_process.h"
#include "wire.h"

namespace tessera {

#ifdef TESSERA_TIFF

/// libtiff's object. Its callbacks are called from C: what they throw is kept and thrown again after the call.
struct TiffDecoder::Handle {
    explicit Handle(std::shared_ptr<const ByteSource> source) : file(std::move(source)) {
        TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
        TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, this);
        TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, this);
        constexpr std::uint64_t most = std::uint64_t{1} << 31;
        TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(std::min(memory_left(), most)));
        // h: no directory yet, m: no map, O: lists of offsets only as far as they are asked for.
        tiff = TIFFClientOpenExt(file->name().c_str(), "rhmO", this, on_read, on_write, on_seek, on_close, on_size,
                                 nullptr, nullptr, options);
        TIFFOpenOptionsFree(options);
        if (tiff == nullptr) fail();
    }
    ~Handle() {
        if (tiff != nullptr) TIFFClose(tiff);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    [[noreturn]] void fail() {
        if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
        throw corrupt("libtiff says: {}", static_cast<const char*>(message.data()));
    }

    static int on_error(TIFF* /*tiff*/, void* self, const char* /*module*/, const char* format, va_list arguments) {
        auto& text = static_cast<Handle*>(self)->message;
        std::vsnprintf(text.data(), text.size(), format, arguments);
        return 1;
    }
    static int on_warning(TIFF* /*tiff*/, void* /*self*/, const char* /*module*/, const char* /*format*/,
                          va_list /*arguments*/) {
        return 1;
    }
    static tmsize_t on_read(thandle_t handle, void* out, tmsize_t size) {
        auto* const self = static_cast<Handle*>(handle);
        try {
            const std::uint64_t end = self->file->size();
            const std::uint64_t left = self->at < end ? end - self->at : 0;
            const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, static_cast<std::uint64_t>(size)));
            self->file->read(self->at, {static_cast<std::byte*>(out), n});
            self->at += n;
            return static_cast<tmsize_t>(n);
        } catch (...) {
            self->thrown = std::current_exception();
            return 0;
        }
    }
    static tmsize_t on_write(thandle_t /*handle*/, void* /*bytes*/, tmsize_t /*size*/) { return 0; }
    static toff_t on_seek(thandle_t handle, toff_t offset, int from) {
        auto* const self = static_cast<Handle*>(handle);
        self->at = offset + (from == SEEK_CUR ? self->at : from == SEEK_END ? self->file->size() : 0);
        return self->at;
    }
    static int on_close(thandle_t /*handle*/) { return 0; }
    static toff_t on_size(thandle_t handle) { return static_cast<Handle*>(handle)->file->size(); }

    void decode(const TiffPage& page, std::int64_t n, MutableByteSpan out) {
        thrown = nullptr;
        std::snprintf(message.data(), message.size(), "no more");
        if (directory != page.directory) {
            directory = 0;
            if (TIFFSetSubDirectory(tiff, page.directory) == 0) fail();
            directory = page.directory;
            if (page.compression == static_cast<int>(TiffCompression::jpeg) && page.photometric == tiff_ycbcr) {
                TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
            }
        }
        const auto number = static_cast<std::uint32_t>(n);
        const auto size = static_cast<tmsize_t>(out.size());
        const tmsize_t whole = page.tiled ? TIFFTileSize(tiff) : TIFFStripSize(tiff);
        if (whole < size) throw corrupt("a chunk has {} bytes, where {} are expected", whole, size);
        const tmsize_t got = page.tiled ? TIFFReadEncodedTile(tiff, number, out.data(), size)
                                        : TIFFReadEncodedStrip(tiff, number, out.data(), size);
        if (got < size) fail();
    }

    std::shared_ptr<const ByteSource> file;
    TIFF* tiff = nullptr;
    std::uint64_t at = 0;         ///< where the next read begins
    std::uint64_t directory = 0;  ///< that libtiff has read
    std::exception_ptr thrown;
    std::array<char, 200> message{};
};

void TiffDecoder::require(const TiffPage& page) const {
    if (TIFFIsCODECConfigured(static_cast<std::uint16_t>(page.compression)) != 0) return;
    throw unsupported("compression {}, which this libtiff does not decode", page.compression);
}

namespace {

/// A decoder in a child, for one in its parent.
struct ChildDecoder {
    std::uint64_t id = 0;
    std::unique_ptr<TiffDecoder> decoder;
};

std::deque<ChildDecoder>& child_decoders() {
    static std::deque<ChildDecoder> decoders;
    return decoders;
}

void drop_child_decoders() {
    child_decoders().clear();
}

void decode_in_child(ReaderCall& call) {
    WireReader in(call.request);
    const std::uint64_t id = in.number();
    const std::string name(in.text());
    const std::uint64_t size = in.number();
    TiffPage page;
    page.directory = in.number();
    page.compression = static_cast<int>(in.number());
    page.photometric = static_cast<int>(in.number());
    page.tiled = in.number() != 0;
    const auto n = static_cast<std::int64_t>(in.number());
    auto& all = child_decoders();
    auto known = std::ranges::find(all, id, &ChildDecoder::id);
    if (known == all.end()) {
        constexpr std::size_t most = 8;
        if (all.size() >= most) all.pop_front();
        all.push_back({id, std::make_unique<TiffDecoder>(std::make_shared<ParentBytes>(name, size))});
        known = std::prev(all.end());
        when_reader_rests(drop_child_decoders);
    }
    known->decoder->decode(page, n, call.space);
}

}  // namespace

void TiffDecoder::decode(const TiffPage& page, std::int64_t n, MutableByteSpan out) {
    if (!reads_in_process()) return decode_apart(page, n, out);
    std::unique_ptr<Handle> handle;
    {
        const std::lock_guard lock(mutex_);
        const auto fits = std::ranges::find(idle_, page.directory, [](const auto& h) { return h->directory; });
        const auto taken = fits != idle_.end() ? fits : idle_.empty() ? idle_.end() : std::prev(idle_.end());
        if (taken != idle_.end()) {
            handle = std::move(*taken);
            idle_.erase(taken);
        }
    }
    if (handle == nullptr) handle = std::make_unique<Handle>(file_);
    handle->decode(page, n, out);  // a handle that has failed is not used again
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(handle));
}

void TiffDecoder::decode_apart(const TiffPage& page, std::int64_t n, MutableByteSpan out) const {
    WireWriter request;
    request.number(id_);
    request.text(file_->name());
    request.number(file_->size());
    request.number(page.directory);
    request.number(static_cast<std::uint64_t>(page.compression));
    request.number(static_cast<std::uint64_t>(page.photometric));
    request.number(page.tiled ? 1 : 0);
    request.number(static_cast<std::uint64_t>(n));
    (void)read_apart({.library = "libtiff",
                      .function = decode_in_child,
                      .request = request.bytes(),
                      .space = out.size(),
                      .take = [&](ByteSpan space) { std::ranges::copy(space, out.begin()); },
                      .source = file_.get()});
}

#else

struct TiffDecoder::Handle {};

void TiffDecoder::require(const TiffPage& page) const {
    throw unsupported("compression {}: this Tessera was built without libtiff (Debian's libtiff-dev)",
                      page.compression);
}

void TiffDecoder::decode(const TiffPage& page, std::int64_t /*n*/, MutableByteSpan /*out*/) {
    require(page);
}

#endif

namespace {

std::uint64_t next_decoder() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

}  // namespace

TiffDecoder::TiffDecoder(std::shared_ptr<const ByteSource> file) : file_(std::move(file)), id_(next_decoder()) {}
TiffDecoder::~TiffDecoder() = default;

}  // namespace tessera
