// How the files of a snapshot have changed since it was made.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
#include <tessera/snapshot.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "lines.h"
#include "snapshot_record.h"
#include "sums.h"

namespace tessera {

namespace {

template <class Number>
bool take_number(std::string_view& text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length >= text.size() || text[length] != ' ') return false;
    text.remove_prefix(length + 1);
    return true;
}

std::optional<FileRecord> parse_line(std::string_view line) {
    FileRecord file;
    if (!take_number(line, file.size) || !take_number(line, file.modified)) return std::nullopt;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const bool escaped = line[i] == '\\';
        if (escaped && ++i == line.size()) return std::nullopt;
        file.path += escaped && line[i] == 'n' ? '\n' : line[i];
    }
    return file;
}

enum class Content : std::uint8_t { unknown, same, other };

/// Known sums of a snapshot's files: its own, or those of its nodes' seals.
class KnownSums {
public:
    KnownSums(const PlaceView& place, const SnapshotInfo& info) : place_(place) {
        const bool whole = sums_are_whole(place, info);
        if (info.sums && !whole) {
            const std::string name = place.store.name_of(place.key(snapshot_sums_key));
            throw corrupt("{} is missing or not as it was written, and the snapshot has sums", name)
                .advising(Action::accept_snapshot, "goes by the sizes and times of the files",
                          info.name.empty() ? "NAME" : info.name);
        }
        if (whole) own_ = load_sums(place.store, place.key(snapshot_sums_key));
    }

    /// Whether the snapshot has sums of its own, of all files.
    [[nodiscard]] bool of_all() const { return own_.has_value(); }

    /// Whether it has sums of its own, and none of this file, which is no seal: older versions recorded none of those.
    [[nodiscard]] bool misses(const std::string& path) const {
        return own_ && !own_->find(path) && path.find(own_folder) == std::string::npos;
    }

    /// Any thread may call it.
    [[nodiscard]] std::optional<Sha256> of(const std::string& path) {
        if (own_) return find(*own_, path);
        const std::lock_guard lock(mutex_);
        std::string node = path;
        do {
            const std::size_t slash = node.rfind('/');
            node.resize(slash == std::string::npos ? 0 : slash);
            const auto& sums = seal_of(node);
            const auto sum = sums ? find(*sums, node.empty() ? path : path.substr(node.size() + 1)) : std::nullopt;
            if (sum) return sum;
        } while (!node.empty());
        return std::nullopt;
    }

private:
    static std::optional<Sha256> find(const FileList& sums, std::string_view path) {
        const auto found = sums.find(path);
        return found ? std::optional(found->file.sum) : std::nullopt;
    }
    const std::optional<FileList>& seal_of(const std::string& node) {
        const auto [found, fresh] = seals_.try_emplace(node);
        if (fresh) found->second = load_sums(place_.store, join_key(place_.key(node), seal_sums_key));
        return found->second;
    }

    PlaceView place_;
    std::optional<FileList> own_;
    std::mutex mutex_;  ///< of seals_
    std::map<std::string, std::optional<FileList>> seals_;
};

}  // namespace

std::string line_of(const FileRecord& file) {
    std::string line = fmt::format("{} {} ", file.size, file.modified);
    for (const char c : file.path) {
        if (c == '\\' || c == '\n') line += '\\';
        line += c == '\n' ? 'n' : c;
    }
    return line + '\n';
}

void for_each_record(const PlaceView& place,
                     const std::function<void(const FileRecord&, const std::optional<ValueStamp>&)>& each) {
    const std::string key = place.key(snapshot_files_key);
    const auto text = place.store.open(key);
    if (text == nullptr) throw corrupt("{} is missing", place.store.name_of(key));
    const auto compare = [&](std::string_view line, std::size_t number) {
        const auto file = parse_line(line);
        if (!file) return false;
        each(*file, in_context([&] { return fmt::format("line {}", number); },
                               [&] { return place.store.stamp(place.key(file->path)); }));
        return true;
    };
    in_context([&] { return place.store.name_of(key); }, [&] { for_each_line(*text, "\"SIZE MTIME PATH\"", compare); });
}

std::optional<SnapshotState> snapshot_state(const PlaceView& place, const IoOptions& io) {
    if (!is_snapshot(place)) return std::nullopt;
    return snapshot_state_of(place, load_record(place.store, std::string(place.prefix)), "", io);
}

