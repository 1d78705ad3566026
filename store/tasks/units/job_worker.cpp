#include <algorithm>
#include <atomic>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy_array.h>
#include <tessera/error_text.h>
#include <tessera/job.h>

#include <time.h>
#include <unistd.h>

#include "array_access.h"
#include "keys.h"
#include "recipe.h"
#include "unit_claims.h"
#include "unit_records.h"

namespace tessera {

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t unix_time() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// A region of an array that begins and ends where shards do, as an array of its own.
class UnitSink final : public ArraySink {
public:
    UnitSink(Array& array, Region place) : array_(array), place_(std::move(place)) {}
    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = array_.info();
        info.shape = place_.extent;
        return info;
    }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        array_.write(moved(region), in, io);
    }
    [[nodiscard]] std::unique_ptr<ArraySink> open_shard(const Region& region) override {
        return array_.open_shard(moved(region));
    }
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return array_.name(); }

private:
    [[nodiscard]] Region moved(Region region) const {
        for (int d = 0; d < region.rank(); ++d) region.start[d] += place_.start[d];
        return region;
    }

    Array& array_;
    Region place_;
};

/// The selection of which `region`, without dropped dimensions, is made.
Selection selected_part(const Selection& all, const Region& region) {
    Region full;
    int d = 0;
    for (const Selection::Axis& axis : all.axes()) {
        full.start.push_back(axis.dropped ? 0 : region.start[d]);
        full.extent.push_back(axis.dropped ? 1 : region.extent[d++]);
    }
    return all.part(full);
}

}  // namespace

struct JobWorker::State {
    Job job;
    StoreOptions options;
    std::vector<bool> done;
    std::set<std::int64_t> tried;  ///< stretches with a unit that failed here
    RecordReader reader;
    RecordWriter writer;
    std::vector<UnitRecord> pending;
    Clock::time_point flushed = Clock::now();
    Clock::duration sync_took{0};

    // The array of the last unit.
    const JobArray* open = nullptr;
    std::optional<WrittenArray> made;
    std::optional<UnitSource> source;
    NDArray memory;  ///< of a unit

    std::unique_ptr<UnitClaims> claims;
    std::int64_t cursor = -1;
    std::optional<std::int64_t> claimed;       ///< the stretch given out last
    std::atomic<bool> lost = false;            ///< its lease is somebody else's by now
    std::atomic<std::int64_t> looked = 0;      ///< when look() did
    std::vector<std::int64_t> to_give_back{};  ///< once their records are written

    State(Job j, const StoreOptions& s)
        : job(std::move(j)),
          options(s),
          done(static_cast<std::size_t>(job.units())),
          reader(records_place(job, options)),
          writer(records_place(job, options)) {}

    void require_number(std::int64_t unit) const {
        if (unit < 0 || unit >= job.units()) (void)job.place_of(unit);
    }

    void refresh() {
        const auto mark = [&](std::int64_t unit, bool is) {
            if (unit >= 0 && unit < job.units()) done[static_cast<std::size_t>(unit)] = is;
        };
        reader.read(
            [&](const UnitRecord& record) {
                if (!record.failed && !record.withdrawn) mark(record.unit, true);
            },
            [&](std::int64_t unit) { mark(unit, false); });
    }

    void open_array(const JobArray& wanted, const IoOptions& io) {
        if (open == &wanted) return;
        flush();
        open = nullptr;
        memory = NDArray();
        require_own_target(job, wanted);
        made.emplace(written_array(job, wanted, options, [this] { look(); }));
        source.emplace(unit_source(wanted, io));
        open = &wanted;
    }

    void require_sources(bool whole) const {
        for (const Value& identity : job.sources.as_array()) require_same_source(identity, whole);
    }

    /// After a unit: what was read is what was there when the job was planned.
    void require_sources_read() const {
        for (const Value& identity : job.sources.as_array()) {
            if (identity.find("file") != nullptr) require_same_source(identity, false);
        }
        require_unchanged_chunks(source->opened, job.sources);
    }

    /// Before each change: throws if the target is not that of the job any more, or the lease somebody else's. This
    /// process may have slept for any time since the last change. Looks at most once in a second.
    void look() {
        constexpr std::int64_t second = 1'000'000'000;
        timespec now{};
        (void)::clock_gettime(CLOCK_BOOTTIME, &now);  // goes on while the machine sleeps
        const std::int64_t time = now.tv_sec * second + now.tv_nsec;
        if (time - looked < second) return;
        if (!has_marker(*open)) require_own_target(job, *open);
        if (claimed && !claims->holds(*claimed)) {
            lost = true;
            throw cancelled("another process has taken over what this one was doing");
        }
        looked = time;
    }

    /// Calls act(); says why if it failed because the target is not that of the job any more.
    template <class Act>
    auto in_own_target(const Act& act) const {
        try {
            return act();
        } catch (const Error&) {
            for (const JobArray& array : job.arrays) require_own_target(job, array);
            throw;
        }
    }

    UnitDone run(std::int64_t unit, const IoOptions& io) {
        if (lost) return {.before = true};
        try {
            return in_own_target([&] { return make(unit, io); });
        } catch (const Error&) {
            if (!lost) throw;
            return {.before = true};
        }
    }

