// Restoring takes three steps. First the lost pieces are computed from the parity of all segments, and spooled to one
// file in `.tessera/parity`; memory holds only their offsets. Then each file is assembled from these and from the good
// pieces of the old file, under a temporary name. It gets its own name only if its SHA-256 is the sealed one. Finally
// damaged parity files are written anew.
#include "parity_restore.h"

#include <fmt/format.h>
#include <tessera/error.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "copy_bytes.h"
#include "move_aside.h"
#include "parity_encode.h"
#include "sealed_file_store.h"

namespace tessera {

namespace {

constexpr std::string_view spool_name = ".tessera/parity/recovered";

/// Bytes of a file that lie in the spool.
struct Recovered {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t length = 0;
    std::uint64_t at = 0;  ///< in the spool
};

class Restorer {
public:
    Restorer(KeyValueStore& store, const ParityArchive& archive, const PathSet& differing, const PathSet& wanted,
             bool dry_run, const IoOptions& io)
        : store_(store), archive_(archive), differing_(differing), wanted_(wanted), dry_run_(dry_run), io_(io) {}

    std::vector<Restored> run() {
        compute();
        assemble();
        return std::move(results_);
    }

private:
    [[nodiscard]] std::string key(std::string_view path) const { return join_key(archive_.prefix(), path); }

    void compute();
    void compute_segment(const SegmentState& state, ByteSink* spool);
    void assemble();
    Restored assemble_file(const SealedFile& file, const ByteSource* spool);
    [[nodiscard]] Sha256 write_file(const SealedFile& file, const ByteSource* spool, ByteSink& sink) const;
    [[nodiscard]] std::string keep_old(const std::string& path);
    [[nodiscard]] std::string move_aside(const std::string& path);
    [[nodiscard]] std::string clear_way(const std::string& path);

