// For one array: the files in its directory, and whether its chunks decode.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/array_plan.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/shard.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lost_separator.h"
#include "metadata_json.h"
#include "region_io.h"
#include "resize.h"
#include "stored_chunks.h"
#include "verifier.h"

namespace tessera {

namespace {

constexpr std::uint64_t default_memory = std::uint64_t{256} << 20;

}  // namespace

void Verifier::check_array(const std::string& path, const Dialect& dialect, const std::vector<std::string>& folders) {
    ++report_.arrays;
    ArrayState array(store_, place(path), dialect);
    const std::string metadata_key = join_key(path, dialect.metadata_key);
    std::shared_ptr<const LoadedArray> loaded;
    guarded({.node = path, .key = metadata_key}, [&] {
        loaded = std::make_shared<const LoadedArray>(load_metadata(dialect, {*store_, array.prefix}));
    });
    if (loaded || dialect.documents.back() != dialect.metadata_key) check_attributes(path, dialect);
    if (!loaded) return;
    store_->for_each(place(path), [&](std::string_view name, const auto&) {
        if (!check_name(path, path, name) && !dialect.owns(loaded->metadata, name)) {
            add_stray(path, join_key(path, name), "a file that is no part of the array");
        }
    });
    bool lost_separator = false;
    for (const std::string& name : folders) {
        if (check_own_folder(path, name)) continue;
        if (dialect.owns(loaded->metadata, name)) {
            check_chunk_folders(path, join_key(path, name));
        } else if (const auto key = chunk_of_lost_separator({*store_, array.prefix}, loaded->metadata, name)) {
            if (!lost_separator) add_lost_separator(path, dialect, *key);
            lost_separator = true;
        } else {
            add_stray(path, join_key(path, name), "a directory that is no part of the array");
        }
    }
    check_chunks(path, array, *loaded);
}

void Verifier::add_lost_separator(const std::string& path, const Dialect& dialect, const std::string& key) {
    add({.node = path,
         .key = join_key(path, key),
         .text =
             fmt::format("is a chunk by the dimension_separator \"/\", which {} does not say, so that chunks like it "
                         "read as the fill value: zarr-python 2.13 loses it when it appends or resizes. Add "
                         "\"dimension_separator\": \"/\" to {}; chunks that were written since, such as {}, then "
                         "belong in folders",
                         dialect.metadata_key, dialect.metadata_key, dotted(key))});
}

std::string Verifier::dotted(std::string key) {
    std::ranges::replace(key, '/', '.');
    return key;
}

void Verifier::check_chunk_folders(const std::string& node, const std::string& folder) {
    FolderWalk walk({*store_, place(folder)}, [](const std::string&) { return true; });
    while (walk.next()) {
        check_temporaries(node, join_key(folder, walk.path()));
        std::vector<std::pair<std::string, bool>> folders;  // and whether each is a link
        store_->for_each(
            walk.prefix(), [](std::string_view, const auto&) {},
            [&](std::string_view name, bool link) {
                if (looks_like_chunk(name)) folders.emplace_back(name, link);
            });
        std::ranges::sort(folders);
        for (const auto& [name, link] : folders) walk.enter(name, link);
    }
}

void Verifier::check_chunks(const std::string& path, const ArrayState& array, const LoadedArray& loaded) {
    std::vector<std::int64_t> stored;
    std::uint64_t bytes = 0;
    std::uint64_t largest = 0;
    const auto each = [&](const Index& index, const std::string& key, const auto& size_of) {
        if (!in_grid(loaded.grid, index)) return add_outside(path, loaded, index, below(key));
        stored.push_back(loaded.grid.linear(index));
        const std::uint64_t size = size_of();
        bytes += size;
        largest = std::max(largest, size);
    };
    const auto stray = [&](const std::string& key) {
        const std::size_t slash = key.rfind('/');
        if (slash == std::string::npos) return;  // directly in the array: checked with its other names
        const std::string folder = join_key(path, key.substr(0, slash));
        if (!check_name(path, folder, key.substr(slash + 1))) {
            add_stray(path, join_key(path, key), "a file among the chunks that is not a chunk");
        }
    };
    const auto in_the_way = [&](const Index* index, const std::string& key, const std::string& text) {
        if (index != nullptr && !in_grid(loaded.grid, *index)) {
            return add_outside(path, loaded, *index, join_key(path, key));
        }
        add({.remedy = index != nullptr ? Remedy::set_aside : Remedy::none,
             .node = path,
             .key = join_key(path, key),
             .chunk = index != nullptr ? std::optional(*index) : std::nullopt,
             .text = text});
    };
    for_each_stored(array, loaded, {.each = each, .stray = stray, .in_the_way = in_the_way});
    report_.chunks += std::ssize(stored);
    report_.bytes += bytes;
    const std::int64_t missing = loaded.grid.chunk_count() - std::ssize(stored);
    report_.missing += missing;
    if (auto text = undefined_chunks_note(loaded.metadata, missing)) {
        add({.kind = FindingKind::note,
             .node = path,
             .key = join_key(path, array.dialect->metadata_key),
             .text = *std::move(text)});
    }
    check_complete(path, array, loaded, stored);
    if (stored.empty()) return;

    const std::uint64_t memory = options_.io.max_memory == 0 ? default_memory : options_.io.max_memory;
    const std::uint64_t need = check_memory(loaded, largest);
    if (need > memory) {
        add({.kind = FindingKind::unchecked,
             .node = path,
             .key = join_key(path, array.dialect->metadata_key),
             .text = fmt::format("its chunks were not decoded: one takes {} bytes of memory, the budget is {}", need,
                                 memory),
             .advice = {{Action::max_memory, "", fmt::format("{}M", (need >> 20U) + 1)}}});
        return;
    }
    IoOptions outer = options_.io;
    outer.threads =
        static_cast<int>(std::min<std::uint64_t>(memory / need, static_cast<std::uint64_t>(thread_count(options_.io))));
    Progress* const progress = options_.io.progress;
    if (progress != nullptr) progress->start(static_cast<std::int64_t>(bytes), array.name);
    decode_chunks(path, array, loaded, stored, outer);
}

void Verifier::decode_chunks(const std::string& path, const ArrayState& array, const LoadedArray& loaded,
                             const std::vector<std::int64_t>& stored, const IoOptions& io) {
    const SharedThreads threads = share_threads(loaded, std::ssize(stored), io);
    Progress* const progress = options_.io.progress;
    std::mutex mutex;
    std::vector<std::int64_t> alone;  // chunks that took too much memory beside others
    const auto check = [&](std::int64_t n, bool beside_others) {
        const Index index = loaded.grid.index(stored[static_cast<std::size_t>(n)]);
        if (options_.trust && options_.trust(below(array.chunk_key(loaded, index)))) return;
        const CheckedChunk checked = check_chunk(array, loaded, index, threads.within);
        if (beside_others &&
            std::ranges::any_of(checked.bad, [](const CheckedChunk::Bad& bad) { return bad.fault.over_budget; })) {
            const std::lock_guard lock(mutex);
            alone.push_back(n);
            return;
        }
        for (const CheckedChunk::Bad& bad : checked.bad) add_chunk(path, array, loaded, index, bad);
        if (progress != nullptr) progress->advance(static_cast<std::int64_t>(checked.bytes));
    };
    parallel_for(std::ssize(stored), threads.outer, [&](std::int64_t n) { check(n, true); });
    for (const std::int64_t n : alone) {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        check(n, false);
    }
}

void Verifier::add_outside(const std::string& path, const LoadedArray& loaded, const Index& index,
                           const std::string& key) {
    add({.kind = FindingKind::leftover,
         .remedy = Remedy::set_aside,
         .node = path,
         .key = key,
         .chunk = index,
         .text = fmt::format("a chunk outside the array, whose shape is {}", loaded.grid.shape().to_string())});
}

void Verifier::add_chunk(const std::string& path, const ArrayState& array, const LoadedArray& loaded,
                         const Index& index, const CheckedChunk::Bad& bad) {
    const Remedy remedy = bad.trailing > 0 ? Remedy::cut_off : bad.inner ? Remedy::rewrite_shard : Remedy::set_aside;
    add({.kind = bad.fault.kind,
         .remedy = bad.fault.kind == FindingKind::damage ? remedy : Remedy::none,
         .node = path,
         .key = below(array.chunk_key(loaded, index)),
         .chunk = index,
         .inner = bad.inner,
         .text = bad.fault.text,
         .advice = bad.fault.advice});
}

}  // namespace tessera
