#include <tessera/packages.h>

#include <fmt/format.h>
#include <tessera/destination_lock.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/store_kind.h>
#include <tessera/zip.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "copy_bytes.h"
#include "copy_source.h"
#include "move_aside.h"
#include "parity_archive.h"
#include "replace_directory.h"
#include "sha256.h"
#include "sums.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// Bytes of a zip for a member besides its content: two headers with the name, and their ZIP64 fields.
std::uint64_t member_overhead(std::string_view name) {
    constexpr std::uint64_t headers = 30 + 46 + 2 * 32 + 24;
    return headers + 2 * name.size();
}

/// The references to all members, written as they come.
class PackageIndex {
public:
    explicit PackageIndex(KeyValueStore& folder) : sink_(folder.create("index.json")) {
        append("{\"version\": 1, \"refs\": {");
    }

    void add(const std::string& key, const std::string& package, std::uint64_t offset, std::uint64_t size) {
        append(fmt::format("{}\n{}: [\"{}\", {}, {}]", first_ ? "" : ",", Value(key).dump(), package, offset, size));
        first_ = false;
    }
    void finish() {
        append("\n}}\n");
        sink_->finish();
    }

private:
    void append(const std::string& text) {
        constexpr std::uint64_t most = std::uint64_t{256} << 20;  // of references that are read
        written_ += text.size();
        if (written_ > most) {
            throw unsupported(
                "the index of so many files would have more than {} bytes, and not be read: package parts "
                "of the hierarchy, or copy it with larger chunks or shards before",
                most);
        }
        sink_->append(std::as_bytes(std::span(text)));
    }

    std::unique_ptr<ByteSink> sink_;
    std::uint64_t written_ = 0;
    bool first_ = true;
};

/// Writes one package after another.
class Packager {
public:
    Packager(const PlaceRef& from, fs::path folder, KeyValueStore& store, const PackageOptions& options)
        : from_(from), folder_(std::move(folder)), store_(store), options_(options), index_(store), sums_("") {
        sealed_ = sealed_sums(from);
        if (sealed_) sealed_at_.emplace(*sealed_);
    }

    Packaged run(const FileList& files) {
        if (sealed_) {
            join_files(files, *sealed_, [&](const ListedFile* there, const ListedFile* sealed) {
                if (there == nullptr) require_as_sealed(sealed->path, std::nullopt);
            });
        }
        if (options_.io.progress != nullptr) {
            options_.io.progress->start(static_cast<std::int64_t>(files.bytes()), "packaging");
        }
        FileList::Reader reader(files);
        while (const ListedFile* const file = reader.next()) {
            if (options_.io.stop.stop_requested()) throw cancelled("stopped on request");
            const std::uint64_t needs = file->size + member_overhead(file->path);
            constexpr std::uint64_t end_of_zip = 128;
            if (zip_ && used_ + needs + end_of_zip > options_.size) close();
            if (!zip_) open();
            add(file->path);
            used_ += needs;
            if (options_.io.progress != nullptr) options_.io.progress->advance(static_cast<std::int64_t>(file->size));
        }
        if (zip_) close();
        index_.finish();
        return made_;
    }

private:
    void open() {
        name_ = fmt::format("package-{:04}", ++made_.packages);
        zip_.emplace(folder_ / (name_ + ".zip"), options_.store.durability != Durability::none);
        sums_ = FileList(folder_.string());
        used_ = 0;
    }

    void add(const std::string& path) {
        const std::string key = from_.key(path);
        const auto source = from_.store.open(key);
        if (source == nullptr) throw not_found("{}: gone while it was packaged", from_.store.name_of(key));
        const auto member = zip_->add(path, 0);
        Hasher hasher;
        for_each_piece(*source, [&](ByteSpan bytes) {
            member->append(bytes);
            hasher.add(bytes.data(), bytes.size());
        });
        member->finish();
        const Sha256 sum = hasher.finish();
        require_as_sealed(path, sum);
        sums_.append({.path = path, .size = source->size(), .sum = sum});
        ++made_.files;
        made_.bytes += source->size();
    }

    /// The packages are sealed, too, and would vouch for what was damaged before. `sum`: nullopt if it is gone.
    void require_as_sealed(const std::string& path, const std::optional<Sha256>& sum) {
        const ListedFile* const sealed = sum && sealed_at_ ? sealed_at_->find(path) : nullptr;
        if (sum && (sealed == nullptr || sealed->sum == *sum)) return;
        throw corrupt("{}: {}, as `tessera verify` says; repair it, or seal it again if that is intended",
                      from_.name_of(path), sum ? "is not as it was sealed" : "was sealed and is missing");
    }

    /// The members' places are known when the zip is there.
    void close() {
        zip_->finish();
        zip_.reset();
        put_manifest(store_, name_ + ".sha256sums.txt", each_of(sums_));
        const std::string file = name_ + ".zip";
        const ZipReader zip(folder_ / file);
        for (std::size_t n = 0; n < zip.members().size(); ++n) {
            index_.add(zip.members()[n].name, file, zip.stored_offset(n), zip.members()[n].size);
        }
    }

    PlaceRef from_;
    fs::path folder_;
    KeyValueStore& store_;
    const PackageOptions& options_;
    PackageIndex index_;
    std::optional<ZipWriter> zip_;
    std::string name_;                ///< of the package that is written
    FileList sums_;                   ///< of its members
    std::optional<FileList> sealed_;  ///< the sums of the seal of what is packaged
    std::optional<FileList::Follower> sealed_at_;
    std::uint64_t used_ = 0;
    Packaged made_;
};

}  // namespace

Packaged make_packages(const PlaceRef& at, const fs::path& folder, const PackageOptions& options) {
    require_local(folder, "a folder of packages");
    const fs::path place = place_for_copy(folder, at);
    const DestinationLock building(place, options.store);
    if (fs::exists(status_of(place))) throw already_exists("{}: something is there already", folder.string());
    const LockedNodes locked = lock_to_copy(at);
    FileList files = files_below(at);
    (void)leave_out_stale(at, files);
    if (files.empty()) throw not_found("{}: nothing to put in packages", at.name());
    const std::string unfinished = hidden_name(place, "new");
    const auto parent = directory_store(place.parent_path(), options.store);
    BuiltDirectory directory(place.parent_path() / unfinished, options.store.durability);
    const auto built = directory_store(directory.path(), options.store);
    Packaged made = Packager(at, directory.path(), *built, options).run(files);
    made.parity_bytes = seal({*built, ""}, {.parity = options.parity, .io = options.io}).parity_bytes;
    built->sync();
    building.require_held();
    parent->move(unfinished, place.filename().string());
    directory.release();
    parent->sync();
    return made;
}

std::string whole_of_packages(const std::string& path) {
    if (!is_local(path)) return path;
    const fs::path folder(path);
    std::error_code ignored;
    // The zip may be lost; the sums are known all the same.
    const bool packages = fs::is_regular_file(folder / "index.json", ignored) &&
                          (fs::is_regular_file(folder / "package-0001.zip", ignored) ||
                           fs::is_regular_file(folder / "package-0001.sha256sums.txt", ignored));
    return packages ? (folder / "index.json").string() : path;
}

}  // namespace tessera
