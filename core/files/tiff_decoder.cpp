#include "tiff_decoder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "foreign.h"
#include "helper_process.h"
#include "wire.h"

namespace tessera {

namespace {

std::uint64_t next_decoder() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

}  // namespace

TiffDecoder::TiffDecoder(std::shared_ptr<const ByteSource> file) : file_(std::move(file)), id_(next_decoder()) {}

void TiffDecoder::require(const TiffPage& page) {
    if (page.compression == required_) return;
    // Nearly every libtiff has these: to ask would take the start of a helper. decode() says where one has not.
    constexpr std::array usual{5, 8, 32773, 32946};  // LZW, deflate, PackBits, deflate's old number
    if (std::ranges::find(usual, page.compression) != usual.end()) return;
    const Buffer request = wired(page.compression);
    (void)ask_helper(
        {.task = ForeignTask::tiff_require, .library = ForeignLibrary::tiff, .request = request, .file = "/"});
    required_ = page.compression;
}

void TiffDecoder::decode(const TiffPage& page, std::int64_t n, MutableByteSpan out) const {
    const Buffer request = wired(ForeignTiff{.file = id_,
                                             .name = file_->name(),
                                             .size = file_->size(),
                                             .directory = page.directory,
                                             .compression = page.compression,
                                             .photometric = page.photometric,
                                             .tiled = page.tiled,
                                             .chunk = n});
    (void)ask_helper({.task = ForeignTask::tiff_decode,
                      .library = ForeignLibrary::tiff,
                      .request = request,
                      .space = out.size(),
                      .take = [&](ByteSpan space) { std::ranges::copy(space, out.begin()); },
                      .source = file_.get()});
}

}  // namespace tessera
