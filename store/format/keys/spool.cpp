#include "spool.h"

#include <fcntl.h>
#include <tessera/byte_io.h>
#include <tessera/error.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <queue>
#include <system_error>

namespace tessera {

namespace {

constexpr std::size_t longest_tail = std::size_t{256} << 10;
constexpr std::size_t longest_run = std::size_t{1} << 20;  ///< bytes that are sorted in memory
constexpr mode_t own = 0600;

Descriptor without_name(const std::string& folder) {
    return Descriptor(os::open_unnamed(AT_FDCWD, folder.c_str(), O_RDWR, own));
}

/// For file systems without O_TMPFILE: the file loses its name at once.
Descriptor without_name_soon(const std::string& folder) {
    const std::string path = (std::filesystem::path(folder) / temporary_name()).string();
    Descriptor file(open_at(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_EXCL, own));
    if (file) ::unlink(path.c_str());
    return file;
}

/// A record as it lies in a run: two lengths, the key, the value.
struct Lengths {
    std::uint32_t key = 0;
    std::uint32_t value = 0;
};

Lengths lengths_at(const std::byte* p) {
    Lengths lengths;
    std::memcpy(&lengths, p, sizeof lengths);
    return lengths;
}

std::size_t size_of(const Lengths& lengths) {
    return sizeof lengths + lengths.key + lengths.value;
}

/// The records of one run, in order.
class RunReader {
public:
    RunReader(const Spool& spool, std::pair<std::uint64_t, std::uint64_t> run, std::size_t most)
        : spool_(spool), at_(run.first), end_(run.second), most_(most) {}

    bool next() {
        position_ += record_;
        record_ = 0;
        if (!have(sizeof(Lengths))) return false;
        record_ = size_of(lengths());
        (void)have(record_);
        return true;
    }
    [[nodiscard]] std::string_view key() const {
        return {reinterpret_cast<const char*>(bytes_.data() + position_ + sizeof(Lengths)), lengths().key};
    }
    [[nodiscard]] ByteSpan value() const {
        return ByteSpan(bytes_).subspan(position_ + sizeof(Lengths) + lengths().key, lengths().value);
    }

private:
    [[nodiscard]] Lengths lengths() const { return lengths_at(bytes_.data() + position_); }

    /// Whether so many bytes follow; they are in memory then.
    bool have(std::size_t wanted) {
        if (bytes_.size() - position_ >= wanted) return true;
        bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(position_));
        position_ = 0;
        const std::size_t old = bytes_.size();
        const std::uint64_t more = std::min<std::uint64_t>(std::max(most_, wanted) - old, end_ - at_);
        bytes_.resize(old + more);
        spool_.read(at_, MutableByteSpan(bytes_).subspan(old));
        at_ += more;
        return bytes_.size() >= wanted;
    }

    const Spool& spool_;
    std::uint64_t at_;  ///< up to where it is in memory
    std::uint64_t end_;
    std::size_t most_;
    std::vector<std::byte> bytes_;
    std::size_t position_ = 0;
    std::size_t record_ = 0;  ///< bytes
};

}  // namespace

std::string spool_folder(const ReadableStore& store) {
    return store.local_files().folder_id("") ? store.name() : std::string();
}

std::string large_files_folder() {
    const char* chosen = std::getenv("TMPDIR");
    return chosen != nullptr && *chosen != 0 ? chosen : "/var/tmp";
}

Descriptor file_without_name(const std::string& folder) {
    if (!folder.empty()) {
        if (Descriptor file = without_name(folder)) return file;
    }
    std::error_code unknown;
    const std::string temporary = std::filesystem::temp_directory_path(unknown).string();
    if (Descriptor file = without_name(temporary)) return file;
    if (Descriptor file = without_name_soon(temporary)) return file;
    throw io_error("creating a temporary file in", temporary, errno);
}

// ---- Spool

void Spool::append(ByteSpan bytes) {
    if (tail_.size() + bytes.size() > longest_tail && !tail_.empty()) write_tail();
    tail_.insert(tail_.end(), bytes.begin(), bytes.end());
}