namespace {

/// The sum of a list; another one if it is longer than a list of so many files can be, which nobody reads to its end.
std::optional<Sha256> sum_of_list(const ReadableStore& store, const std::string& key, const SnapshotInfo& info) {
    constexpr std::uint64_t longest_line = std::uint64_t{32} << 10;  // a path of which each byte is escaped
    constexpr std::int64_t most_files = std::int64_t{1} << 40;
    const auto list = store.open(key);
    if (list == nullptr) return std::nullopt;
    const auto lines = static_cast<std::uint64_t>(std::clamp<std::int64_t>(info.files, 0, most_files)) + 1;
    return list->size() > lines * longest_line ? Sha256{} : sum_of(store, key);
}

}  // namespace

bool sums_are_whole(const PlaceView& place, const SnapshotInfo& info) {
    const auto sum = sum_of_list(place.store, place.key(snapshot_sums_key), info);
    return sum && (info.sums_sum.empty() || hex(*sum) == info.sums_sum);
}

namespace {

/// Throws corrupt if the list of files is not the one that the record is of.
void require_whole_list(const PlaceView& at, const SnapshotInfo& info) {
    const std::string list = at.key(snapshot_files_key);
    const auto list_sum = info.files_sum.empty() ? std::nullopt : sum_of_list(at.store, list, info);
    if (list_sum && hex(*list_sum) != info.files_sum) {
        throw corrupt("{}: not as it was written, so that nothing tells whether the files are", at.store.name_of(list))
            .advising(Action::copy, "takes the snapshot as it is");
    }
}

}  // namespace

namespace {

/// Tells the files of a snapshot from the present ones: by size and time, and where these differ by sums.
class Comparison {
public:
    Comparison(const PlaceView& at, const SnapshotInfo& info, std::string_view part)
        : at_(at), known_(at, info), part_(part), compared_(spool_folder(at.store)) {}

    /// By what folders say.
    void look(const FileRecord& file, const std::optional<ValueStamp>& now) {
        ++state.files;
        if (!now) {
            state.missing.push_back(file.path);
        } else if (now->size != file.size) {
            state.changed.push_back(file.path);
        } else if (now->modified == file.modified || now->modified == 0) {  // a store without times (a zip) has sizes
            ++kept_;
            if (known_.of_all() && in_part(file.path)) compared_.append({.path = file.path, .size = file.size});
        } else {
            compared_.append({.path = file.path, .size = file.size, .origin = has_other_time});
        }
    }

    /// By sums, those that have to be read.
    void read(const IoOptions& io) {
        if (compared_.empty()) return;
        for_each_file<Content>(
            compared_, io, "comparing with sums",
            [&](const ListedFile& file, Content& content) {
                const std::optional<Sha256> sum = known_.of(file.path);
                if (sum) content = sum_of(at_.store, at_.key(file.path)) == sum ? Content::same : Content::other;
            },
            [&](const ListedFile& file, Content content) { note(file, content); });
        std::ranges::sort(state.changed);
    }

    SnapshotState state;

private:
    static constexpr std::uint64_t has_other_time = 1;  // in ListedFile::origin

    [[nodiscard]] bool in_part(std::string_view path) const {
        return part_.empty() || (path.starts_with(part_) && path.substr(part_.size()).starts_with('/'));
    }

    void note(const ListedFile& file, Content content) {
        const bool moved = file.origin == has_other_time;
        if (content == Content::same) {
            if (moved) ++state.moved;
        } else if (content == Content::other || (moved && kept_ > 0) || known_.misses(file.path)) {
            state.changed.push_back(file.path);
        } else if (moved) {
            state.untold.push_back(file.path);
        }
    }

    const PlaceView& at_;
    KnownSums known_;
    std::string_view part_;
    FileList compared_;      ///< with sums of its own, all files of the part: size and time do not show a flipped bit
    std::int64_t kept_ = 0;  ///< files that have their time
};

}  // namespace

SnapshotState snapshot_state_of(const PlaceView& at, const SnapshotInfo& info, std::string_view part,
                                const IoOptions& io) {
    require_whole_list(at, info);
    Comparison comparison(at, info, part);
    for_each_record(at,
                    [&](const FileRecord& file, const std::optional<ValueStamp>& now) { comparison.look(file, now); });
    if (comparison.state.files != info.files) {
        throw corrupt("{} has {} files, and the snapshot was made of {}", at.name_of(snapshot_files_key),
                      comparison.state.files, info.files)
            .advising(Action::copy, "takes the snapshot as it is");
    }
    comparison.read(io);
    return std::move(comparison.state);
}

std::optional<std::vector<std::string>> changed_since_snapshot(const PlaceView& place) {
    auto state = snapshot_state(place);
    if (!state) return std::nullopt;
    std::vector<std::string> paths = std::move(state->changed);
    for (const auto* more : {&state->missing, &state->untold}) paths.insert(paths.end(), more->begin(), more->end());
    std::ranges::sort(paths);
    return paths;
}

}  // namespace tessera
