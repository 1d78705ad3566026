// verify of what a path names, and of array files: those of several arrays member by member.
#include <tessera/verify.h>

#include <fmt/format.h>
#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/mldf.h>
#include <tessera/place.h>
#include <tessera/zip.h>

#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "check_chunk.h"
#include "copy_bytes.h"

namespace tessera {

namespace {

/// Takes elements and forgets them.
class NowhereSink final : public ArraySink {
public:
    explicit NowhereSink(const ArrayInfo& source) {
        info_.dtype = source.dtype;
        info_.shape = source.shape;
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    void write(const Region& /*region*/, const ArrayView& /*in*/, const IoOptions& /*io*/) override {}
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    ArrayInfo info_;
    std::string name_ = "nowhere";
};

/// Runs `body`; what it throws becomes a finding about `key`. Whether it threw nothing.
template <class Body>
bool guarded(VerifyReport& report, const std::string& key, const Body& body) {
    try {
        body();
        return true;
    } catch (...) {
        Fault fault = current_fault();
        report.findings.push_back({.kind = fault.kind, .node = key, .key = key, .text = std::move(fault.text)});
        return false;
    }
}

/// The same, but only for damage: a path that cannot be read, or is no file of ours, is the caller's mistake.
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
        NowhereSink sink(source->info());
        copy_array(*source, sink, {.io = io, .selection = std::nullopt});
    });
}

/// Every member's checksum, and of those that are arrays the elements.
void check_zip(VerifyReport& report, const std::filesystem::path& path, const IoOptions& io) {
    const ZipReader zip(path);
    std::map<std::string_view, std::size_t> last;  // of several members with one name the last counts
    for (std::size_t i = 0; i < zip.members().size(); ++i) last[zip.members()[i].name] = i;
    for (std::size_t i = 0; i < zip.members().size(); ++i) {
        const ZipMember& member = zip.members()[i];
        if (last.at(member.name) != i) {
            report.findings.push_back({.kind = FindingKind::leftover,
                                       .node = {},
                                       .key = member.name,
                                       .text = "a later member has the same name: this one is never read"});
        }
        const bool whole = guarded(report, member.name, [&] { for_each_piece(*zip.open(i), [](ByteSpan) {}); });
        constexpr std::string_view extension = ".npy";
        if (!member.name.ends_with(extension)) {
            report.findings.push_back(
                {.kind = FindingKind::note, .node = {}, .key = member.name, .text = "a member that is no array"});
        } else if (whole && last.at(member.name) == i) {
            const std::string name = member.name.substr(0, member.name.size() - extension.size());
            check_array(report, {path, name}, io);
        }
    }
}

void check_mldf(VerifyReport& report, const std::filesystem::path& path) {
    const MldfReport found = validate_mldf(path);
    for (const std::string& text : found.findings) report.findings.push_back({.node = {}, .text = text});
    if (found.finding_count > found.findings.size()) {
        report.findings.push_back(
            {.node = {}, .text = fmt::format("and {} more", found.finding_count - found.findings.size())});
    }
    if (found.findings.empty()) report.arrays = std::ssize(MldfReader(open_file(path)).arrays());
}

VerifyReport verify_file(const ArrayPath& path, const IoOptions& io) {
    VerifyReport report;
    report.bytes = open_file(path.path)->size();
    const ArrayFileFormat* format = find_array_file_format(path.path);
    if (format == nullptr) {
        guarded_damage(report, [&] { (void)open_array_file(path); });
        return report;
    }
    guarded(report, "", [&] {
        if (path.member || (format->name != "npz" && format->name != "mldf")) {
            check_array(report, path, io);
        } else if (format->name == "npz") {
            check_zip(report, path.path, io);
        } else {
            check_mldf(report, path.path);
        }
    });
    return report;
}

}  // namespace

VerifyReport verify(std::string_view text, const VerifyOptions& options) {
    const ArrayPath path = split_array_path(text);
    if (path.member) return verify_file(path, options.io);
    VerifyReport broken;
    std::optional<Place> place;
    const bool readable = guarded_damage(broken, [&] { place = probe_place(path.path, {.read_only = true}); });
    if (!readable) return broken;  // a zip that cannot be opened
    if (place) {
        VerifyReport report = verify(place->store, place->prefix, options);
        require_present(*place);  // else it is of something that is being removed
        return report;
    }
    return verify_file(path, options.io);
}

}  // namespace tessera
