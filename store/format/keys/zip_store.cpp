// A store in a zip archive, in the form that Python's ZipStore reads and writes: a key is the name of a member.
//
// Reading
// -------
// - Members are found by the archive's central directory. Of several members with one name the last counts, as in
//   Python: zarr-python writes a changed `.zarray` by adding it once more.
// - A name that ends in '/' is a directory, not a value. Names that are not keys are skipped: absolute ones, and those
//   with an empty part, "." or "..", so that none leads out of the archive or is used as a path on the disk. So are
//   names of more than 4096 bytes, which no file system has: deeper nesting only serves to exhaust programs that walk
//   it.
// - STORED members are read in place by range, DEFLATE ones from the front; the CRC-32 is checked when a member is read
//   whole. The sizes of a member are checked against the size of the archive, and memory for a value grows only with
//   the bytes that really come.
// - An existing archive is never changed. It can only be extended and its central directory rewritten, and a crash
//   would then lose all of it. To change it, repack: copy out, edit, copy back.
//
// Writing
// -------
// - A new archive is written under a temporary name and renamed by finish(); without finish() nothing is left.
// - Members are written in order, one after another, STORED (chunks are compressed already). Each name is written once:
//   zarr-python reads archives with repeated names, other programs do not. So a chunk can be put once, and not be read
//   back, changed or removed afterwards.
// - Metadata documents (all names that do not look like chunks) change while an array is made. They are held in memory,
//   where they can be read, replaced and removed, and finish() writes them, sorted by name.
// - Any thread may put values; they take turns. A value written piece by piece (create) keeps the archive to itself
//   until its finish(). If it is abandoned before, the archive has a torn member and can no longer be finished.
// - An .ozx (OME-Zarr in one file, NGFF's RFC-9) has its documents first, the root's before those below it, and a
// comment
//   that says so. So its chunks go to a temporary archive, from which finish() copies them behind the documents.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/value.h>
#include <tessera/zarr_names.h>
#include <tessera/zip.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "directories.h"
#include "keys.h"
#include "lock_table.h"
#include "read_only_store.h"
#include "sorted_keys.h"
#include "zip_store.h"

namespace tessera {

namespace {

// ---- reading

bool is_key(std::string_view name) {
    constexpr std::size_t longest = 4096;
    try {
        require_key(name);
        return name.size() <= longest;
    } catch (const Error&) {
        return false;
    }
}

class ZipStore final : public ReadOnlyStore {
public:
    ZipStore(ZipReader zip, std::string name) : name_(std::move(name)), zip_(std::move(zip)) {
        for (std::size_t i = 0; i < zip_.members().size(); ++i) {
            const std::string& member = zip_.members()[i].name;
            if (is_key(member)) members_.insert_or_assign(member, i);
        }
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        const auto found = members_.find(key);
        if (found != members_.end()) return zip_.open(found->second);
        require_no_folder(key);
        return nullptr;
    }

    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        const auto source = open(key);
        if (!source) return false;
        require_size(source->name(), source->size(), limit);
        // A compressed member's size is not trusted: memory grows as the bytes come.
        constexpr std::uint64_t least_step = 1 << 20;
        out.resize(0);
        for (std::uint64_t have = 0; have < source->size();) {
            const std::uint64_t step = std::min(source->size() - have, std::max(have, least_step));
            out.resize(have + step);
            source->read(have, out.span().subspan(have));
            have += step;
        }
        return true;
    }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        return list_below(members_, prefix);
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        for_each_value_below(members_, prefix, each, folder,
                             [&](std::size_t member) { return zip_.members()[member].size; });
    }

    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[nodiscard]] Error refusal(std::string_view key) const override {
        require_prefix(key);
        return unsupported(
                   "{}: a zip archive is never changed in place; repack it: copy it to a directory, change what is "
                   "there, and "
                   "copy that to a new zip",
                   join_key(name_, key))
            .advising(Action::copy, "copies it out", name_);
    }

    /// A folder in the place of a chunk is damage, as in a directory store.
    void require_no_folder(std::string_view key) const {
        if (!looks_like_chunk(key.substr(key.rfind('/') + 1))) return;
        const auto below = members_.lower_bound(fmt::format("{}/", key));
        if (below == members_.end() || !below->first.starts_with(key) || below->first[key.size()] != '/') return;
        throw corrupt("{} is a directory, and not a regular file", join_key(name_, key));
    }

    std::string name_;
    ZipReader zip_;
    std::map<std::string, std::size_t, std::less<>> members_;  ///< indices in zip_.members()
};

// ---- writing

/// Metadata documents of any dialect, and Tessera's marker of unfinished arrays: all names that do not look like
/// chunks. That may include the only chunk of a 0-d array, which does no harm.
bool is_document(std::string_view key) {
    return !looks_like_chunk(key.substr(key.rfind('/') + 1)) ||  // npos + 1 is 0
           key.starts_with(".tessera/") || key.find("/.tessera/") != std::string_view::npos;
}

