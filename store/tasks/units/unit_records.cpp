#include "unit_records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <isa-l/crc64.h>

#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
#include <tessera/place.h>

#include "array_access.h"
#include "directories.h"
#include "directory_store.h"
#include "keys.h"
#include "node_files.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view done_extension = ".log";
constexpr std::string_view withdrawn_extension = ".withdrawn";

/// CRC-64/XZ, which takes less time than memory does.
class Crc64 {
public:
    void add(const void* data, std::size_t size) {
        sum_ = ::crc64_ecma_refl(sum_, static_cast<const unsigned char*>(data), size);
    }
    void add(std::uint64_t number) { add(&number, sizeof number); }
    [[nodiscard]] std::uint64_t finish() const { return sum_; }

private:
    std::uint64_t sum_ = 0;
};

std::uint64_t hash_of(std::string_view text) {
    Crc64 hash;
    hash.add(text.data(), text.size());
    return hash.finish();
}

std::string checked_line(const std::string& line) {
    return fmt::format("{} {:016x}\n", line, hash_of(line));
}

std::string line_of(const UnitRecord& r) {
    return checked_line(r.failed
                            ? fmt::format("failed {} {} {}", r.unit, r.written, Value(r.message).dump({.ascii = true}))
                            : fmt::format("done {} {} {} {:016x} {:016x} {} {}", r.unit, r.files, r.bytes, r.stamps,
                                          r.content, r.took, r.written));
}

/// Takes a number and the blank after it off the front of a text.
template <class T>
bool take(std::string_view& text, T& number, int base = 10) {
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (end.ec != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end.ptr - text.data()));
    if (text.starts_with(' ')) text.remove_prefix(1);
    return true;
}

