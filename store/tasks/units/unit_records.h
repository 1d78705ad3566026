// Which units of a job are done, in files of one writer each, and what they wrote. Private to the store module.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>
#include <tessera/byte_io.h>
#include <tessera/descriptor.h>
#include <tessera/job.h>
#include <tessera/store_kind.h>

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
    std::uint64_t line = 0;  ///< a hash of its line, once it is read
    bool withdrawn = false;  ///< the files were others when a finish looked: only their content counts
};

/// Below an unfinished array: records, and in `claims` leases.
inline constexpr std::string_view units_key = ".tessera/units";

/// 128 random bits, as hexadecimal digits.
[[nodiscard]] std::string new_id();
/// Where an array of a job is written.
[[nodiscard]] Place built_place(const JobArray& array, const StoreOptions& options);
/// Where the records of a job lie: below its array that is published last.
[[nodiscard]] Place records_place(const Job& job, const StoreOptions& options);
/// The folder of a place; nullopt if it is not one of this machine.
[[nodiscard]] std::optional<std::filesystem::path> folder_of(const Place& place);

/// Removes temporary files in a folder whose writers have ended. `Walk`: a directory iterator of the standard library.
template <class Walk>
void remove_temporaries(const std::filesystem::path& folder) {
    std::error_code error;
    for (Walk entry(folder, error); !error && entry != Walk(); entry.increment(error)) {
        std::error_code ignored;
        if (temporary_writer_has_ended(entry->path().filename().string()) && entry->is_regular_file(ignored)) {
            std::filesystem::remove(entry->path(), ignored);
        }
    }
}

/// Throws invalid_argument for a folder of records, or one above it in the target, that is a link: nothing is written
/// or deleted behind it.
void require_no_link(const Job& job);

/// Reads records as they are appended. Lines that a crash cut are ignored.
class RecordReader {
public:
    explicit RecordReader(Place place) : place_(std::move(place)) {}
    /// Calls each(record) for those that were written since the last call; before that, lost(unit) for each of which a
    /// record was withdrawn since then.
    void read(const std::function<void(const UnitRecord&)>& each, const std::function<void(std::int64_t)>& lost = {});

private:
    using EachLine = std::function<void(std::string_view line)>;
    void read_lines(std::string_view extension, const EachLine& each);
    void read_folder(const std::filesystem::path& folder, std::string_view extension, const EachLine& each);

    Place place_;
    std::map<std::string, std::uint64_t, std::less<>> read_;  ///< bytes of each file or object
    std::vector<std::uint64_t> withdrawn_;                    ///< lines, sorted
};

/// Appends records to a new file. In an object store, where nothing can be appended, an object is replaced by a longer
/// one, and followed by another one before it gets long.
class RecordWriter {
public:
    explicit RecordWriter(Place place) : place_(std::move(place)) {}
    void append(const std::vector<UnitRecord>& records, bool durable);
    /// Withdraws records that were read: they do not say any more that their units are done.
    void withdraw(const std::vector<UnitRecord>& records, bool durable);

private:
    void append(std::string_view text, std::string_view extension, bool durable);
    void append_to_file(const std::filesystem::path& folder, std::string_view extension, std::string_view text,
                        bool durable);

    Place place_;
    std::string name_;
    std::string text_;  ///< of an object
    Descriptor file_;
};

/// What lies below a prefix of a store far away, listed once: by a hash of each key, 24 bytes each.
class ListedValues {
public:
    explicit ListedValues(const PlaceView& place);
    [[nodiscard]] std::optional<ValueStamp> find(std::string_view key) const;
    /// Their number, and a hash of their names, sizes and versions.
    [[nodiscard]] std::string summary() const;

private:
    struct Entry {
        std::uint64_t key = 0;
        std::uint64_t size = 0;
        std::uint64_t id = 0;
    };
    std::vector<Entry> entries_;  ///< sorted by key
};

/// A store that hashes what is written to another one. Thread rule: as every store.
class HashingStore;

/// The files of a unit as they are. With `written` the hashes of their content come from there, and with `read` from
/// the files; else `content` is 0. Times and the unit's number are left out. `listed`, if not null, knows what is
/// there.
[[nodiscard]] UnitRecord unit_files(const Array& array, const Region& region, HashingStore* written, bool read,
                                    const ListedValues* listed = nullptr);

/// The array that a job is making, as far as it is written, to be read; it is not opened by its metadata.
[[nodiscard]] Array unfinished_array(const JobArray& array);
/// The same to be written, through `store`, which calls look() before each change. Once the job is finished, nothing is
/// written any more in a folder.
struct WrittenArray {
    std::shared_ptr<HashingStore> store;
    Array array;
};
[[nodiscard]] WrittenArray written_array(const Job& job, const JobArray& array, const StoreOptions& options,
                                         std::function<void()> look);
/// Where the array will lie.
[[nodiscard]] std::filesystem::path place_of_array(const Job& job, const JobArray& array);
/// Throws invalid_argument if the folder of an array does not hold what the job is making.
void require_own_target(const Job& job, const JobArray& array);
/// Whether the array is published: in its place, or beside an array that it is about to replace.
[[nodiscard]] bool is_published(const Job& job, const JobArray& array);

}  // namespace tessera