class NewZipStore final : public KeyValueStore {
public:
    NewZipStore(const std::filesystem::path& path, bool durable)
        : path_(path),
          name_(path.string()),
          durable_(durable),
          spool_(path.extension() == ".ozx" ? path.parent_path() / temporary_name() : std::filesystem::path()),
          zip_(spool_.empty() ? path : spool_, durable && spool_.empty()) {}
    ~NewZipStore() override {
        std::error_code ignored;
        if (!spool_.empty()) std::filesystem::remove(spool_, ignored);
    }
    NewZipStore(const NewZipStore&) = delete;
    NewZipStore& operator=(const NewZipStore&) = delete;

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        const std::lock_guard guard(mutex_);
        const auto found = entries_.find(key);
        if (found == entries_.end()) return nullptr;
        if (!found->second.document) refuse_second(key);
        return memory_source(Buffer(found->second.document->span()), join_key(name_, key));
    }

    void put(std::string_view key, ByteSpan value) override {
        require_key(key);
        if (!is_document(key)) {
            const auto sink = create(key);
            sink->append(value);
            sink->finish();
            return;
        }
        const std::lock_guard guard(mutex_);
        require_unfinished(key);
        entries_.insert_or_assign(std::string(key), Entry{value.size(), Buffer(value)});
    }

    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override;

    bool erase(std::string_view key) override {
        require_key(key);
        const std::lock_guard guard(mutex_);
        const auto found = entries_.find(key);
        if (found == entries_.end()) return false;
        if (!found->second.document) refuse_second(key);
        entries_.erase(found);
        return true;
    }

    void erase_below(std::string_view prefix) override {
        require_prefix(prefix);
        const std::lock_guard guard(mutex_);
        const auto gone = entries_below(entries_, prefix);
        for (const auto& [key, entry] : gone) {
            if (!entry.document) refuse_second(key);
        }
        entries_.erase(gone.begin(), gone.end());
    }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        const std::lock_guard guard(mutex_);
        return list_below(entries_, prefix);
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        for_each_value_below(prefix, each, folder, std::unique_lock(mutex_), entries_,
                             [](const Entry& entry) { return entry.size; });
    }

    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        require_prefix(prefix);
        return locks_.lock(prefix, slot, mode);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override {
        require_prefix(prefix);
        return locks_.try_lock(prefix);
    }

    void finish() override {
        const std::lock_guard guard(mutex_);
        require_unfinished("");
        if (spool_.empty()) {
            for (const auto& [key, entry] : entries_) add_document(zip_, key, entry);
            zip_.finish();
        } else {
            finish_ozx();
        }
        finished_ = true;
    }

    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    friend class NewZipMember;
    struct Entry {
        std::uint64_t size = 0;
        std::optional<Buffer> document = {};  ///< nullopt if it is in the archive already
    };

    static void add_document(ZipWriter& zip, const std::string& key, const Entry& entry) {
        if (!entry.document) return;
        const auto sink = zip.add(key, 0);
        sink->append(*entry.document);
        sink->finish();
    }

    /// The comment of an .ozx. Throws unsupported if what is stored is no hierarchy of v3.
    [[nodiscard]] std::string ozx_comment() const {
        const auto root = entries_.find(v3_document_name);
        if (root == entries_.end() || !root->second.document) {
            throw unsupported("{}: an .ozx is OME-Zarr of Zarr v3, with a zarr.json at its root", name_)
                .advising(Action::format, "makes v3", "v3");
        }
        const Buffer& text = *root->second.document;
        const Value document = Value::parse({reinterpret_cast<const char*>(text.data()), text.size()});
        Value version("0.5");
        const Value* at = &document;
        for (const char* member : {"attributes", "ome", "version"}) {
            if (at != nullptr) at = at->is_object() ? at->find(member) : nullptr;
        }
        if (at != nullptr && at->is_string()) version = *at;
        const Value first{{"centralDirectory", {{"jsonFirst", true}}}};
        return Value{{"ome", {{"version", version}, {"zipFile", first}}}}.dump();
    }

    void finish_ozx() {
        const std::string comment = ozx_comment();
        zip_.finish();
        const ZipReader chunks(spool_);
        ZipWriter zip(path_, durable_);
        std::vector<const std::string*> names;
        for (const auto& [key, entry] : entries_) names.push_back(&key);
        const auto rank = [](const std::string* name) {
            const bool first = std::string_view(*name).substr(name->rfind('/') + 1) == v3_document_name;
            return std::tuple(!first, std::ranges::count(*name, '/'), *name);
        };
        std::ranges::sort(names, {}, rank);
        for (const std::string* name : names) add_document(zip, *name, entries_.find(*name)->second);
        for (std::size_t i = 0; i < chunks.members().size(); ++i) {
            const auto from = chunks.open(i);
            const auto to = zip.add(chunks.members()[i].name, 0);
            constexpr std::uint64_t step = 1 << 20;
            for (std::uint64_t at = 0; at < from->size(); at += step) {
                require_not_stopped();
                to->append(read_range(*from, at, std::min(step, from->size() - at)));
            }
            to->finish();
        }
        zip.finish(comment);
        std::error_code ignored;
        std::filesystem::remove(spool_, ignored);
    }

    [[noreturn]] void refuse_second(std::string_view key) const {
        throw unsupported(
            "{}: already written, and a zip archive is written in order: each chunk once, never read back, "
            "changed or removed before it is complete",
            join_key(name_, key));
    }

    void require_unfinished(std::string_view key) const {
        if (finished_) throw invalid_argument("{}: the archive is finished", join_key(name_, key));
    }

    std::filesystem::path path_;
    std::string name_;
    bool durable_;
    std::filesystem::path spool_;  ///< of an .ozx: the archive that holds its chunks until finish()
    mutable std::mutex mutex_;     ///< for everything below
    ZipWriter zip_;
    std::map<std::string, Entry, std::less<>> entries_;
    bool finished_ = false;
    std::optional<std::thread::id> writer_ = {};  ///< of the open member
    std::condition_variable member_closed_;
    LockTables locks_;
};

