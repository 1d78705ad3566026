// Requests about compressed strips and tiles of TIFF, which libtiff decodes.
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <utility>

#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include "../tiff_format.h"
#include "server.h"

namespace tessera {

namespace {

/// libtiff's object. Its callbacks are called from C: what they throw is kept and thrown again after the call.
struct TiffHandle {
    explicit TiffHandle(std::shared_ptr<const ByteSource> source) : file(std::move(source)) {
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
    ~TiffHandle() {
        if (tiff != nullptr) TIFFClose(tiff);
    }
    TiffHandle(const TiffHandle&) = delete;
    TiffHandle& operator=(const TiffHandle&) = delete;

    [[noreturn]] void fail() {
        if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
        throw corrupt("libtiff says: {}", static_cast<const char*>(message.data()));
    }

    static int on_error(TIFF* /*tiff*/, void* self, const char* /*module*/, const char* format, va_list arguments) {
        auto& text = static_cast<TiffHandle*>(self)->message;
        std::vsnprintf(text.data(), text.size(), format, arguments);
        return 1;
    }
    static int on_warning(TIFF* /*tiff*/, void* /*self*/, const char* /*module*/, const char* /*format*/,
                          va_list /*arguments*/) {
        return 1;
    }
    static tmsize_t on_read(thandle_t handle, void* out, tmsize_t size) {
        auto* const self = static_cast<TiffHandle*>(handle);
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
        auto* const self = static_cast<TiffHandle*>(handle);
        self->at = offset + (from == SEEK_CUR ? self->at : from == SEEK_END ? self->file->size() : 0);
        return self->at;
    }
    static int on_close(thandle_t /*handle*/) { return 0; }
    static toff_t on_size(thandle_t handle) { return static_cast<TiffHandle*>(handle)->file->size(); }

    void decode(const ForeignTiff& page, MutableByteSpan out) {
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
        const auto number = static_cast<std::uint32_t>(page.chunk);
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

/// A file that is open, at a directory.
struct OpenTiff {
    std::uint64_t file = 0;
    std::unique_ptr<TiffHandle> handle;
};

std::deque<OpenTiff>& open_tiffs() {
    static std::deque<OpenTiff> all;
    return all;
}

void close_tiffs() {
    open_tiffs().clear();
}

void require_codec(ForeignCall& call) {
    const auto compression = call.request.next<int>();
    if (TIFFIsCODECConfigured(static_cast<std::uint16_t>(compression)) != 0) return;
    throw unsupported("compression {}, which this libtiff does not decode", compression);
}

void decode_chunk(ForeignCall& call) {
    const auto asked = call.request.next<ForeignTiff>();
    auto& all = open_tiffs();
    auto known = std::ranges::find(all, asked.file, &OpenTiff::file);
    if (known == all.end()) {
        constexpr std::size_t most = 8;
        if (all.size() >= most) all.pop_front();
        all.push_back(
            {asked.file, std::make_unique<TiffHandle>(std::make_shared<ParentBytes>(asked.name, asked.size))});
        known = std::prev(all.end());
        when_helper_rests(close_tiffs);
    }
    try {
        known->handle->decode(asked, call.space);
    } catch (...) {
        all.erase(known);  // a handle that has failed is not used again
        throw;
    }
}

}  // namespace

std::span<const ForeignRow> tiff_tasks() {
    static constexpr std::array rows{ForeignRow{ForeignTask::tiff_require, require_codec},
                                     ForeignRow{ForeignTask::tiff_decode, decode_chunk}};
    return rows;
}

}  // namespace tessera
