// For one array: the files in its directory, and whether its chunks decode.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/array_plan.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/folder_walk.h>
#include <tessera/shard.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lost_separator.h"
#include "metadata_json.h"
#include "node_files.h"
#include "other_files.h"
#include "region_io.h"
#include "resize.h"
#include "stored_chunks.h"
#include "verify_run.h"

namespace tessera {

namespace {

/// The check of the names below an array: its metadata, folders of chunks, and what is no part of it.
class ArrayFiles {
public:
    ArrayFiles(VerifyRun& run, const std::string& node, const Dialect& dialect, const ArrayMetadata& metadata)
        : run_(run), node_(node), dialect_(dialect), metadata_(metadata), others_(run, node) {}

    void check(const std::vector<std::string>& folders) const {
        run_.store->for_each(run_.place(node_), [&](std::string_view name, const auto&) {
            if (!others_.check_name(name) && !dialect_.owns(metadata_, name) && !is_description(name)) {
                others_.add_stray(join_key(node_, name), "a file that is no part of the array");
            }
        });
        bool lost_separator = false;
        for (const std::string& name : folders) {
            if (others_.check_own_folder(name)) continue;
            if (dialect_.owns(metadata_, name)) {
                // Far away, a value is there as a whole or not at all.
                if (!run_.store->is_far()) check_chunk_folders(join_key(node_, name));
            } else if (const auto key = chunk_of_lost_separator({*run_.store, run_.place(node_)}, metadata_, name)) {
                if (!lost_separator) add_lost_separator(*key);
                lost_separator = true;
            } else {
                others_.add_stray(join_key(node_, name), "a directory that is no part of the array");
            }
        }
    }

private:
    /// Finds temporary files in the folders of chunks, at any depth.
    void check_chunk_folders(const std::string& folder) const {
        FolderWalk walk({*run_.store, run_.place(folder)}, [](const std::string&) { return true; });
        while (walk.next()) {
            others_.check_temporaries(join_key(folder, walk.path()));
            std::vector<std::pair<std::string, bool>> folders;  // and whether each is a link
            run_.store->for_each(
                walk.prefix(), [](std::string_view, const auto&) {},
                [&](std::string_view name, bool link) {
                    if (looks_like_chunk(name)) folders.emplace_back(name, link);
                });
            std::ranges::sort(folders);
            for (const auto& [name, link] : folders) walk.enter(name, link);
        }
    }

    void add_lost_separator(const std::string& key) const {
        std::string dotted = key;
        std::ranges::replace(dotted, '/', '.');
        run_.add({.node = node_,
                  .key = join_key(node_, key),
                  .text = fmt::format(
                      "is a chunk by the dimension_separator \"/\", which {} does not say, so that chunks like it "
                      "read as the fill value: zarr-python 2.13 loses it when it appends or resizes. Add "
                      "\"dimension_separator\": \"/\" to {}; chunks that were written since, such as {}, then "
                      "belong in folders",
                      dialect_.metadata_key, dialect_.metadata_key, dotted)});
    }

    VerifyRun& run_;
    const std::string& node_;
    const Dialect& dialect_;
    const ArrayMetadata& metadata_;
    OtherFiles others_;
};

/// The check of the chunks of an array: which are stored, and whether they decode.
class ArrayChunks {
public:
    ArrayChunks(VerifyRun& run, const std::string& node, const ArrayState& array, const LoadedArray& loaded)
        : run_(run), node_(node), array_(array), loaded_(loaded) {}

