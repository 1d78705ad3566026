// Which units of a job are done, in files of one writer each, and what they wrote. Private to the store module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>
#include <tessera/job.h>

#include "descriptor.h"

namespace tessera {

/// A line of a record. `stamps` is a hash of the sizes and times of the unit's files, `content` one of their bytes.
struct UnitRecord {
    std::int64_t unit = 0;
    std::int64_t files = 0;
    std::uint64_t bytes = 0;
    std::uint64_t stamps = 0;
    std::uint64_t content = 0;
    std::int64_t took = 0;     ///< milliseconds
    std::int64_t written = 0;  ///< milliseconds since 1970, by the writer's clock
    bool failed = false;
    std::string message = {};
};

/// Where the records of a job lie: in the folder of its array that is published last.
[[nodiscard]] std::filesystem::path records_folder(const Job& job);

/// Throws invalid_argument for a folder of records, or one above it in the target, that is a link: nothing is written
/// or deleted behind it.
void require_no_link(const Job& job);

/// Reads records as they are appended. Lines that a crash cut are ignored.
class RecordReader {
public:
    explicit RecordReader(std::filesystem::path folder) : folder_(std::move(folder)) {}
    /// Calls each(record) for those that were written since the last call.
    void read(const std::function<void(const UnitRecord&)>& each);

private:
    std::filesystem::path folder_;
    std::map<std::string, std::uint64_t> read_;  ///< bytes of each file
};

/// Appends records to a new file.
class RecordWriter {
public:
    explicit RecordWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}
    void append(const std::vector<UnitRecord>& records, bool durable);

private:
    std::filesystem::path folder_;
    std::string name_;
    Descriptor file_;
};

/// A store that hashes what is written to another one. Thread rule: as every store.
class HashingStore;

/// The files of a unit as they are. With `written` the hashes of their content come from there, and with `read` from
/// the files; else `content` is 0. Times and the unit's number are left out.
[[nodiscard]] UnitRecord unit_files(const Array& array, const Region& region, HashingStore* written, bool read);

/// The array that a job is making, as far as it is written; it is not opened by its metadata. `written`, if not null,
/// receives the store through which it writes.
[[nodiscard]] Array unfinished_array(const Job& job, const JobArray& array, const StoreOptions& options,
                                     std::shared_ptr<HashingStore>* written);
/// Where the array will lie.
[[nodiscard]] std::filesystem::path place_of_array(const Job& job, const JobArray& array);
/// Throws invalid_argument if the folder of an array does not hold what the job is making.
void require_own_target(const Job& job, const JobArray& array);
/// Whether the array is published: in its place, or beside an array that it is about to replace.
[[nodiscard]] bool is_published(const Job& job, const JobArray& array);

}  // namespace tessera
