#include "parity_archive.h"

#include <tessera/error_text.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace tessera {

namespace {

/// The content of a parity file; nullopt if it is missing or damaged.
template <class Read>
auto read_if_whole(const ReadableStore& store, const std::string& key, const Read& read)
    -> std::optional<decltype(read(std::declval<const ByteSource&>()))> {
    try {
        const auto source = store.open(key);
        if (source == nullptr) return std::nullopt;
        return read(*source);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        if (e.code() == ErrorCode::unsupported || e.code() == ErrorCode::budget) throw e.within(store.name_of(key));
        return std::nullopt;
    }
}

ListedFile listed(const SealedFile& file) {
    return {.path = file.path, .size = file.size, .modified = file.modified, .mode = file.mode, .sum = file.sum};
}

}  // namespace

bool SegmentState::whole() const {
    return bad_blocks() == 0 && std::ranges::count(whole_file, 0) == 0;
}

std::int64_t SegmentState::bad_blocks() const {
    return std::ranges::count(good, 0);
}

std::optional<ParityArchive> ParityArchive::open(const PlaceView& place) {
    const std::string folder = place.key(parity_folder);
    const Listing listing = place.store.list(folder);
    if (listing.keys.empty()) return std::nullopt;
    ParityArchive archive(place);
    std::optional<Buffer> chosen;
    for (int copy = 0; copy < parity_roots; ++copy) {
        auto root = read_if_whole(place.store, place.key(root_key(copy)), read_root);
        if (!root) continue;
        Buffer encoded = encode_root(*root);
        if (!chosen) {
            archive.root_ = std::move(*root);
            chosen = std::move(encoded);
            archive.roots_good_[static_cast<std::size_t>(copy)] = 1;
        } else if (std::ranges::equal(encoded.span(), chosen->span())) {
            archive.roots_good_[static_cast<std::size_t>(copy)] = 1;
        }
    }
    if (chosen) return archive;
    if (std::ranges::count(listing.keys, unfinished_parity) > 0) return std::nullopt;
    if (std::ranges::none_of(listing.keys, is_parity_file)) return std::nullopt;
    in_context([&] { return place.store.name_of(folder); }, [&] { archive.find_segments(listing); });
    return archive;
}

/// Without a root, every index that can be read counts.
void ParityArchive::find_segments(const Listing& listing) {
    std::set<std::string> tried;
    FileSorter sorter(spool_folder(*store_));
    std::uint64_t covered = 0;
    for (const std::string& key : listing.keys) {
        if (!is_segment_file(key) || tried.contains(key.substr(0, 16))) continue;
        const auto named = read_if_whole(*store_, join_key(join_key(prefix_, parity_folder), key), read_named_segment);
        if (!named || hex(named->name.sum).substr(0, 16) != key.substr(0, 16)) continue;
        tried.insert(key.substr(0, 16));
        const Segment& s = named->segment;
        root_.redundancy = {Redundancy::Kind::share, s.parity * 1'000'000U / s.rows};
        root_.segments.push_back(named->name);
        for (const SealedFile& file : s.files) sorter.add(listed(file));
        for (const Piece& piece : s.pieces) covered += piece.length;
    }
    if (root_.segments.empty()) throw corrupt("no root and no index of the parity can be read: it restores nothing");
    const FileList files = sorter.sort_unique([](const ListedFile& kept, const ListedFile& file) {
        if (kept.size == file.size && kept.modified == file.modified && kept.mode == file.mode &&
            kept.sum == file.sum) {
            return;
        }
        throw corrupt("two segments of parity disagree about {}, and no root says which of them counts", file.path);
    });
    root_.bytes = files.bytes();
    if (covered > root_.bytes) {
        throw corrupt("no root can be read, and parity of more than one seal exists; it is unknown which one is valid");
    }
    root_.files = files.size();
    root_.manifest = manifest_sum(each_of(files));
}

bool ParityArchive::roots_good() const {
    return std::ranges::count(roots_good_, 0) == 0;
}

std::optional<NamedSegment> ParityArchive::segment(std::size_t number) const {
    const SegmentName& name = root_.segments[number];
    for (std::uint32_t row = 0; row < name.parity; ++row) {
        auto named = read_if_whole(*store_, join_key(prefix_, parity_key(name.sum, row)), read_named_segment);
        if (named && named->name == name) return named;
    }
    return std::nullopt;
}

