#include "parity_encode.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/system_calls.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <vector>

#include "beneath.h"
#include "parity_code.h"
#include "sealed_file_store.h"

namespace tessera {

namespace {

constexpr std::int64_t second = 1'000'000'000;

std::string path_of(const ReadableStore& store, const std::string& key) {
    if (const auto* beside = as_sealed_file(store)) return beside->file_of(key).string();
    return (std::filesystem::path(store.name()) / key).string();
}

/// Adds pieces to the parity of their groups. Any thread.
class ParitySum {
public:
    explicit ParitySum(const Segment& segment)
        : segment_(segment),
          code_(segment.rows, segment.parity),
          bytes_(std::size_t{segment.parity} * segment.groups * segment.block_size),
          locks_(segment.groups) {
        std::ranges::fill(bytes_.span(), std::byte{0});
    }

    void add(const Piece& piece, ByteSpan bytes) {
        const std::uint32_t group = segment_.group_of(piece);
        std::vector<unsigned char*> rows(segment_.parity);
        for (std::uint32_t i = 0; i < segment_.parity; ++i) {
            const std::size_t block = std::size_t{i} * segment_.groups + group;
            rows[i] = reinterpret_cast<unsigned char*>(bytes_.data() + block * segment_.block_size + piece.place);
        }
        const std::lock_guard lock(locks_[group]);
        code_.add(segment_.row_of(piece), bytes, rows);
    }

    Buffer finish() { return std::move(bytes_); }

private:
    const Segment& segment_;
    CauchyCode code_;
    Buffer bytes_;
    std::vector<std::mutex> locks_;
};

/// The number of each file's first piece among all pieces; then the number of all.
std::vector<std::size_t> first_pieces(const Segment& segment) {
    std::vector<std::size_t> first(segment.files.size() + 1, segment.pieces.size());
    for (std::size_t i = segment.pieces.size(); i-- > 0;) first[segment.pieces[i].file] = i;
    for (std::size_t f = segment.files.size(); f-- > 0;) first[f] = std::min(first[f], first[f + 1]);
    return first;
}

void add_file(const ByteSource& source, SealedFile& file, std::span<Piece> pieces, ParitySum& sum, bool sealing) {
    Hasher hasher;
    Buffer bytes;
    std::uint64_t hashed = 0;
    for (Piece& piece : pieces) {
        bytes.reset(piece.length);
        source.read(piece.offset, bytes.span());
        hasher.add(bytes.data(), bytes.size());
        hashed += piece.length;
        const std::uint32_t crc = crc32_of(bytes.span());
        if (sealing) {
            piece.crc = crc;
        } else if (piece.crc != crc) {
            throw corrupt("{}: not as it was sealed, so that no parity can be made of it", source.name());
        }
        sum.add(piece, bytes.span());
    }
    if (sealing && hashed == file.size) file.sum = hasher.finish();
}

}  // namespace

std::optional<FileFacts> facts_of(const ReadableStore& store, const std::string& key) {
    if (!store.local_files().folder_id("")) {
        const auto stamp = store.stamp(key);
        if (!stamp) return std::nullopt;
        return FileFacts{.size = stamp->size, .modified = stamp->modified};
    }
    struct stat status {};
    if (::stat(path_of(store, key).c_str(), &status) != 0) return std::nullopt;
    return FileFacts{static_cast<std::uint64_t>(status.st_size),
                     status.st_mtim.tv_sec * second + status.st_mtim.tv_nsec, status.st_mode & 07777U,
                     status.st_ctim.tv_sec * second + status.st_ctim.tv_nsec};
}

std::optional<std::uint64_t> space_of(const ReadableStore& store) {
    if (!store.local_files().folder_id("")) return std::nullopt;
    std::error_code unknown;
    const auto space = std::filesystem::space(store.name(), unknown);
    return unknown ? std::nullopt : std::optional<std::uint64_t>(space.available);
}

void set_facts(const ReadableStore& store, const std::string& key, std::int64_t modified, std::uint32_t mode) {
    if (!store.local_files().folder_id("")) return;
    const Descriptor root(::open(store.name().c_str(), os::lookup | O_DIRECTORY | O_CLOEXEC));
    const Descriptor file(root.get() < 0 ? -1 : open_beneath(root.get(), key.c_str(), O_RDONLY | O_NONBLOCK));
    if (file.get() < 0) return;  // behind a link, or gone; its content was restored
    const std::int64_t nanoseconds = ((modified % second) + second) % second;
    const timespec time{(modified - nanoseconds) / second, nanoseconds};
    const std::array<timespec, 2> times{time, time};
    if (::futimens(file.get(), times.data()) != 0 || ::fchmod(file.get(), mode & 0777U) != 0) {
        throw io_error("setting time and mode of", path_of(store, key), errno);
    }
}

Buffer encode_parity(const PlaceView& place, Segment& segment, bool sealing, const IoOptions& io) {
    ParitySum sum(segment);
    const std::vector<std::size_t> first = first_pieces(segment);
    parallel_for(std::ssize(segment.files), io, [&](std::int64_t n) {
        const auto f = static_cast<std::size_t>(n);
        SealedFile& file = segment.files[f];
        const std::string key = place.key(file.path);
        const auto source = place.store.open(key);
        if (source == nullptr) throw not_found("{}: gone since it was listed", place.store.name_of(key));
        if (source->size() != file.size) {
            throw invalid_argument(
                "{}: has {} bytes, expected {}: a program writes there; run this again "
                "when none does",
                place.store.name_of(key), source->size(), file.size);
        }
        const auto pieces = std::span(segment.pieces).subspan(first[f], first[f + 1] - first[f]);
        add_file(*source, file, pieces, sum, sealing);
        std::int64_t done = 0;
        for (const Piece& piece : pieces) done += piece.length;
        if (io.progress != nullptr) io.progress->advance(done);
    });
    Buffer parity = sum.finish();
    segment.parity_crc.resize(std::size_t{segment.parity} * segment.groups);
    for (std::size_t i = 0; i < segment.parity_crc.size(); ++i) {
        segment.parity_crc[i] = crc32_of(parity.span().subspan(i * segment.block_size, segment.block_size));
    }
    return parity;
}

void write_parity(const PlaceRef& place, const Segment& segment, ByteSpan index, ByteSpan parity, std::uint32_t row) {
    const auto sink = place.store.create(place.key(parity_key(index_sum(index), row)));
    sink->append(index);
    const std::array<std::byte, 64> zeros{};
    sink->append(std::span(zeros).first(parity_offset(segment, index.size(), 0) - index.size()));
    const std::size_t size = std::size_t{segment.groups} * segment.block_size;
    sink->append(parity.subspan(row * size, size));
    sink->finish();
}

}  // namespace tessera
