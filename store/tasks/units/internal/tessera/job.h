// Jobs: one copy or computation, divided into units that any number of processes on any number of machines do.
//
// A unit is a box of whole chunks of the target, or of whole shards: no two units share a file, so that nothing needs a
// lock between machines. A job is described by one JSON file (tools/docs/many_machines.md). What was done is recorded
// in the unfinished target, in files of one writer each. The target opens as an array once finish_job() has compared
// every unit with its record.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/copy.h>
#include <tessera/destination.h>
#include <tessera/error.h>
#include <tessera/recipe.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

/// Numbers from `first` up to but without `end`.
struct UnitRange {
    std::int64_t first = 0;
    std::int64_t end = 0;
    friend bool operator==(const UnitRange&, const UnitRange&) = default;
};
/// "3-7,9" as ranges. Throws invalid_argument for other text, and for numbers that are not below `count`.
[[nodiscard]] std::vector<UnitRange> parse_unit_ranges(std::string_view text, std::int64_t count);
/// Ranges as "3-7,9", as schedulers take them (`--array=3-7,9`).
[[nodiscard]] std::string unit_ranges_text(const std::vector<UnitRange>& ranges);

/// A source changed after the job was planned: no unit of it can be done any more.
class SourceChanged final : public Error {
public:
    explicit SourceChanged(const std::string& message) : Error(ErrorCode::invalid_argument, message) {}
};

/// An array that a job makes.
struct JobArray {
    std::string node;             ///< its path below the target; "" for the target itself
    std::filesystem::path built;  ///< where it is written: in its place, or beside an array that it will replace
    std::uint64_t inode = 0;      ///< of the folder `built`
    PlannedArray plan;
    Recipe source{};    ///< what it is made of
    Shape block{};      ///< of a unit
    UnitRange units{};  ///< their numbers
};

/// A job as its file says. Thread rule: a value that nobody changes.
struct Job {
    std::filesystem::path file;
    std::string id;
    std::string target;
    std::string made_from;     ///< in the marker of the unfinished arrays
    std::int64_t parts = 0;    ///< as planned; 0: that is left to those who work
    std::uint64_t memory = 0;  ///< bytes for which the units were planned
    bool overwrite = false;
    std::vector<PlannedGroup> groups{};
    std::vector<JobArray> arrays{};
    Value sources{};  ///< the identity of each: see source_identity()

    /// Throws not_found, io and corrupt, naming the member of the file.
    [[nodiscard]] static Job open(const std::filesystem::path& file);

    [[nodiscard]] std::int64_t units() const { return arrays.empty() ? 0 : arrays.back().units.end; }
    /// The units of part `part` of `parts`: neighbours, so that they share chunks of the source. Throws
    /// invalid_argument unless 0 <= part < parts.
    [[nodiscard]] UnitRange part(std::int64_t number, std::int64_t of) const;
    /// The array that a unit is a part of, and the region in it. Throws invalid_argument for a number that is no unit.
    [[nodiscard]] std::pair<const JobArray*, Region> place_of(std::int64_t unit) const;
    /// Elements of a unit, uncompressed.
    [[nodiscard]] std::uint64_t bytes_of(std::int64_t unit) const;
};

struct PlanOptions {
    HierarchyOptions copy = {};  ///< arrays, overwrite, io, store, note
    std::int64_t parts = 0;
};

/// Plans a job, makes its unfinished target, and then `file`. `recipe` says what the target is made of. Throws
/// unsupported for a source that can only be read from its beginning, for ingredients in memory, and for a target that
/// is no folder of this machine; and the errors of open_recipe() and copy_hierarchy().
Job plan_job(const Recipe& recipe, const std::string& target, const std::filesystem::path& file,
             const PlanOptions& options = {});

/// The result of a unit.
struct UnitDone {
    bool before = false;      ///< it had been done already, or is being done by whoever took over its lease
    std::int64_t files = 0;   ///< chunks or shards that hold more than the fill value
    std::uint64_t bytes = 0;  ///< stored
    std::chrono::milliseconds took{0};
};

/// Does units of a job in this process. Thread rule: one thread; other processes may do the same units.
class JobWorker {
public:
    /// Throws SourceChanged, and invalid_argument if the target is no longer that of the job.
    explicit JobWorker(Job job, const StoreOptions& store = {});
    ~JobWorker();  ///< as flush(), without errors
    JobWorker(const JobWorker&) = delete;
    JobWorker& operator=(const JobWorker&) = delete;

    [[nodiscard]] const Job& job() const;
    /// Whether it is recorded as done, as far as is known: by records read so far, and by those of this worker.
    [[nodiscard]] bool is_done(std::int64_t unit) const;
    /// Does a unit unless it is done. Its record follows with the next flush() at the latest, once its chunks are on
    /// the disk (StoreOptions::durability).
    UnitDone run(std::int64_t unit, const IoOptions& io = {});
    /// Records that a unit failed, for job_state().
    void fail(std::int64_t unit, std::string_view message);
    /// Writes all records.
    void flush();
    /// The next stretch of units that nobody else is doing, held by a lease that is renewed until these units are
    /// recorded. Waits while others hold all that is left; nullopt once nothing is left, or `stop`() is true. The lease
    /// of a process that ended on this machine, and any that was not renewed for its time, is taken over.
    [[nodiscard]] std::optional<UnitRange> claim(std::chrono::milliseconds lease, const std::function<bool()>& stop);

private:
    struct State;
    std::unique_ptr<State> state_;
};

struct UnitFailure {
    std::int64_t unit = 0;
    std::string message;
};

/// How far a job is, by its records.
struct JobState {
    bool finished = false;  ///< the target is complete and open to all
    bool before = false;    ///< it was so already: finish_job() has compared nothing
    std::int64_t done = 0;
    std::uint64_t bytes = 0;              ///< of elements, uncompressed, in these
    std::uint64_t stored = 0;             ///< bytes of their files
    std::vector<UnitRange> missing{};     ///< units
    std::vector<UnitFailure> failures{};  ///< the last one of each unit that is missing, at most 1000
    double seconds = 0;                   ///< between the first and the last record
    double rate = 0;                      ///< bytes of elements a second
};
[[nodiscard]] JobState job_state(const Job& job);
/// The same as JSON: the members are listed in tools/docs/many_machines.md.
[[nodiscard]] Value job_state_value(const Job& job, const JobState& state);

struct FinishOptions {
    bool read = false;  ///< hash what is stored again, for every unit
    IoOptions io = {};
    StoreOptions store = {};
};
/// Compares every unit with its record, and all sources with what they were. If nothing is missing, publishes the
/// target, which ends the job; `finished` says so. Units whose files are not those that were recorded count as missing,
/// and their records are withdrawn, so that they are done again; nothing else changes then. A finished job may be
/// finished again. Throws SourceChanged.
JobState finish_job(const Job& job, const FinishOptions& options = {});

/// The parts, of those planned, that hold these units.
[[nodiscard]] std::vector<UnitRange> parts_with(const Job& job, const std::vector<UnitRange>& units);

}  // namespace tessera