bool parse_line(std::string_view line, UnitRecord& r) {
    constexpr std::size_t digits = 17;
    if (line.size() < digits) return false;
    std::string_view rest = line.substr(line.size() - digits + 1);
    line.remove_suffix(digits);
    r = {};
    if (!take(rest, r.line, 16) || r.line != hash_of(line)) return false;
    r.failed = line.starts_with("failed ");
    r.withdrawn = line.starts_with("withdrawn ");
    if (!r.failed && !r.withdrawn && !line.starts_with("done ")) return false;
    line.remove_prefix(line.find(' ') + 1);
    if (!take(line, r.unit)) return false;
    if (r.withdrawn) return take(line, r.line, 16);
    if (!r.failed) {
        return take(line, r.files) && take(line, r.bytes) && take(line, r.stamps, 16) && take(line, r.content, 16) &&
               take(line, r.took) && take(line, r.written);
    }
    if (!take(line, r.written)) return false;
    try {
        r.message = Value::parse(line).as_string();
        return true;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

class HashingStore final : public KeyValueStore, private FarStore {
public:
    explicit HashingStore(std::shared_ptr<KeyValueStore> beneath, std::shared_ptr<KeyValueStore> model = nullptr,
                          std::function<void()> look = {})
        : model_(std::move(model)), beneath_(std::move(beneath)), look_(std::move(look)) {}
    void look() const {
        if (look_) look_();
    }

    void note(std::string_view key, std::uint64_t hash) {
        const std::lock_guard lock(mutex_);
        written_.insert_or_assign(std::string(key), hash);
    }
    /// The hash of the value that was written last; nullopt for a key that was not.
    std::optional<std::uint64_t> take(const std::string& key) {
        const std::lock_guard lock(mutex_);
        const auto found = written_.extract(key);
        return found ? std::optional(found.mapped()) : std::nullopt;
    }
    std::uint64_t hash_stored(std::string_view key) const {
        const auto source = beneath_->open(key);
        Crc64 hash;
        constexpr std::uint64_t piece = std::uint64_t{1} << 20;
        Buffer bytes;
        for (std::uint64_t at = 0; source && at < source->size(); at += piece) {
            bytes = read_range(*source, at, std::min(piece, source->size() - at));
            hash.add(bytes.data(), bytes.size());
        }
        return hash.finish();
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override { return beneath_->open(key); }
    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        return beneath_->get(key, out, limit);
    }
    void put(std::string_view key, ByteSpan value) override {
        Crc64 hash;
        hash.add(value.data(), value.size());
        look();
        beneath_->put(key, value);
        note(key, hash.finish());
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override;
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override { return beneath_->stamp(key); }
    [[nodiscard]] std::vector<std::optional<ValueStamp>> stamps(std::span<const std::string> keys) const override {
        return beneath_->stamps(keys);
    }
    [[nodiscard]] bool contains(std::string_view key) const override { return beneath_->contains(key); }
    [[nodiscard]] const FarStore* far() const override { return beneath_->is_far() ? this : nullptr; }
    [[nodiscard]] StoreOptions options_beside() const override { return {.read_only = true}; }
    [[nodiscard]] std::unique_ptr<ByteSource> open_from(std::string_view key,
                                                        ByteSource::Extent /*first*/) const override {
        return open(key);
    }
    bool erase(std::string_view key) override {
        look();
        return beneath_->erase(key);
    }
    void erase_below(std::string_view prefix) override { beneath_->erase_below(prefix); }
    [[nodiscard]] Listing list(std::string_view prefix) const override { return beneath_->list(prefix); }
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        beneath_->for_each(prefix, each, folder);
    }
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        return beneath_->lock(prefix, slot, mode);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override {
        return beneath_->try_lock(prefix);
    }
    void sync() override { beneath_->sync(); }
    void sync_later() override { beneath_->sync_later(); }
    [[nodiscard]] const std::string& name() const override { return beneath_->name(); }
    [[nodiscard]] LocalFiles& local_files() override { return beneath_->local_files(); }
    [[nodiscard]] const LocalFiles& local_files() const override { return std::as_const(*beneath_).local_files(); }

private:
    std::shared_ptr<KeyValueStore> model_;  ///< whose permissions new files get
    std::shared_ptr<KeyValueStore> beneath_;
    std::function<void()> look_;
    std::mutex mutex_;
    std::map<std::string, std::uint64_t, std::less<>> written_;
};

namespace {

/// Hashes bytes on their way to a sink. What is written out of order is hashed from the store at the end.
class HashingSink final : public ByteSink {
public:
    HashingSink(std::unique_ptr<ByteSink> beneath, std::string key, HashingStore& store)
        : beneath_(std::move(beneath)), key_(std::move(key)), store_(store) {}
    [[nodiscard]] bool random_access() const override { return beneath_->random_access(); }
    void append(ByteSpan bytes) override {
        hash_.add(bytes.data(), bytes.size());
        beneath_->append(bytes);
    }
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
        in_order_ = false;
        beneath_->write_at(offset, bytes);
    }
    void finish() override {
        store_.look();
        beneath_->finish();
        store_.note(key_, in_order_ ? hash_.finish() : store_.hash_stored(key_));
    }
    [[nodiscard]] const std::string& name() const override { return beneath_->name(); }

private:
    std::unique_ptr<ByteSink> beneath_;
    std::string key_;
    HashingStore& store_;
    Crc64 hash_;
    bool in_order_ = true;
};

}  // namespace

std::unique_ptr<ByteSink> HashingStore::create(std::string_view key) {
    return std::make_unique<HashingSink>(beneath_->create(key), std::string(key), *this);
}

std::string new_id() {
    std::random_device random;
    std::string id;
    for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", random());
    return id;
}

Place built_place(const JobArray& array, const StoreOptions& options) {
    return store_kind_of(array.built).place(array.built, options);
}

Place records_place(const Job& job, const StoreOptions& options) {
    Place place = built_place(job.arrays.back(), options);
    place.prefix = place.key(units_key);
    return place;
}

std::optional<fs::path> folder_of(const Place& place) {
    if (!is_local(place.store->name())) return std::nullopt;
    return fs::path(place.store->name()) / place.prefix;
}

void require_no_link(const Job& job) {
    const auto folder = folder_of(records_place(job, {.read_only = true}));
    if (!folder) return;
    std::error_code ignored;
    for (const fs::path& place : {folder->parent_path(), *folder, *folder / "claims"}) {
        if (!fs::is_symlink(place, ignored)) continue;
        throw invalid_argument("{}: expected a folder, found a link; nothing is written behind it", place.string());
    }
}

void RecordReader::read(const std::function<void(const UnitRecord&)>& each,
                        const std::function<void(std::int64_t)>& lost) {
    UnitRecord record;
    const std::size_t known = withdrawn_.size();
    read_lines(withdrawn_extension, [&](std::string_view line) {
        if (!parse_line(line, record) || !record.withdrawn) return;
        withdrawn_.push_back(record.line);
        if (lost) lost(record.unit);
    });
    if (withdrawn_.size() > known) std::ranges::sort(withdrawn_);
    read_lines(done_extension, [&](std::string_view line) {
        if (!parse_line(line, record) || record.withdrawn) return;
        record.withdrawn = std::ranges::binary_search(withdrawn_, record.line);
        each(record);
    });
}

void RecordReader::read_lines(std::string_view extension, const EachLine& each) {
    if (const auto folder = folder_of(place_)) return read_folder(*folder, extension, each);
    std::vector<std::string> grown;
    place_.store->for_each(place_.prefix, [&](std::string_view name, const KeyValueStore::ValueSize& size) {
        const auto found = read_.find(name);
        if (name.ends_with(extension) && (found == read_.end() || size() > found->second)) grown.emplace_back(name);
    });
    Buffer bytes;
    for (const std::string& name : grown) {
        if (!place_.store->get(place_.key(name), bytes, metadata_limit)) continue;
        std::uint64_t& at = read_[name];
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        for (std::size_t end; at < text.size() && (end = text.find('\n', at)) != std::string_view::npos; at = end + 1) {
            each(text.substr(at, end - at));
        }
    }
}

void RecordReader::read_folder(const fs::path& folder, std::string_view extension, const EachLine& each) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (entry.path().extension() != extension) continue;
        std::uint64_t& at = read_[entry.path().filename().string()];
        const Descriptor file(open_at(AT_FDCWD, entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
        struct stat status {};
        if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        constexpr std::size_t piece = std::size_t{1} << 20;
        std::string text;
        for (;;) {
            const std::size_t had = text.size();
            text.resize(had + piece);
            const auto n = pread_all(file.get(), std::as_writable_bytes(std::span(text)).subspan(had), at + had);
            if (!n) throw io_error("cannot read", entry.path().string(), errno);
            text.resize(had + *n);
            std::size_t begin = 0;
            for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
                each(std::string_view(text).substr(begin, end - begin));
            }
            at += begin;
            text.erase(0, begin);
            if (*n == 0 || text.size() > piece) break;  // no line is so long
        }
    }
    if (error && error.value() != ENOENT) throw io_error("listing", folder.string(), error.value());
}