void Spool::write_tail() {
    if (!file_) file_ = file_without_name(folder_);
    const std::uint64_t at = written_;
    written_ += tail_.size();
    const std::vector<std::byte> bytes = std::exchange(tail_, {});
    write(at, bytes);
    tail_.reserve(longest_tail);
}

void Spool::read(std::uint64_t at, MutableByteSpan out) const {
    if (at < written_) {
        const std::size_t here = std::min<std::uint64_t>(out.size(), written_ - at);
        const auto read = pread_all(file_.get(), out.first(here), at);
        if (read != here) throw io_error("reading a temporary file in", folder_, read ? EIO : errno);
        at += here;
        out = out.subspan(here);
    }
    if (!out.empty()) std::memcpy(out.data(), tail_.data() + (at - written_), out.size());
}

void Spool::write(std::uint64_t at, ByteSpan bytes) {
    if (at < written_) {
        const std::size_t here = std::min<std::uint64_t>(bytes.size(), written_ - at);
        if (!pwrite_all(file_.get(), bytes.first(here), at)) {
            throw io_error("writing a temporary file in", folder_, errno);
        }
        at += here;
        bytes = bytes.subspan(here);
    }
    if (!bytes.empty()) std::memcpy(tail_.data() + (at - written_), bytes.data(), bytes.size());
}

// ---- RecordSorter

void RecordSorter::add(std::string_view key, ByteSpan value) {
    const Lengths lengths{static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
    if (run_.size() + size_of(lengths) > longest_run && !run_.empty()) end_run();
    order_.push_back(static_cast<std::uint32_t>(run_.size()));
    const auto append = [&](const void* bytes, std::size_t size) {
        const auto* const p = static_cast<const std::byte*>(bytes);
        run_.insert(run_.end(), p, p + size);
    };
    append(&lengths, sizeof lengths);
    append(key.data(), key.size());
    append(value.data(), value.size());
}

std::string_view RecordSorter::key_at(std::size_t at) const {
    return {reinterpret_cast<const char*>(run_.data() + at + sizeof(Lengths)), lengths_at(run_.data() + at).key};
}

void RecordSorter::sort_run() {
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        const int order = key_at(a).compare(key_at(b));
        return order != 0 ? order < 0 : a < b;
    };
    if (!std::ranges::is_sorted(order_, before)) std::ranges::sort(order_, before);
}

void RecordSorter::end_run() {
    sort_run();
    const std::uint64_t begin = spool_.size();
    for (const std::uint32_t at : order_) {
        spool_.append(ByteSpan(run_).subspan(at, size_of(lengths_at(run_.data() + at))));
    }
    runs_.emplace_back(begin, spool_.size());
    run_.clear();
    order_.clear();
}

void RecordSorter::sort(const Each& each) {
    if (runs_.empty()) {
        sort_run();
        for (const std::uint32_t at : order_) {
            const Lengths lengths = lengths_at(run_.data() + at);
            each(key_at(at), ByteSpan(run_).subspan(at + sizeof lengths + lengths.key, lengths.value));
        }
    } else {
        if (!run_.empty()) end_run();
        run_ = {};
        order_ = {};
        merge(each);
    }
    runs_ = {};
    run_ = {};
    order_ = {};
    spool_ = Spool("");
}

void RecordSorter::merge(const Each& each) const {
    constexpr std::size_t least = std::size_t{4} << 10;
    std::vector<RunReader> readers;
    readers.reserve(runs_.size());
    for (const auto& run : runs_) readers.emplace_back(spool_, run, std::max(least, longest_run / runs_.size()));
    const auto after = [&](std::size_t a, std::size_t b) {
        const int order = readers[a].key().compare(readers[b].key());
        return order != 0 ? order > 0 : a > b;
    };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(after)> next(after);
    for (std::size_t i = 0; i < readers.size(); ++i) {
        if (readers[i].next()) next.push(i);
    }
    while (!next.empty()) {
        const std::size_t i = next.top();
        next.pop();
        each(readers[i].key(), readers[i].value());
        if (readers[i].next()) next.push(i);
    }
}

}  // namespace tessera