    void check() {
        list();
        std::ranges::sort(stored_);
        CountedVector<std::int64_t> inner;
        const bool sharded = loaded_.pipeline.shard() != nullptr;
        if (sharded) {
            run_.guarded({.node = node_, .key = metadata_key()},
                         [&] { inner = stored_units(array_, loaded_, stored_, run_.options.io); });
        }
        const std::span<const std::int64_t> units = sharded ? std::span<const std::int64_t>(inner) : stored_;
        run_.report.chunks += std::ssize(units);
        run_.report.bytes += bytes_;
        const std::int64_t missing = unit_grid(loaded_).chunk_count() - std::ssize(units);
        run_.report.missing += missing;
        if (auto text = undefined_chunks_note(loaded_.metadata, missing)) {
            run_.add({.kind = FindingKind::note, .node = node_, .key = metadata_key(), .text = *std::move(text)});
        }
        verify_complete(run_, node_, array_, loaded_, stored_, units);
        if (!stored_.empty()) decode_within_memory();
    }

private:
    /// Finds the stored chunks, and files among them that are none.
    void list() {
        const OtherFiles others(run_, node_);
        const auto each = [&](const Index& index, const std::string& key, const auto& size_of) {
            if (!in_grid(loaded_.grid, index)) return add_outside(index, run_.below(key));
            stored_.push_back(loaded_.grid.linear(index));
            const std::uint64_t size = size_of();
            bytes_ += size;
            largest_ = std::max(largest_, size);
        };
        const auto stray = [&](const std::string& key) {
            const std::size_t slash = key.rfind('/');
            if (slash == std::string::npos) return;  // directly in the array: checked with its other names
            const std::string folder = join_key(node_, key.substr(0, slash));
            if (!others.check_name(folder, key.substr(slash + 1))) {
                others.add_stray(join_key(node_, key), "a file among the chunks that is not a chunk");
            }
        };
        const auto in_the_way = [&](const Index* index, const std::string& key, const std::string& text) {
            if (index != nullptr && !in_grid(loaded_.grid, *index)) return add_outside(*index, join_key(node_, key));
            run_.add({.remedy = index != nullptr ? Remedy::set_aside : Remedy::none,
                      .node = node_,
                      .key = join_key(node_, key),
                      .chunk = index != nullptr ? std::optional(*index) : std::nullopt,
                      .text = text});
        };
        for_each_stored(array_, loaded_, {.each = each, .stray = stray, .in_the_way = in_the_way});
    }

    /// Decodes with as many threads as the memory allows, if it is enough for one.
    void decode_within_memory() const {
        const IoOptions& io = run_.options.io;
        const std::uint64_t memory = memory_for_checks(io);
        const std::uint64_t need = check_memory(loaded_, largest_);
        if (need > memory) {
            run_.add({.kind = FindingKind::unchecked,
                      .node = node_,
                      .key = metadata_key(),
                      .text = fmt::format("its chunks were not decoded: one takes {} bytes of memory, the budget is {}",
                                          need, memory),
                      .advice = {{Action::max_memory, "", fmt::format("{}M", (need >> 20U) + 1)}}});
            return;
        }
        IoOptions outer = io;
        outer.threads =
            static_cast<int>(std::min<std::uint64_t>(memory / need, static_cast<std::uint64_t>(thread_count(io))));
        if (io.progress != nullptr) io.progress->start(static_cast<std::int64_t>(bytes_), array_.name);
        decode(outer);
    }

    /// Announces the chunks that will be read, where each is a request.
    [[nodiscard]] std::unique_ptr<ReadAhead> announce() const {
        if (run_.options.trust) return nullptr;  // some are not read
        if (loaded_.pipeline.shard() != nullptr) return array_.store->keep_parts(true);
        const std::uint64_t usual = std::min(std::max<std::uint64_t>(largest_, 1), loaded_.pipeline.encoded_limit());
        return array_.store->read_ahead(usual, [this, n = std::size_t{0}](ReadWish& wish) mutable {
            if (n == stored_.size()) return false;
            wish = {.key = array_.chunk_key(loaded_, loaded_.grid.index(stored_[n++])), .whole = true};
            return true;
        });
    }