void RecordWriter::append(const std::vector<UnitRecord>& records, bool durable) {
    std::string text;
    for (const UnitRecord& record : records) text += line_of(record);
    append(text, done_extension, durable);
}

void RecordWriter::withdraw(const std::vector<UnitRecord>& records, bool durable) {
    std::string text;
    for (const UnitRecord& r : records) text += checked_line(fmt::format("withdrawn {} {:016x}", r.unit, r.line));
    append(text, withdrawn_extension, durable);
}

void RecordWriter::append(std::string_view text, std::string_view extension, bool durable) {
    if (text.empty()) return;
    if (const auto folder = folder_of(place_)) return append_to_file(*folder, extension, text, durable);
    constexpr std::size_t long_object = std::size_t{64} << 10;
    if (name_.empty() || text_.size() > long_object) {
        name_ = fmt::format("{}{}", new_id(), extension);
        text_.clear();
    }
    text_ += text;
    place_.store->put(place_.key(name_), std::as_bytes(std::span(text_)));
}

void RecordWriter::append_to_file(const fs::path& folder, std::string_view extension, std::string_view text,
                                  bool durable) {
    if (!file_) {
        // Of another process there may be a file of any name: only a new one has one writer.
        name_ =
            (folder / (temporary_name().substr(temporary_prefix.size()) +
                       fmt::format("-{:x}{}", std::chrono::system_clock::now().time_since_epoch().count(), extension)))
                .string();
        file_ = Descriptor(open_at(AT_FDCWD, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666));
        if (!file_) throw io_error("cannot make", name_, errno);
    }
    if (!write_all(file_.get(), std::as_bytes(std::span(text)))) {
        const int why = errno;
        file_ = Descriptor();  // the next records go to another file: a part of a line may be here
        throw io_error("cannot write", name_, why);
    }
    if (durable && ::fdatasync(file_.get()) != 0 && errno != EINVAL) throw io_error("cannot write", name_, errno);
}

ListedValues::ListedValues(const PlaceView& place) {
    std::vector<std::string> folders{std::string(place.prefix)};
    while (!folders.empty()) {
        const std::string folder = std::move(folders.back());
        folders.pop_back();
        place.store.for_each_stamp(
            folder,
            [&](std::string_view name, const ValueStamp& stamp) {
                entries_.push_back({hash_of(join_key(folder, name)), stamp.size, stamp.id});
            },
            [&](std::string_view name, bool) {
                if (name != own_folder) folders.push_back(join_key(folder, name));
            });
    }
    std::ranges::sort(entries_, {}, &Entry::key);
}

std::optional<ValueStamp> ListedValues::find(std::string_view key) const {
    const auto found = std::ranges::lower_bound(entries_, hash_of(key), {}, &Entry::key);
    if (found == entries_.end() || found->key != hash_of(key)) return std::nullopt;
    return ValueStamp{.size = found->size, .id = found->id};
}

