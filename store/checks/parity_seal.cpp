// The order on the disk, which leaves the old seal or the new one after a kill at any moment: the parity files of all
// segments, which nobody looks for yet; when they are durable, root.0, the commit; the other roots and the manifest;
// last, parity files that the root does not name go. As long as there is a root, the manifest that it names counts
// alone.
#include "parity_seal.h"

#include <fmt/format.h>
#include <tessera/error.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <span>

#include "parity_encode.h"
#include "parity_index.h"
#include "parity_layout.h"

namespace tessera {

namespace {

std::uint64_t memory_of(const IoOptions& io) {
    constexpr std::uint64_t most = std::uint64_t{64} << 20;
    constexpr std::uint64_t unless_given = std::uint64_t{256} << 20;
    const std::uint64_t memory = io.max_memory == 0 ? unless_given : io.max_memory;
    return std::max<std::uint64_t>(std::uint64_t{64} << 10, std::min(most, memory / 4));
}

std::vector<SealedFile> records_of(const KeyValueStore& store, std::string_view prefix,
                                   const std::vector<SummedFile>& files) {
    std::vector<SealedFile> records;
    records.reserve(files.size());
    for (const SummedFile& file : files) {
        const std::string key = join_key(prefix, file.path);
        const auto facts = facts_of(store, key);
        if (!facts) throw not_found(fmt::format("{}: gone since it was listed", join_key(store.name(), key)));
        records.push_back({file.path, facts->size, facts->modified, facts->mode, {}});
    }
    return records;
}

/// The sums of files that lie in several segments, which are computed by themselves.
void sum_spread_files(const KeyValueStore& store, std::string_view prefix,
                      const std::vector<std::vector<Extent>>& segments, std::vector<SealedFile>& records,
                      const IoOptions& io) {
    std::map<std::uint32_t, std::set<std::size_t>> in;
    for (std::size_t s = 0; s < segments.size(); ++s) {
        for (const Extent& extent : segments[s]) {
            if (records[extent.file].size > extent_size) in[extent.file].insert(s);
        }
    }
    std::vector<std::uint32_t> spread;
    for (const auto& [file, where] : in) {
        if (where.size() > 1) spread.push_back(file);
    }
    parallel_for(std::ssize(spread), io, [&](std::int64_t n) {
        SealedFile& record = records[spread[static_cast<std::size_t>(n)]];
        const std::string key = join_key(prefix, record.path);
        const auto sum = sum_of(store, key);
        if (!sum) throw not_found(fmt::format("{}: gone since it was listed", join_key(store.name(), key)));
        record.sum = *sum;
    });
}

/// A file that was written to meanwhile may have sums of two versions.
void require_unchanged(const KeyValueStore& store, std::string_view prefix, const std::vector<SealedFile>& records) {
    for (const SealedFile& record : records) {
        const std::string key = join_key(prefix, record.path);
        const auto facts = facts_of(store, key);
        if (facts && facts->size == record.size && facts->modified == record.modified) continue;
        throw invalid_argument(
            fmt::format("{}: changed while it was sealed; run this again when no program writes there",
                        join_key(store.name(), key)));
    }
}

/// Removes what the root does not name.
void remove_unnamed(KeyValueStore& store, std::string_view prefix, const ParityRoot& root) {
    std::set<std::string> named;
    for (int copy = 0; copy < parity_roots; ++copy) named.insert(root_key(copy));
    for (const SegmentName& segment : root.segments) {
        for (std::uint32_t row = 0; row < segment.parity; ++row) named.insert(parity_key(segment.sum, row));
    }
    for (const std::string& name : store.list(join_key(prefix, parity_folder)).keys) {
        const std::string key = join_key(parity_folder, name);
        if (!named.contains(key)) store.erase(join_key(prefix, key));
    }
}

}  // namespace

std::uint64_t seal_with_parity(KeyValueStore& store, std::string_view prefix, const std::vector<SummedFile>& files,
                               const Redundancy& redundancy, const IoOptions& io) {
    std::vector<SealedFile> records = records_of(store, prefix, files);
    ParityRoot root;
    root.redundancy = redundancy;
    root.files = records.size();
    for (const SealedFile& record : records) root.bytes += record.size;
    if (io.progress != nullptr) io.progress->start(static_cast<std::int64_t>(root.bytes), "sealing");
    const auto segments = deal_extents(records, redundancy, memory_of(io));
    sum_spread_files(store, prefix, segments, records, io);
    const std::uint32_t block_size = parity_block_size(root.bytes);
    std::uint64_t parity_bytes = 0;
    for (const auto& extents : segments) {
        LaidOut laid = lay_out(extents, records, block_size, redundancy);
        const Buffer parity = encode_parity(store, prefix, laid.segment, true, io);
        for (std::size_t i = 0; i < laid.numbers.size(); ++i) {
            records[laid.numbers[i]].sum = laid.segment.files[i].sum;
        }
        const Buffer index = encode_segment_index(laid.segment);
        for (std::uint32_t row = 0; row < laid.segment.parity; ++row) {
            write_parity(store, prefix, laid.segment, index.span(), parity.span(), row);
        }
        root.segments.push_back({index_sum(index.span()), index.size(), laid.segment.parity});
        parity_bytes += laid.segment.parity * index.size() + parity.size();
    }
    require_unchanged(store, prefix, records);
    store.sync();
    Sums sums;
    for (const SealedFile& record : records) sums.emplace_back(record.path, record.sum);
    const std::string manifest = manifest_of(sums);
    Hasher hasher;
    hasher.add(manifest.data(), manifest.size());
    root.manifest = hasher.finish();
    root.sealed =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    const Buffer encoded = encode_root(root);
    for (int copy = 0; copy < parity_roots; ++copy) {
        store.put(join_key(prefix, root_key(copy)), encoded.span());
        if (copy == 0) store.sync();
    }
    store.put(join_key(prefix, seal_sums_key), std::as_bytes(std::span(manifest)));
    store.sync();
    remove_unnamed(store, prefix, root);
    store.sync();
    return parity_bytes;
}

void drop_parity(KeyValueStore& store, std::string_view prefix) {
    // The first root is the one that counts: the next takes its place, and says the same.
    for (int copy = 0; copy < parity_roots; ++copy) {
        if (store.erase(join_key(prefix, root_key(copy)))) store.sync();
    }
    store.erase_below(join_key(prefix, parity_folder));
    store.sync();
}

}  // namespace tessera
