#include "png_writer.h"

#include <tessera/error.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace tessera {

namespace {

constexpr std::size_t band_bytes = std::size_t{256} << 10;  ///< of a band, before it is deflated
constexpr std::size_t window = std::size_t{32} << 10;       ///< how far deflate looks back
constexpr int window_bits = 15;

std::uint32_t big_endian(std::uint32_t value) {
    return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

const Bytef* bytes_of(const std::byte* p) {
    return reinterpret_cast<const Bytef*>(p);
}

std::uint8_t paeth(std::uint8_t left, std::uint8_t above, std::uint8_t corner) {
    const int p = int{left} + above - corner;
    const int a = std::abs(p - left);
    const int b = std::abs(p - above);
    const int c = std::abs(p - corner);
    if (a <= b && a <= c) return left;
    return b <= c ? above : corner;
}

/// One filter of a row; `before` is the row above. Returns the sum of the results as signed numbers, which is small
/// where they deflate well; stops where it reaches `least`.
template <int Filter>
std::uint64_t apply_filter(const std::uint8_t* row, const std::uint8_t* before, std::size_t size, std::size_t step,
                           std::uint8_t* out, std::uint64_t least) {
    std::uint64_t sum = 0;
    constexpr std::size_t piece = 4096;  // between two looks at the sum
    for (std::size_t begin = 0; begin < size; begin += piece) {
        const std::size_t end = std::min(size, begin + piece);
        for (std::size_t i = begin; i < end; ++i) {
            [[maybe_unused]] const std::uint8_t left = i < step ? 0 : row[i - step];
            [[maybe_unused]] const std::uint8_t corner = i < step ? 0 : before[i - step];
            std::uint8_t guess = 0;
            if constexpr (Filter == 1) guess = left;
            if constexpr (Filter == 2) guess = before[i];
            if constexpr (Filter == 3) guess = static_cast<std::uint8_t>((int{left} + before[i]) / 2);
            if constexpr (Filter == 4) guess = paeth(left, before[i], corner);
            out[i] = static_cast<std::uint8_t>(row[i] - guess);
            sum += static_cast<std::uint64_t>(std::abs(int{static_cast<std::int8_t>(out[i])}));
        }
        if (sum >= least) return sum;
    }
    return sum;
}

constexpr std::array filters{apply_filter<0>, apply_filter<1>, apply_filter<2>, apply_filter<3>, apply_filter<4>};

/// A raw deflate stream of one band, which ends at a byte, or with the end of the whole stream.
Buffer deflated(ByteSpan dictionary, ByteSpan band, bool last) {
    z_stream stream{};
    struct End {
        z_stream* stream;
        ~End() { (void)::deflateEnd(stream); }
    };
    constexpr int usual_memory = 8;
    if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -window_bits, usual_memory, Z_FILTERED) != Z_OK) {
        throw std::bad_alloc();
    }
    const End end{&stream};
    if (!dictionary.empty()) {
        (void)::deflateSetDictionary(&stream, bytes_of(dictionary.data()), static_cast<uInt>(dictionary.size()));
    }
    Buffer out;
    Buffer piece(std::min<std::size_t>(band_bytes, band.size() / 2 + window));
    do {
        const std::size_t n = std::min<std::size_t>(band.size(), std::size_t{1} << 30);
        stream.next_in = const_cast<Bytef*>(bytes_of(band.data()));  // NOLINT: zlib does not change it
        stream.avail_in = static_cast<uInt>(n);
        band = band.subspan(n);
        const int flush = !band.empty() ? Z_NO_FLUSH : last ? Z_FINISH : Z_SYNC_FLUSH;
        do {
            stream.next_out = reinterpret_cast<Bytef*>(piece.data());
            stream.avail_out = static_cast<uInt>(piece.size());
            if (::deflate(&stream, flush) == Z_STREAM_ERROR) throw Error(ErrorCode::io, "deflating a picture failed");
            out.append(std::as_const(piece).span().first(piece.size() - stream.avail_out));
        } while (stream.avail_out == 0);
    } while (!band.empty());
    return out;
}

std::uint32_t adler_of(std::uint32_t adler, ByteSpan bytes) {
    return static_cast<std::uint32_t>(::adler32_z(adler, bytes_of(bytes.data()), bytes.size()));
}

}  // namespace

PngWriter::PngWriter(ByteSink& sink, const PngHeader& header)
    : sink_(sink),
      header_(header),
      band_rows_(std::max<std::size_t>(1, band_bytes / (header.row_bytes() + 1))),
      rows_(header.row_bytes()) {
    std::ranges::fill(std::span(rows_.data(), rows_.size()), std::byte{0});  // above the first row
    constexpr std::array<unsigned char, 8> signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    sink_.append(std::as_bytes(std::span(signature)));
    constexpr std::array<unsigned char, 5> types{0, 0, 4, 2, 6};  // by the number of channels
    std::array<unsigned char, 13> fields{};
    const std::uint32_t width = big_endian(header.width);
    const std::uint32_t height = big_endian(header.height);
    std::memcpy(fields.data(), &width, 4);
    std::memcpy(fields.data() + 4, &height, 4);
    fields[8] = static_cast<unsigned char>(header.bits);
    fields[9] = types[static_cast<std::size_t>(header.channels)];
    write_chunk("IHDR", std::as_bytes(std::span(fields)));
}