    UnitDone make(std::int64_t unit, const IoOptions& io) {
        const auto begun = Clock::now();
        const auto place = job.place_of(unit);
        open_array(*place.first, io);
        if (!has_marker(*place.first)) require_own_target(job, *place.first);
        UnitSink sink(made->array, place.second);
        copy_array(*source->opened.source, sink,
                   {.io = io, .selection = selected_part(source->selection, place.second), .memory = &memory});
        require_sources_read();
        UnitRecord record = unit_files(made->array, place.second, made->store.get(), false);
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun);
        record.unit = unit;
        record.took = took.count();
        record.written = unix_time();
        done[static_cast<std::size_t>(unit)] = true;
        pending.push_back(record);
        // Chunks are on the disk before a record says so. Waiting for that takes at most a small share of the time.
        constexpr int share = 50;
        const bool waits = options.durability == Durability::commit || is_far();
        if (!waits || Clock::now() - flushed >= share * sync_took) flush();
        return {.before = false, .files = record.files, .bytes = record.bytes, .took = took};
    }

    /// A folder is looked up again, because it may have been replaced; in a store far away that is one request.
    [[nodiscard]] bool has_marker(const JobArray& of) const {
        const ArrayState& state = *ArrayAccess::state(made->array);
        const std::string key = state.key(unfinished_marker_key);
        if (is_far()) return state.store->stamps(std::span(&key, 1)).front().has_value();
        return directory_store(of.built, {.read_only = true})->contains(unfinished_marker_key);
    }
    /// Whether the target of the last unit is.
    [[nodiscard]] bool is_far() const { return ArrayAccess::state(made->array)->store->is_far(); }

    void flush() {
        if (!pending.empty()) {
            const auto begun = Clock::now();
            // A folder of records goes with the end of the job; an object would be made anew.
            if (made && is_far()) require_own_target(job, job.arrays.back());
            if (made && (is_far() || options.durability != Durability::none)) {
                KeyValueStore& chunks = *ArrayAccess::state(made->array)->store;
                chunks.sync();
                chunks.sync_later();
            }
            writer.append(pending, options.durability != Durability::none);
            pending.clear();
            flushed = Clock::now();
            sync_took = flushed - begun;
        }
        if (claims) {
            for (const std::int64_t number : to_give_back) claims->give_back(number);
        }
        to_give_back.clear();
    }

    // ---- claims

    /// Units of a stretch: so many that there are some thousand leases at most.
    [[nodiscard]] std::int64_t stretch() const {
        constexpr std::int64_t most = 4096;
        return (job.units() + most - 1) / most;
    }
    [[nodiscard]] UnitRange range_of(std::int64_t number) const {
        return {number * stretch(), std::min(job.units(), (number + 1) * stretch())};
    }
    std::optional<UnitRange> claim(std::chrono::milliseconds lease, const std::function<bool()>& stop);
    [[nodiscard]] bool is_left(std::int64_t number) const {
        const UnitRange range = range_of(number);
        for (std::int64_t unit = range.first; unit < range.end; ++unit) {
            if (!done[static_cast<std::size_t>(unit)]) return true;
        }
        return false;
    }
};

JobWorker::JobWorker(Job job, const StoreOptions& store) : state_(std::make_unique<State>(std::move(job), store)) {
    for (const JobArray& array : state_->job.arrays) require_own_target(state_->job, array);
    require_no_link(state_->job);
    state_->require_sources(false);
    state_->refresh();
}

JobWorker::~JobWorker() {
    try {
        state_->flush();
    } catch (const Error&) {  // without a record the unit is done again
    }
}

const Job& JobWorker::job() const {
    return state_->job;
}

bool JobWorker::is_done(std::int64_t unit) const {
    state_->require_number(unit);
    return state_->done[static_cast<std::size_t>(unit)];
}

UnitDone JobWorker::run(std::int64_t unit, const IoOptions& io) {
    if (is_done(unit)) state_->refresh();  // its record may have been withdrawn
    if (is_done(unit)) return {.before = true};
    return state_->run(unit, io);
}

void JobWorker::fail(std::int64_t unit, std::string_view message) {
    state_->require_number(unit);
    state_->pending.push_back(
        {.unit = unit, .written = unix_time(), .failed = true, .message = std::string(message.substr(0, 10'000))});
    if (state_->claimed) state_->tried.insert(*state_->claimed);
    flush();
}

void JobWorker::flush() {
    state_->in_own_target([&] { state_->flush(); });
}

std::optional<UnitRange> JobWorker::claim(std::chrono::milliseconds lease, const std::function<bool()>& stop) {
    return state_->in_own_target([&] { return state_->claim(lease, stop); });
}

std::optional<UnitRange> JobWorker::State::claim(std::chrono::milliseconds lease, const std::function<bool()>& stop) {
    State& s = *this;
    if (s.claimed) s.to_give_back.push_back(*std::exchange(s.claimed, std::nullopt));
    s.lost = false;
    if (!s.claims) s.claims = unit_claims(records_place(s.job, s.options), lease);
    const std::int64_t count = s.job.units() == 0 ? 0 : (s.job.units() + s.stretch() - 1) / s.stretch();
    if (s.cursor < 0) s.cursor = count == 0 ? 0 : process_number() % count;  // not all begin at the same place
    while (!stop()) {
        bool others = false;
        for (std::int64_t k = 0; k < count; ++k) {
            const std::int64_t number = (s.cursor + k) % count;
            if (s.tried.contains(number) || !s.is_left(number)) continue;
            if (!s.claims->take(number)) {
                others = true;
                continue;
            }
            s.refresh();  // whoever held it before may have done it
            if (!s.is_left(number)) {
                s.claims->give_back(number);
                continue;
            }
            s.cursor = number;
            s.claimed = number;
            s.looked = 0;
            return s.range_of(number);
        }
        s.flush();
        if (!others) break;
        constexpr std::chrono::milliseconds most{500};
        const auto until = Clock::now() + std::min(most, lease / 4);
        while (Clock::now() < until && !stop()) ::usleep(20'000);
        s.refresh();
    }
    return std::nullopt;
}

}  // namespace tessera
