// verify of a path, and of array files; files of several arrays are checked member by member.
#include <tessera/verify.h>

#include <fmt/format.h>
#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/dialect.h>
#include <tessera/error.h>
#include <tessera/locate.h>
#include <tessera/place.h>
#include <tessera/seal.h>
#include <tessera/store_kind.h>

#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "check_chunk.h"
#include "convention_tree.h"
#include "copy_bytes.h"
#include "dialects.h"
#include "directories.h"
#include "discarding_sink.h"
#include "sealed_file_store.h"
#include "store_in_file.h"
#include "verifier.h"

namespace tessera {

namespace {

/// Runs `body`; turns its error into a finding about `key`. Returns whether it succeeded.
template <class Body>
bool guarded(VerifyReport& report, const std::string& key, const Body& body) {
    try {
        body();
        return true;
    } catch (...) {
        Fault fault = current_fault();
        report.findings.push_back({.kind = fault.kind,
                                   .node = key,
                                   .key = key,
                                   .text = std::move(fault.text),
                                   .advice = std::move(fault.advice)});
        return false;
    }
}

/// The same, but only for damage: a path that cannot be read, or is of no known format, is the caller's mistake.
template <class Body>
bool guarded_damage(VerifyReport& report, const Body& body) {
    try {
        body();
        return true;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
        report.findings.push_back({.node = {}, .text = e.what()});
        return false;
    }
}

/// Reads every element of one array.
void check_array(VerifyReport& report, const ArrayPath& path, const IoOptions& io) {
    guarded(report, path.member.value_or(""), [&] {
        const std::unique_ptr<ArraySource> source = open_array_file(path);
        ++report.arrays;
        ArrayInfo info = source->info();
        info.chunks = {};
        DiscardingSink sink(std::move(info), "nowhere");
        copy_array(*source, sink, {.io = io, .skip_absent = true});
    });
}

/// Adds the format's findings to a report.
class Checker final : public ArrayFileChecker {
public:
    Checker(VerifyReport& report, ArrayPath path, const IoOptions& io)
        : report_(report), path_(std::move(path)), io_(io) {}
    bool attempt(const std::string& member, const std::function<void()>& body) override {
        return guarded(report_, member, body);
    }
    void damage(std::string text) override { report_.findings.push_back({.node = {}, .text = std::move(text)}); }
    void leftover(const std::string& member, std::string text) override {
        add(FindingKind::leftover, member, std::move(text));
    }
    void note(const std::string& member, std::string text) override { add(FindingKind::note, member, std::move(text)); }
    void read_bytes(const ByteSource& bytes) override {
        for_each_piece(bytes, [](ByteSpan) {});
    }
    void read_array(const std::string& member) override {
        check_array(report_, {path_.path, member, path_.opened}, io_);
    }
    void count_arrays(std::int64_t count) override { report_.arrays += count; }

private:
    void add(FindingKind kind, const std::string& member, std::string text) {
        report_.findings.push_back({.kind = kind, .node = {}, .key = member, .text = std::move(text)});
    }
    VerifyReport& report_;
    ArrayPath path_;
    const IoOptions& io_;
};

VerifyReport verify_file(ArrayPath path, const IoOptions& io) {
    VerifyReport report;
    path.opened = path.bytes();
    report.bytes = path.opened->size();
    const ArrayFileFormat* format = array_file_format_of(*path.opened);
    if (format == nullptr) {
        guarded_damage(report, [&] { (void)open_array_file(path); });
        return report;
    }
    guarded(report, "", [&] {
        if (path.member || format->check == nullptr) {
            check_array(report, path, io);
        } else {
            Checker checker(report, path, io);
            format->check(path, checker);
        }
    });
    return report;
}

}  // namespace

namespace {

VerifyReport verify_content(const ArrayPath& path, const VerifyOptions& options) {
    VerifyReport broken;
    std::optional<Place> place;
    const bool readable = guarded_damage(broken, [&] {
        place = probe_place(path.path, {.read_only = true});
        std::error_code ignored;
        const bool folder = place && is_local(path.path) && std::filesystem::is_directory(path.path, ignored);
        if (folder && !find_array(*place) && probe_group_dialect(*place) == nullptr) {
            place = foreign_store_in_folder(place->store, path.path, {.read_only = true});
        }
    });
    if (!readable) return broken;  // a zip that cannot be opened
    if (place) {
        VerifyReport report = verify(*place, options);
        require_present(*place);  // else the report is about a directory that is being removed
        return report;
    }
    return verify_file(path, options.io);
}

}  // namespace

VerifyReport verify_with_seal(const ArrayPath& path, const VerifyOptions& options) {
    const auto beside = options.seals ? place_beside(path.path, {.read_only = true}) : std::nullopt;
    if (!beside) return verify_content(path, options);
    const bool of_file = as_sealed_file(*beside->store)->of_file();
    if (!of_file) return Verifier(*beside, options).run();
    VerifyReport report;
    // A missing file is known from the seal alone.
    if (std::filesystem::exists(status_of(path.path))) report = verify_content(path, options);
    return Verifier(*beside, options).run_beside(std::move(report));
}

VerifyReport verify(std::string_view text, const VerifyOptions& options) {
    if (options.ome || options.geo) return verify_conventions(text, options);
    const ArrayPath path = split_array_path(text);
    if (!is_local(path.path)) {
        const Located at = locate(text);
        if (at.format != nullptr) return verify_file(at.file, options.io);
    }
    if (path.member) return verify_file(path, options.io);
    VerifyReport report = verify_with_seal(path, options);
    if (const auto beside = options.seals ? place_beside(path.path, {.read_only = true}) : std::nullopt) {
        for (Finding& finding : report.findings) {
            finding.key = as_sealed_file(*beside->store)->shown(finding.key);
        }
    }
    return report;
}

}  // namespace tessera