void PngWriter::write_chunk(const char* type, ByteSpan data) {
    constexpr std::size_t name = 4;
    const std::uint32_t size = big_endian(static_cast<std::uint32_t>(data.size()));
    uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(type), name);
    // Without bytes zlib would begin anew.
    if (!data.empty()) crc = ::crc32_z(crc, bytes_of(data.data()), data.size());
    const std::uint32_t check = big_endian(static_cast<std::uint32_t>(crc));
    sink_.append(std::as_bytes(std::span(&size, 1)));
    sink_.append(std::as_bytes(std::span(type, name)));
    sink_.append(data);
    sink_.append(std::as_bytes(std::span(&check, 1)));
}

void PngWriter::append(ByteSpan pixels, const IoOptions& io) {
    io_ = io;
    io_.progress = nullptr;
    const auto bands = static_cast<std::size_t>(std::min(thread_count(io), 16));
    const std::size_t most = bands * band_rows_ * header_.row_bytes();
    while (!pixels.empty()) {
        // Only before more comes: the last band ends the stream.
        if (pending_ == most) write_rows(false);
        const std::size_t n = std::min(pixels.size(), most - pending_);
        rows_.append(pixels.first(n));
        pending_ += n;
        pixels = pixels.subspan(n);
    }
}

/// Chooses the filter whose results are smallest, as libpng does.
void PngWriter::filter_row(std::size_t row) {
    const std::size_t size = header_.row_bytes();
    const auto* const before = reinterpret_cast<const std::uint8_t*>(std::as_const(rows_).data()) + row * size;
    const std::uint8_t* const now = before + size;
    auto* const out = reinterpret_cast<std::uint8_t*>(filtered_.data()) + dictionary_ + row * (size + 1);
    Buffer memory(size);
    auto* const tried = reinterpret_cast<std::uint8_t*>(memory.data());
    std::uint64_t least = UINT64_MAX;
    for (std::size_t filter = 0; filter < filters.size(); ++filter) {
        const std::uint64_t sum = filters[filter](now, before, size, header_.pixel_bytes(), tried, least);
        if (sum >= least) continue;
        least = sum;
        out[0] = static_cast<std::uint8_t>(filter);
        std::memcpy(out + 1, tried, size);
    }
}

std::pair<std::size_t, std::size_t> PngWriter::rows_of(std::int64_t band) const {
    const std::size_t first = static_cast<std::size_t>(band) * band_rows_;
    return {first, std::min(pending_ / header_.row_bytes(), first + band_rows_)};
}

void PngWriter::write_stream(ByteSpan stream) {
    constexpr std::size_t longest = std::size_t{1} << 30;
    if (!std::exchange(begun_, true)) {
        constexpr std::array<unsigned char, 2> head{0x78, 0x9C};  // deflate with a window of 32 KiB, level 6
        write_chunk("IDAT", std::as_bytes(std::span(head)));
    }
    while (!stream.empty()) {
        const ByteSpan part = stream.first(std::min(stream.size(), longest));
        write_chunk("IDAT", part);
        stream = stream.subspan(part.size());
    }
}

/// Forgets written rows, except the part that the next ones need.
void PngWriter::keep_last_rows() {
    const std::size_t size = header_.row_bytes();
    const std::size_t kept = std::min(filtered_.size(), window);
    std::memmove(filtered_.data(), filtered_.data() + filtered_.size() - kept, kept);
    dictionary_ = kept;
    std::memmove(rows_.data(), rows_.data() + pending_ / size * size, size);
    rows_.resize(size);
    pending_ = 0;
}

void PngWriter::write_rows(bool last) {
    const std::size_t rows = pending_ / header_.row_bytes();
    const std::size_t line = header_.row_bytes() + 1;
    filtered_.resize(dictionary_ + rows * line);
    const auto bands = static_cast<std::int64_t>((rows + band_rows_ - 1) / band_rows_);
    parallel_for(bands, io_, [&](std::int64_t band) {
        const auto [first, end] = rows_of(band);
        for (std::size_t row = first; row < end; ++row) filter_row(row);
    });
    std::vector<Buffer> streams(static_cast<std::size_t>(bands));
    std::vector<std::uint32_t> sums(static_cast<std::size_t>(bands));
    const ByteSpan all = std::as_const(filtered_).span();
    parallel_for(bands, io_, [&](std::int64_t band) {
        const auto [first, end] = rows_of(band);
        const std::size_t begin = dictionary_ + first * line;
        const std::size_t known = std::min(begin, window);
        const ByteSpan own = all.subspan(begin, (end - first) * line);
        streams[static_cast<std::size_t>(band)] =
            deflated(all.subspan(begin - known, known), own, last && band == bands - 1);
        sums[static_cast<std::size_t>(band)] = adler_of(1, own);
    });
    for (std::int64_t band = 0; band < bands; ++band) {
        const auto [first, end] = rows_of(band);
        adler_ = static_cast<std::uint32_t>(::adler32_combine(adler_, sums[static_cast<std::size_t>(band)],
                                                              static_cast<z_off_t>((end - first) * line)));
        write_stream(std::as_const(streams[static_cast<std::size_t>(band)]).span());
        streams[static_cast<std::size_t>(band)] = Buffer();
    }
    keep_last_rows();
}

void PngWriter::finish() {
    write_rows(true);
    const std::uint32_t check = big_endian(adler_);
    write_chunk("IDAT", std::as_bytes(std::span(&check, 1)));
    write_chunk("IEND", {});
}

}  // namespace tessera