std::optional<SegmentState> ParityArchive::state(std::size_t number, const IoOptions& io) const {
    auto named = segment(number);
    if (!named) return std::nullopt;
    SegmentState state;
    state.named = std::move(*named);
    const Segment& s = state.named.segment;
    state.good.resize(s.parity_crc.size());
    state.whole_file.resize(s.parity);
    parallel_for(s.parity, io, [&](std::int64_t n) {
        const auto row = static_cast<std::uint32_t>(n);
        const std::string key = join_key(prefix_, parity_key(state.named.name.sum, row));
        const auto there = read_if_whole(*store_, key, read_named_segment);
        state.whole_file[row] = there && there->name == state.named.name ? 1 : 0;
        (void)read_if_whole(*store_, key, [&](const ByteSource& file) {
            Buffer block(s.block_size);
            for (std::uint32_t g = 0; g < s.groups; ++g) {
                const std::uint64_t at = parity_offset(s, state.named.name.index_size, g);
                if (at + s.block_size > file.size()) break;
                const std::size_t i = std::size_t{row} * s.groups + g;
                state.good[i] = read_intact(file, at, block, s.parity_crc[i]) ? 1 : 0;
            }
            return true;
        });
    });
    return state;
}

FileList ParityArchive::sums(bool& complete, const FileList* others) const {
    FileSorter sorter(spool_folder(*store_));
    complete = true;
    for (std::size_t i = 0; i < segments(); ++i) {
        const auto named = segment(i);
        if (!named) complete = false;
        if (named) {
            for (const SealedFile& file : named->segment.files) sorter.add({.path = file.path, .sum = file.sum});
        }
    }
    if (others != nullptr) {
        FileList::Reader reader(*others);
        while (const ListedFile* const file = reader.next()) sorter.add({.path = file->path, .sum = file->sum});
    }
    return sorter.sort_unique(nullptr);
}

bool ParityArchive::manifest_good() const {
    try {
        const auto sum = sum_of(*store_, join_key(prefix_, seal_sums_key));
        return sum && *sum == root_.manifest;
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        return false;
    }
}

bool ParityArchive::is_unfinished() const {
    const std::vector<std::string> names = store_->list(join_key(prefix_, parity_folder)).keys;
    const std::set<std::string> named = named_files(root_);
    return std::ranges::any_of(names, [&](const std::string& name) {
        return is_parity_file(name) && !named.contains(join_key(parity_folder, name));
    });
}

bool is_first_unfinished(const PlaceView& place) {
    const std::vector<std::string> names = place.store.list(place.key(parity_folder)).keys;
    const auto is_root = [](const std::string& name) {
        for (int copy = 0; copy < parity_roots; ++copy) {
            if (join_key(parity_folder, name) == root_key(copy)) return true;
        }
        return false;
    };
    return std::ranges::count(names, unfinished_parity) > 0 && std::ranges::none_of(names, is_root);
}

std::set<std::string> named_files(const ParityRoot& root) {
    std::set<std::string> named;
    for (int copy = 0; copy < parity_roots; ++copy) named.insert(root_key(copy));
    for (const SegmentName& segment : root.segments) {
        for (std::uint32_t row = 0; row < segment.parity; ++row) named.insert(parity_key(segment.sum, row));
    }
    return named;
}

std::vector<std::string> directories_in_places(const PlaceView& place) {
    std::vector<std::string> found;
    if (place.store.local_files().folder_id(place.key(seal_sums_key))) found.emplace_back(seal_sums_key);
    for (const std::string& name : place.store.list(place.key(parity_folder)).prefixes) {
        if (is_parity_file(name)) found.push_back(join_key(parity_folder, name));
    }
    return found;
}

std::optional<FileList> sealed_sums(const PlaceView& place) {
    const std::string key = place.key(seal_sums_key);
    const auto archive = ParityArchive::open(place);
    if (!archive || archive->manifest_good()) return load_sums(place.store, key);
    bool complete = false;
    FileList sums = archive->sums(complete);
    if (complete) return sums;
    try {
        if (const auto manifest = load_sums(place.store, key)) return archive->sums(complete, &*manifest);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;  // only the indices are left
    }
    return sums;
}

}  // namespace tessera
