// Making a BagIt bag; bag_state.h checks one.
#include <tessera/seal.h>

#include <fmt/format.h>
#include <tessera/destination_lock.h>
#include <tessera/error_text.h>
#include <tessera/group.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "bag_lists.h"
#include "copy_bytes.h"
#include "copy_source.h"
#include "directories.h"
#include "keys.h"
#include "parity_seal.h"
#include "replace_directory.h"
#include "resize.h"
#include "sealed_file_store.h"
#include "sha256.h"
#include "sums.h"

namespace tessera {

namespace {

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::localtime_r(&now, &date);
    return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

struct BagSums {
    Sha256 sha256{};
    Sha512 sha512{};
    std::uint64_t bytes = 0;
};

/// Sums of bytes that come piece by piece.
class BagHasher {
public:
    void add(ByteSpan bytes) {
        sha256_.add(bytes.data(), bytes.size());
        sha512_.add(bytes.data(), bytes.size());
        bytes_ += bytes.size();
    }
    [[nodiscard]] BagSums finish() { return {sha256_.finish(), sha512_.finish(), bytes_}; }

private:
    Hasher sha256_;
    Sha512Hasher sha512_;
    std::uint64_t bytes_ = 0;
};

/// The two manifests of the payload, or of the tag files, being written.
class BagManifests {
public:
    BagManifests(KeyValueStore& bag, std::string_view prefix)
        : sha256_(bag.create(fmt::format("{}manifest-sha256.txt", prefix))),
          sha512_(bag.create(fmt::format("{}manifest-sha512.txt", prefix))) {}

    void add(std::string_view path, const BagSums& sums) {
        append(*sha256_, hex(sums.sha256), path);
        append(*sha512_, hex(sums.sha512), path);
    }
    void finish() {
        sha256_->finish();
        sha512_->finish();
    }

private:
    static void append(ByteSink& sink, std::string_view sum, std::string_view path) {
        const std::string line = fmt::format("{}  {}\n", sum, bag_path(path));
        sink.append(std::as_bytes(std::span(line)));
    }
    std::unique_ptr<ByteSink> sha256_;
    std::unique_ptr<ByteSink> sha512_;
};

/// Copies the files to data/NAME/ of a bag, and writes their manifests. Returns the bytes that were copied: a file may
/// have changed since it was listed.
std::uint64_t copy_payload(const PlaceView& place, std::string_view name, const FileList& files, KeyValueStore& bag,
                           const IoOptions& io) {
    const std::string folder = fmt::format("data/{}", name);
    BagManifests manifests(bag, "");
    std::uint64_t bytes = 0;
    for_each_file<BagSums>(
        files, io, "copying",
        [&](const ListedFile& file, BagSums& sums) {
            const std::string key = place.key(file.path);
            const auto source = place.store.open(key);
            if (source == nullptr) throw not_found("{}: gone while it was copied", place.store.name_of(key));
            BagHasher hasher;
            copy_bytes(*source, bag, join_key(folder, file.path), [&](ByteSpan piece) { hasher.add(piece); });
            sums = hasher.finish();
        },
        [&](const ListedFile& file, const BagSums& sums) {
            manifests.add(join_key(folder, file.path), sums);
            bytes += sums.bytes;
        });
    manifests.finish();
    return bytes;
}

void write_tags(KeyValueStore& bag, const BagInfo& info, const Sealed& size) {
    std::string text = fmt::format("Bag-Software-Agent: Tessera\nBagging-Date: {}\nPayload-Oxum: {}.{}\n", today(),
                                   size.bytes, size.files);
    for (const auto& [label, value] : info.labels) text += fmt::format("{}: {}\n", label, value);
    const auto put = [&](std::string_view name, std::string_view content) {
        bag.put(name, std::as_bytes(std::span(content)));
    };
    put("bag-info.txt", text);
    put(bag_declaration, "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n");
    if (!info.datacite.empty()) put("metadata/datacite.json", info.datacite);
}

/// Writes parity of everything in a bag, and returns its size in bytes.
std::uint64_t seal_bag(const std::filesystem::path& bag, const Redundancy& parity, const BagOptions& options) {
    const auto beside = SealedFileStore::of_bag(bag, options.store);
    return seal_with_parity(*beside, files_below(*beside), parity, {}, options.io);
}

/// Lists everything that is no payload.
void write_tag_manifests(KeyValueStore& bag) {
    std::vector<std::string> names;
    for (const std::string folder : {"", "metadata", bag_seal_folder, "tessera-seal/parity"}) {
        for (const std::string& name : bag.list(folder).keys) names.push_back(join_key(folder, name));
    }
    std::ranges::sort(names);
    BagManifests manifests(bag, "tag");
    for (const std::string& name : names) {
        const auto source = bag.open(name);
        if (source == nullptr) continue;
        BagHasher hasher;
        for_each_piece(*source, [&](ByteSpan piece) { hasher.add(piece); });
        manifests.add(name, hasher.finish());
    }
    manifests.finish();
}

}  // namespace

Sealed make_bag(const PlaceRef& at, std::string_view name, const std::filesystem::path& bag,
                const BagOptions& options) {
    require_local(bag, "a bag");
    const std::filesystem::path place = place_for_copy(bag, at);
    const DestinationLock building(place, options.store);
    if (std::filesystem::exists(status_of(place))) throw already_exists("{}: something is there already", bag.string());
    // After the lock of the bag, for which another run may wait.
    const LockedNodes locked = lock_to_copy(at);
    FileList files = files_below(at);
    Sealed size{.written = true, .outside = leave_out_stale(at, files)};
    if (files.empty()) throw not_found("{}: nothing to put in a bag", at.name());
    const std::string unfinished = hidden_name(place, "new");
    const auto parent = directory_store(place.parent_path(), options.store);
    BuiltDirectory directory(place.parent_path() / unfinished, options.store.durability);
    const auto built = directory_store(directory.path(), options.store);
    built->sync_later();
    size.files = static_cast<std::int64_t>(files.size());
    size.bytes = copy_payload(at, name, files, *built, options.io);
    write_tags(*built, options.info, size);
    if (options.parity) size.parity_bytes = seal_bag(directory.path(), *options.parity, options);
    write_tag_manifests(*built);
    built->sync();
    building.require_held();
    parent->move(unfinished, place.filename().string());
    directory.release();
    parent->sync();
    return size;
}

}  // namespace tessera