std::string ListedValues::summary() const {
    Crc64 hash;
    for (const Entry& entry : entries_) {
        for (const std::uint64_t number : {entry.key, entry.size, entry.id}) hash.add(number);
    }
    return fmt::format("{} {:016x}", entries_.size(), hash.finish());
}

UnitRecord unit_files(const Array& array, const Region& region, HashingStore* written, bool read,
                      const ListedValues* listed) {
    const ArrayState& state = *ArrayAccess::state(array);
    const auto loaded = state.loaded();
    const Region box = loaded->grid.overlapping(region);
    Crc64 stamps;
    Crc64 content;
    UnitRecord record;
    std::vector<std::string> keys;
    std::vector<std::optional<ValueStamp>> far;
    if (state.store->is_far() && listed == nullptr) {
        for (std::int64_t n = 0; n < box.count(); ++n) keys.push_back(state.chunk_key(*loaded, index_in(box, n)));
        far = state.store->stamps(keys);
    }
    for (std::int64_t n = 0; n < box.count(); ++n) {
        const std::string key = state.chunk_key(*loaded, index_in(box, n));
        const std::optional<ValueStamp> stamp = listed != nullptr ? listed->find(key)
                                                : far.empty()     ? state.store->stamp(key)
                                                                  : far[static_cast<std::size_t>(n)];
        std::optional<std::uint64_t> hash = written == nullptr ? std::nullopt : written->take(key);
        if (!stamp) continue;
        ++record.files;
        record.bytes += stamp->size;
        stamps.add(static_cast<std::uint64_t>(n));
        stamps.add(stamp->size);
        const bool timed = !stamp->by_content && stamp->modified != 0;  // an object in S3 has an ETag instead
        stamps.add(timed ? static_cast<std::uint64_t>(stamp->modified) : stamp->id);
        if (written == nullptr && !read) continue;
        if (!hash) hash = HashingStore(state.store).hash_stored(key);
        content.add(static_cast<std::uint64_t>(n));
        content.add(stamp->size);
        content.add(*hash);
    }
    record.stamps = stamps.finish();
    record.content = content.finish();
    return record;
}

fs::path place_of_array(const Job& job, const JobArray& array) {
    return array.node.empty() ? fs::path(job.target) : fs::path(job.target) / array.node;
}

Array unfinished_array(const JobArray& array) {
    return Array::create(built_place(array, {.read_only = true}), *array.plan.dialect, array.plan.metadata, false);
}

WrittenArray written_array(const Job& job, const JobArray& array, const StoreOptions& options,
                           std::function<void()> look) {
    StoreOptions own = options;
    own.process_locks = false;  // units never share a file
    Place at = built_place(array, own);
    std::shared_ptr<KeyValueStore> model;
    if (const fs::path place = place_of_array(job, array); place != array.built) {
        model = directory_store(place, {.read_only = true});
        share_like(*at.store, *model);
    } else if (!at.store->is_far()) {
        follow_mask(*at.store);
    }
    draft_in(*at.store, at.key(units_key));
    auto store = std::make_shared<HashingStore>(std::move(at.store), std::move(model), std::move(look));
    Array made = Array::create({store, at.prefix}, *array.plan.dialect, array.plan.metadata, false);
    store->sync_later();
    return {std::move(store), std::move(made)};
}

void require_own_target(const Job& job, const JobArray& array) {
    const std::string name = array.built.string();
    std::string text;
    const Place at = built_place(array, {.read_only = true});
    if (const auto source = at.store->open(at.key(unfinished_marker_key))) {
        const Buffer bytes = read_range(*source, 0, std::min<std::uint64_t>(source->size(), metadata_limit));
        text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    bool own = false;
    try {
        own = !text.empty() && Value::parse(text).at("made_from") == Value(job.made_from);
    } catch (const Error&) {  // damaged: not ours
    }
    if (own) return;
    if (is_published(job, array)) throw invalid_argument("{}: the job is finished", job.file.string());
    throw invalid_argument("{}: what this job was making there is gone, or was replaced; plan it again", name);
}

bool is_published(const Job& job, const JobArray& array) {
    if (!is_local(array.built)) {
        // An object store has no numbers of folders, by which a job would know its own.
        const Place at = built_place(array, {.read_only = true});
        Buffer id;
        return probe_dialect(at) == array.plan.dialect && at.store->get(at.key(job_key), id, metadata_limit) &&
               std::string_view(reinterpret_cast<const char*>(id.data()), id.size()) == job.id;
    }
    for (const fs::path& path : {place_of_array(job, array), array.built}) {
        const auto id = folder_id(path);
        if (!id || id->inode != array.inode) continue;
        return probe_dialect(*directory_store(path, {.read_only = true})) == array.plan.dialect;
    }
    return false;
}

}  // namespace tessera