/// The member being written. While it lives, others wait.
class NewZipMember final : public ByteSink {
public:
    NewZipMember(NewZipStore& store, std::string_view key)
        : store_(store), key_(key), name_(join_key(store.name_, key)) {
        std::unique_lock guard(store.mutex_);
        if (store.writer_ == std::this_thread::get_id()) {
            throw invalid_argument(
                "{}: another value is being written by this thread, and a zip archive "
                "takes one after another",
                name_);
        }
        store.member_closed_.wait(guard, [&] { return !store.writer_; });
        store.require_unfinished(key);
        if (store.entries_.contains(key)) store.refuse_second(key);
        member_ = store.zip_.add(key, 0);
        store.writer_ = std::this_thread::get_id();
    }
    ~NewZipMember() override {
        if (member_) close();
    }
    NewZipMember(const NewZipMember&) = delete;
    NewZipMember& operator=(const NewZipMember&) = delete;

    [[nodiscard]] bool random_access() const override { return false; }
    void append(ByteSpan bytes) override {
        member_->append(bytes);
        size_ += bytes.size();
    }
    void write_at(std::uint64_t offset, ByteSpan bytes) override { member_->write_at(offset, bytes); }
    void finish() override {
        member_->finish();
        {
            const std::lock_guard guard(store_.mutex_);
            store_.entries_.emplace(key_, NewZipStore::Entry{size_});
        }
        close();
    }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    void close() {
        member_.reset();
        {
            const std::lock_guard guard(store_.mutex_);
            store_.writer_.reset();
        }
        store_.member_closed_.notify_one();
    }

    NewZipStore& store_;
    std::string key_;
    std::string name_;
    std::unique_ptr<ByteSink> member_;  ///< not null: this object has the archive to itself
    std::uint64_t size_ = 0;
};

std::unique_ptr<ByteSink> NewZipStore::create(std::string_view key) {
    require_key(key);
    return std::make_unique<NewZipMember>(*this, key);
}

}  // namespace

std::shared_ptr<KeyValueStore> zip_store(const std::filesystem::path& path, ZipMode mode) {
    if (mode == ZipMode::read) return std::make_shared<ZipStore>(ZipReader(path), path.string());
    return new_zip_store(path, mode, true);
}

std::shared_ptr<KeyValueStore> new_zip_store(const std::filesystem::path& path, ZipMode mode, bool durable) {
    if (mode == ZipMode::create && std::filesystem::exists(status_of(path))) {
        throw already_exists(
            "{}: a file is there already, and a zip archive is never changed in place; "
            "write another one",
            path.string());
    }
    return std::make_shared<NewZipStore>(path, durable);
}

std::shared_ptr<KeyValueStore> probe_zip_store(const ByteSource& file) {
    const std::filesystem::path path = file.name();
    if (path.extension() == ".npz") return nullptr;
    const Buffer first = read_range(file, 0, std::min<std::uint64_t>(file.size(), 4));
    const std::string_view mark(reinterpret_cast<const char*>(first.data()), first.size());
    if (mark != "PK\x03\x04" && mark != "PK\x05\x06") return nullptr;
    ZipReader zip(path);
    const auto is_array_file = [](const ZipMember& member) { return member.name.ends_with(".npy"); };
    if (!zip.members().empty() && std::ranges::all_of(zip.members(), is_array_file)) return nullptr;
    return std::make_shared<ZipStore>(std::move(zip), path.string());
}

}  // namespace tessera
