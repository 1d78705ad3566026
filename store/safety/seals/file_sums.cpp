#include <tessera/file_sums.h>

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/value.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "copy_bytes.h"
#include "keys.h"
#include "sums.h"

namespace tessera {

namespace {

struct FileSum {
    Md5 sum{};
    std::uint64_t size = 0;
};

std::optional<FileSum> md5_of(const ReadableStore& store, const std::string& key) {
    const auto source = store.open(key);
    if (source == nullptr) return std::nullopt;
    Md5Hasher hasher;
    FileSum file;
    for_each_piece(*source, [&](ByteSpan bytes) {
        hasher.add(bytes.data(), bytes.size());
        file.size += bytes.size();
    });
    file.sum = hasher.finish();
    return file;
}

/// The content of one folder, whose files come in the order of their paths.
class DandiFolder {
public:
    explicit DandiFolder(std::string name) : name_(std::move(name)) {}

    [[nodiscard]] const std::string& name() const { return name_; }

    void add_file(std::string_view name, const FileSum& file) {
        ++count_;
        add(files_, name, hex(file.sum), file.size);
    }
    void add_folder(const DandiFolder& folder) {
        count_ += folder.count_;
        add(folders_, folder.name_, folder.sum(), folder.size_);
    }

    /// Of the content as Python's json.dumps writes it without spaces.
    [[nodiscard]] std::string sum() const {
        Md5Hasher hasher;
        const auto put = [&](std::string_view text) { hasher.add(text.data(), text.size()); };
        put("{\"directories\":[");
        put_entries(folders_, put);
        put("],\"files\":[");
        put_entries(files_, put);
        put("]}");
        return fmt::format("{}-{}--{}", hex(hasher.finish()), count_, size_);
    }

private:
    struct Entry {
        std::string name, json;
    };

    void add(std::vector<Entry>& entries, std::string_view name, std::string_view sum, std::uint64_t size) {
        size_ += size;
        Entry entry{std::string(name),
                    fmt::format(R"({{"digest":"{}","name":{},"size":{}}})", sum,
                                Value(name).dump({.indent = -1, .sort_keys = false, .ascii = true}), size)};
        // A folder may have millions of files, and those after it are known only once all of them were read.
        held_.add(sizeof(Entry) + entry.name.capacity() + entry.json.capacity());
        entries.push_back(std::move(entry));
    }

    template <class Put>
    static void put_entries(const std::vector<Entry>& entries, const Put& put) {
        std::vector<const Entry*> sorted;
        for (const Entry& entry : entries) sorted.push_back(&entry);
        std::ranges::sort(sorted, {}, &Entry::name);
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            if (i > 0) put(",");
            put(sorted[i]->json);
        }
    }

    std::string name_;
    std::vector<Entry> folders_, files_;
    MemoryHold held_;
    std::int64_t count_ = 0;
    std::uint64_t size_ = 0;
};

/// The folders from the root to the current file.
class DandiTree {
public:
    void add(std::string_view path, const FileSum& file) {
        std::vector<std::string_view> names;
        for (std::size_t slash; (slash = path.find('/')) != std::string_view::npos; path.remove_prefix(slash + 1)) {
            names.push_back(path.substr(0, slash));
        }
        std::size_t same = 0;
        while (same < names.size() && same + 1 < open_.size() && open_[same + 1].name() == names[same]) ++same;
        close_to(same + 1);
        for (; same < names.size(); ++same) open_.emplace_back(std::string(names[same]));
        open_.back().add_file(path, file);
    }
    [[nodiscard]] std::string finish() {
        close_to(1);
        return open_.front().sum();
    }

private:
    void close_to(std::size_t depth) {
        for (; open_.size() > depth; open_.pop_back()) open_[open_.size() - 2].add_folder(open_.back());
    }

    std::vector<DandiFolder> open_ = one_root();
    static std::vector<DandiFolder> one_root() {
        std::vector<DandiFolder> root;
        root.emplace_back("");
        return root;
    }
};

}  // namespace

std::string dandi_checksum(const PlaceView& place, const IoOptions& io) {
    DandiTree tree;
    for_each_file<std::optional<FileSum>>(
        files_below(place), io, "summing",
        [&](const ListedFile& file, auto& sum) { sum = md5_of(place.store, place.key(file.path)); },
        [&](const ListedFile& file, const auto& sum) {
            if (sum) tree.add(file.path, *sum);
        });
    return tree.finish();
}

void file_sums(const PlaceView& place, std::string_view folder, const std::function<void(ByteSpan)>& out,
               const IoOptions& io) {
    const FileList sums = sums_of(place, files_below(place), io);
    write_manifest(
        [next = each_of(sums), folder](ListedFile& file) {
            const bool more = next(file);
            if (more && !folder.empty()) file.path = fmt::format("{}/{}", folder, file.path);
            return more;
        },
        out);
}

}  // namespace tessera