    KeyValueStore& store_;
    const ParityArchive& archive_;
    const PathSet& differing_;
    const PathSet& wanted_;
    bool dry_run_;
    const IoOptions& io_;
    std::mutex mutex_;
    std::uint64_t spooled_ = 0;
    std::map<std::string, SealedFile, std::less<>> records_;  ///< of the wanted files that a segment names
    std::map<std::string, std::vector<Recovered>, std::less<>> recovered_;
    PathSet unsolvable_;
    std::vector<Restored> results_;
};

void Restorer::compute() {
    const auto spool = dry_run_ ? nullptr : store_.create(key(spool_name));
    for (std::size_t i = 0; i < archive_.segments(); ++i) {
        const auto state = archive_.state(i, io_);
        if (!state) continue;
        const auto& files = state->named.segment.files;
        const bool concerned =
            std::ranges::any_of(files, [&](const SealedFile& f) { return wanted_.contains(f.path); });
        if (concerned) compute_segment(*state, spool.get());
    }
    if (spool != nullptr) spool->finish();
}

void Restorer::compute_segment(const SegmentState& state, ByteSink* spool) {
    const Segment& segment = state.named.segment;
    for (const SealedFile& file : segment.files) {
        if (wanted_.contains(file.path)) records_.emplace(file.path, file);
    }
    const SegmentDecoder decoder({store_, archive_.prefix()}, state, differing_, io_);
    unsolvable_.merge(decoder.unsolvable());
    if (spool == nullptr) return;
    const std::vector<std::uint32_t> groups = decoder.groups_with(wanted_);
    parallel_in_memory(std::ssize(groups), io_, [&](std::int64_t n) {
        decoder.decode(groups[static_cast<std::size_t>(n)], wanted_, [&](const Piece& piece, ByteSpan bytes) {
            const std::lock_guard lock(mutex_);
            spool->append(bytes);
            recovered_[segment.files[piece.file].path].push_back({piece.offset, bytes.size(), spooled_});
            spooled_ += bytes.size();
        });
    });
}

void Restorer::assemble() {
    std::vector<const SealedFile*> files;
    for (const std::string& path : wanted_) {
        const auto record = records_.find(path);
        if (record == records_.end()) {
            results_.push_back({path, false, "no index of its segment can be read"});
        } else if (unsolvable_.contains(path)) {
            results_.push_back({path, false, "more is lost than the parity can give back"});
        } else if (dry_run_) {
            results_.push_back({path, true, "would be restored from parity"});
        } else {
            files.push_back(&record->second);
        }
    }
    if (dry_run_) return;
    for (auto& [path, pieces] : recovered_) std::ranges::sort(pieces, {}, &Recovered::offset);
    const auto spool = store_.open(key(spool_name));
    parallel_for(std::ssize(files), io_, [&](std::int64_t n) {
        Restored restored = assemble_file(*files[static_cast<std::size_t>(n)], spool.get());
        const std::lock_guard lock(mutex_);
        results_.push_back(std::move(restored));
    });
    store_.sync();
    store_.erase(key(spool_name));
    std::ranges::sort(results_, {}, &Restored::path);
}

Restored Restorer::assemble_file(const SealedFile& file, const ByteSource* spool) {
    try {
        const std::string in_the_way = clear_way(file.path);
        const auto sink = store_.create(key(file.path));
        if (write_file(file, spool, *sink) != file.sum) {
            return {file.path, false,
                    "the bytes restored from parity do not match the sealed SHA-256; the file is left unchanged"};
        }
        const std::string aside = keep_old(file.path);
        sink->finish();
        set_facts(store_, key(file.path), file.modified, file.mode);
        Restored restored{file.path, true, "restored from parity"};
        if (!in_the_way.empty()) restored.text += fmt::format("; what stood in its place is {}", in_the_way);
        if (aside.empty()) return restored;
        const auto* beside = as_sealed_file(store_);
        restored.text += fmt::format("; the damaged file is {}", beside == nullptr ? aside : beside->shown(aside));
        restored.kept = archive_.prefix().empty() ? aside : aside.substr(archive_.prefix().size() + 1);
        restored.stamp = store_.stamp(key(file.path)).value_or(ValueStamp{});
        return restored;
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
        return {file.path, false, e.what()};
    }
}

Sha256 Restorer::write_file(const SealedFile& file, const ByteSource* spool, ByteSink& sink) const {
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    std::unique_ptr<ByteSource> old;
    try {
        old = store_.open(key(file.path));
    } catch (const Error&) {
        old = nullptr;  // all of it is in the spool
    }
    const auto found = recovered_.find(file.path);
    const std::vector<Recovered> none;
    const std::vector<Recovered>& pieces = found == recovered_.end() ? none : found->second;
    auto next = pieces.begin();
    Hasher hasher;
    Buffer bytes;
    for (std::uint64_t at = 0; at < file.size; at += bytes.size()) {
        if (next != pieces.end() && next->offset == at) {
            bytes.reset(next->length);
            spool->read(next->at, bytes.span());
            ++next;
        } else {
            const std::uint64_t end = next == pieces.end() ? file.size : next->offset;
            if (old == nullptr || end <= at) throw corrupt("its pieces do not make up the whole file");
            bytes.reset(std::min(most, end - at));
            old->read(at, bytes.span());
        }
        hasher.add(bytes.data(), bytes.size());
        sink.append(bytes.span());
    }
    return hasher.finish();
}

/// Moves what has a name below the archive to .tessera/damaged. Returns its new name.
std::string Restorer::move_aside(const std::string& path) {
    std::string aside = aside_key({store_, archive_.prefix()}, key(path));
    (void)store_.replace(key(path), aside);
    return aside;
}

/// Moves aside a directory that stands in the place of a file, and files in the places of the directories above it.
/// Returns the new name of the last of these; empty if nothing was in the way.
std::string Restorer::clear_way(const std::string& path) {
    const std::lock_guard lock(mutex_);  // others may restore files of the same directory
    std::string aside;
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
        const std::string folder = path.substr(0, slash);
        if (store_.stamp(key(folder))) aside = move_aside(folder);
    }
    if (store_.local_files().folder_id(key(path))) aside = move_aside(path);
    return aside;
}

/// Empty if there is nothing.
std::string Restorer::keep_old(const std::string& path) {
    const std::lock_guard lock(mutex_);  // one name, one file
    return keep_aside({store_, archive_.prefix()}, key(path));
}

// ---- the parity itself

/// Writes the damaged parity files of a segment anew; nullopt if none is damaged.
std::optional<Restored> renew_segment(KeyValueStore& store, const ParityArchive& archive, std::size_t number,
                                      const PathSet& differing, bool dry_run, const IoOptions& io) {
    const std::string folder(parity_folder);
    auto state = archive.state(number, io);
    if (!state) {
        return Restored{folder, false,
                        fmt::format("no index of segment {} can be read: its files are not covered; seal again",
                                    hex(archive.root().segments[number].sum).substr(0, 16))};
    }
    if (state->whole()) return std::nullopt;
    Segment& segment = state->named.segment;
    const std::string name = parity_key(state->named.name.sum, 0).substr(0, parity_folder.size() + 17);
    const SegmentDecoder decoder({store, archive.prefix()}, *state, differing, io);
    if (decoder.any_erased() && !dry_run) {
        return Restored{name, false, "parity is damaged, and cannot be made anew while files are not as sealed"};
    }
    if (dry_run) return Restored{name, true, "its damaged parity would be made anew, once all files are as sealed"};
    const std::vector<std::uint32_t> crcs = segment.parity_crc;
    const Buffer parity = encode_parity({store, archive.prefix()}, segment, false, io);
    if (segment.parity_crc != crcs) return Restored{name, false, "its index does not agree with the files; seal again"};
    const Buffer index = encode_segment_index(segment);
    std::int64_t written = 0;
    for (std::uint32_t row = 0; row < segment.parity; ++row) {
        const auto first = state->good.begin() + std::ptrdiff_t{row} * segment.groups;
        if (state->whole_file[row] != 0 && std::count(first, first + segment.groups, char{0}) == 0) continue;
        write_parity({store, archive.prefix()}, segment, index.span(), parity.span(), row);
        ++written;
    }
    return Restored{name, true, fmt::format("{} of {} parity files made anew", written, segment.parity)};
}

/// The roots and the manifest.
std::optional<Restored> renew_roots(KeyValueStore& store, const ParityArchive& archive, bool dry_run) {
    if (archive.roots_good() && archive.manifest_good()) return std::nullopt;
    const std::string root = root_key(0);
    if (dry_run) return Restored{root, true, "roots and manifest would be made anew"};
    const Buffer encoded = encode_root(archive.root());
    for (int copy = 0; copy < parity_roots; ++copy) {
        if (!archive.root_good(copy)) store.put(join_key(archive.prefix(), root_key(copy)), encoded.span());
    }
    if (archive.manifest_good()) return Restored{root, true, "made anew"};
    bool complete = false;
    const FileList files = archive.sums(complete);
    if (!complete || manifest_sum(each_of(files)) != archive.root().manifest) {
        return Restored{std::string(seal_sums_key), false,
                        "cannot be regenerated, because an index that it needs is unreadable"};
    }
    put_manifest(store, join_key(archive.prefix(), seal_sums_key), each_of(files));
    return Restored{root, true, "roots and manifest made anew"};
}

/// A directory in the place of one of the seal's files would keep it from being made anew.
void clear_places(const PlaceRef& place, bool dry_run, std::vector<Restored>& results) {
    const auto* beside = as_sealed_file(place.store);
    for (const std::string& path : directories_in_places(place)) {
        if (dry_run) {
            results.push_back({path, true, "the directory in its place would be set aside in .tessera/damaged"});
            continue;
        }
        const std::string aside = move_directory_aside(place, place.key(path));
        results.push_back({path, true,
                           fmt::format("the directory that stood in its place is {}",
                                       beside == nullptr ? aside : beside->shown(aside))});
    }
}

}  // namespace

std::vector<Restored> restore_from_parity(const PlaceRef& place, const PathSet& differing, const PathSet& wanted,
                                          bool dry_run, const IoOptions& io) {
    const auto archive = ParityArchive::open(place);
    if (!archive) return {};
    std::vector<Restored> results;
    if (!wanted.empty()) results = Restorer(place.store, *archive, differing, wanted, dry_run, io).run();
    clear_places({place.store, archive->prefix()}, dry_run, results);
    for (std::size_t i = 0; i < archive->segments(); ++i) {
        if (auto renewed = renew_segment(place.store, *archive, i, differing, dry_run, io)) {
            results.push_back(std::move(*renewed));
        }
    }
    if (auto renewed = renew_roots(place.store, *archive, dry_run)) results.push_back(std::move(*renewed));
    if (!dry_run) place.store.sync();
    return results;
}

}  // namespace tessera