    /// Decodes the stored chunks, in parallel.
    void decode(const IoOptions& io) const {
        std::unique_ptr<ReadAhead> ahead = announce();
        const SharedThreads threads = share_threads(loaded_, std::ssize(stored_), io);
        std::mutex mutex;
        std::vector<std::int64_t> alone;  // chunks that took too much memory beside others
        std::atomic<std::int64_t> lost = 0;
        const auto check = [&](std::int64_t n, bool beside_others) {
            const Index index = loaded_.grid.index(stored_[static_cast<std::size_t>(n)]);
            if (run_.options.trust && run_.options.trust(key_of(index))) return;
            const CheckedChunk checked = check_chunk(array_, loaded_, index, threads.within);
            if (beside_others &&
                std::ranges::any_of(checked.bad, [](const CheckedChunk::Bad& bad) { return bad.fault.over_budget; })) {
                const std::lock_guard lock(mutex);
                alone.push_back(n);
                return;
            }
            for (const CheckedChunk::Bad& bad : checked.bad) add_bad(index, bad);
            if (!checked.decoded && !checked.bad.empty() && checked.bad.front().fault.kind == FindingKind::damage)
                ++lost;
            if (io.progress != nullptr) io.progress->advance(static_cast<std::int64_t>(checked.bytes));
        };
        parallel_for(std::ssize(stored_), threads.outer, [&](std::int64_t n) { check(n, true); });
        ahead.reset();
        for (const std::int64_t n : alone) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            check(n, false);
        }
        if (lost == std::ssize(stored_) && lost + outside_ > 1) add_doubt();
    }

    /// One wrong digit in the metadata looks like this. Nothing is done to chunks that are probably whole.
    void add_doubt() const {
        for (Finding& finding : run_.report.findings) {
            if (finding.node == node_ && finding.chunk) finding.remedy = Remedy::none;
        }
        run_.add(
            {.node = node_,
             .key = metadata_key(),
             .text = fmt::format("none of the {} stored chunks can be decoded by these metadata: probably they are "
                                 "what is wrong. Put them right from another copy or a snapshot; `tessera repair` "
                                 "leaves all chunks where they are. If it is the chunks that are damaged, write "
                                 "them anew",
                                 std::ssize(stored_) + outside_)});
    }

    void add_outside(const Index& index, const std::string& key) {
        ++outside_;
        run_.add(
            {.kind = FindingKind::leftover,
             .remedy = Remedy::set_aside,
             .node = node_,
             .key = key,
             .chunk = index,
             .text = fmt::format("a chunk outside the array, whose shape is {}", loaded_.grid.shape().to_string())});
    }

    void add_bad(const Index& index, const CheckedChunk::Bad& bad) const {
        const Remedy remedy = bad.trailing > 0 ? Remedy::cut_off
                              : bad.inner      ? Remedy::rewrite_shard
                                               : Remedy::set_aside;
        run_.add({.kind = bad.fault.kind,
                  .remedy = bad.fault.kind == FindingKind::damage ? remedy : Remedy::none,
                  .node = node_,
                  .key = key_of(index),
                  .chunk = index,
                  .inner = bad.inner,
                  .text = bad.fault.text,
                  .advice = bad.fault.advice});
    }

    [[nodiscard]] std::string key_of(const Index& index) const { return run_.below(array_.chunk_key(loaded_, index)); }
    [[nodiscard]] std::string metadata_key() const { return join_key(node_, array_.dialect->metadata_key); }

    VerifyRun& run_;
    const std::string& node_;
    const ArrayState& array_;
    const LoadedArray& loaded_;
    std::vector<std::int64_t> stored_;  ///< numbers of the chunks that are stored and in the grid
    std::uint64_t bytes_ = 0;           ///< of these
    std::uint64_t largest_ = 0;         ///< of the sizes
    std::int64_t outside_ = 0;          ///< stored chunks that are not in the grid
};

}  // namespace

void verify_array(VerifyRun& run, const std::string& node, const Dialect& dialect,
                  const std::vector<std::string>& folders) {
    ++run.report.arrays;
    const ArrayState array(run.store, run.place(node), dialect);
    std::shared_ptr<const LoadedArray> loaded;
    run.guarded({.node = node, .key = join_key(node, dialect.metadata_key)}, [&] {
        loaded = std::make_shared<const LoadedArray>(load_metadata(dialect, {*run.store, array.prefix}));
    });
    if (loaded || dialect.documents.back() != dialect.metadata_key) verify_attributes(run, node, dialect);
    if (!loaded) return;
    ArrayFiles(run, node, dialect, loaded->metadata).check(folders);
    ArrayChunks(run, node, array, *loaded).check();
}

}  // namespace tessera
