#include "snapshot_record.h"

#include <tessera/error_text.h>
#include <tessera/value.h>

#include <filesystem>
#include <span>
#include <utility>

#include "file_list.h"
#include "keys.h"
#include "sums.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t record_limit = std::uint64_t{1} << 20;  // a dozen members
constexpr const char* own_sum = "sha256";                       ///< of all other members of a record

Value record_of(const SnapshotInfo& info) {
    Value record = Value::object();
    record.set("about", "a snapshot by tessera; a plain Zarr store");
    record.set("version", 1);
    record.set("node", info.node);
    record.set("made", info.made);
    record.set("arrays", info.arrays);
    record.set("files", info.files);
    record.set("bytes", info.bytes);
    record.set("reflinked", info.reflinked);
    record.set("linked", info.linked);
    record.set("copied", info.copied);
    if (info.sums) record.set("sums", true);
    if (!info.files_sum.empty()) record.set("files_sha256", info.files_sum);
    if (!info.sums_sum.empty()) record.set("sums_sha256", info.sums_sum);
    return record;
}

std::string sum_of_record(const Value& record) {
    const std::string text = record.dump(python_json_style);
    Hasher hasher;
    hasher.add(text.data(), text.size());
    return hex(hasher.finish());
}

/// Throws corrupt if the record is not as it was written. A version without sums wrote neither of the two.
void require_as_written(Value record) {
    const Value* const sum = record.find(own_sum);
    const std::string said = sum == nullptr ? "" : sum->as_string();
    if (sum == nullptr && record.find("files_sha256") == nullptr) return;
    record.erase(own_sum);
    if (said != sum_of_record(record)) throw corrupt("its SHA-256 is another than the one that it states");
}

}  // namespace

void save_record(const PlaceRef& place, SnapshotInfo& info, bool with_sums) {
    const auto list_sum = [&](std::string_view list) {
        const auto sum = with_sums ? sum_of(place.store, place.key(list)) : std::nullopt;
        return sum ? hex(*sum) : std::string();
    };
    info.files_sum = list_sum(snapshot_files_key);
    info.sums_sum = info.sums ? list_sum(snapshot_sums_key) : "";
    Value record = record_of(info);
    if (with_sums) record.set(own_sum, sum_of_record(record));
    const std::string text = record.dump(python_json_style) + "\n";
    place.store.put(place.key(snapshot_record_key), std::as_bytes(std::span(text)));
}

void save_sums(const PlaceRef& place, const IoOptions& io) {
    FileSorter listed(spool_folder(place.store));
    for_each_record(place, [&](const FileRecord& file, const std::optional<ValueStamp>&) {
        listed.add({.path = file.path, .size = file.size});
    });
    put_manifest(place.store, place.key(snapshot_sums_key), each_of(sums_of(place, listed.sort(), io)));
}

SnapshotInfo load_record(const ReadableStore& folder, const std::string& name) {
    const std::string key = join_key(name, snapshot_record_key);
    Buffer text;
    if (!folder.get(key, text, record_limit)) throw not_found("{}: no snapshot", name);
    try {
        const Value record = Value::parse({reinterpret_cast<const char*>(text.data()), text.size()});
        if (record.at("version").as_int64() != 1) throw unsupported("made by a newer Tessera");
        require_as_written(record);
        const auto text_of = [&](const char* member) {
            return record.find(member) == nullptr ? std::string() : record.at(member).as_string();
        };
        return {.name = name,
                .path = fs::path(folder.name()) / name,
                .node = record.at("node").as_string(),
                .made = record.at("made").as_string(),
                .arrays = record.at("arrays").as_int64(),
                .files = record.at("files").as_int64(),
                .bytes = record.at("bytes").as_uint64(),
                .reflinked = record.at("reflinked").as_int64(),
                .linked = record.at("linked").as_int64(),
                .copied = record.at("copied").as_int64(),
                .sums = record.find("sums") != nullptr && record.at("sums").as_bool(),
                .files_sum = text_of("files_sha256"),
                .sums_sum = text_of("sums_sha256")};
    } catch (const Error& e) {
        if (e.code() == ErrorCode::unsupported) throw e.within(folder.name_of(key));
        throw corrupt("{}: not the record of a snapshot: {}", folder.name_of(key), e.what());
    }
}

}  // namespace tessera
