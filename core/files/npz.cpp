#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/npy.h>
#include <tessera/npz.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <array>
#include <map>

#include "array_file_row.h"

namespace tessera {

std::vector<std::string> npz_members(const ZipReader& zip) {
    std::vector<std::string> names;
    for (const ZipMember& m : zip.members()) {
        if (m.name.ends_with(".npy")) names.push_back(m.name.substr(0, m.name.size() - 4));
    }
    return names;
}

namespace {

std::unique_ptr<ArraySource> open_member(const ZipReader& zip, const std::filesystem::path& path,
                                         std::string_view member) {
    for (const std::string& name : {fmt::format("{}.npy", member), std::string(member)}) {
        for (const ZipMember& m : zip.members()) {
            if (m.name == name) return open_npy(zip.open(name));
        }
    }
    throw not_found("{} has no array '{}'; it has: {}", path.string(), member, fmt::join(npz_members(zip), ", "));
}

/// A file here by its name, any other as it was opened. A zip of chunks that lies elsewhere comes here, too, because it
/// begins as every zip does.
ZipReader zip_of(const ArrayPath& path) {
    if (!path.is_elsewhere()) return ZipReader(path.path);
    ZipReader zip(path.opened);
    const auto is_document = [](const ZipMember& m) {
        const std::string_view name = std::string_view(m.name).substr(m.name.rfind('/') + 1);
        return name != v1_metadata_name && std::ranges::count(metadata_names, name) > 0;
    };
    if (npz_members(zip).empty() && std::ranges::any_of(zip.members(), is_document)) {
        throw unsupported("{}: a zip of chunks is read where it lies on this machine; fetch it first",
                          path.path.string());
    }
    return zip;
}

}  // namespace

std::unique_ptr<ArraySource> open_npz_member(const std::filesystem::path& path, std::string_view member) {
    return open_member(ZipReader(path), path, member);
}

// ---- as a format of array files

namespace {

/// A new archive with one array: both are finished together.
class NpzSink final : public ArraySink {
public:
    NpzSink(const ArrayPath& path, const DType& dtype, const Shape& shape, const ArrayFileOptions& options)
        : zip_(path.path, options.durable),
          array_(create_npy(zip_.add(path.member.value_or("arr_0") + ".npy", options.deflate_level), dtype, shape,
                            options.order)) {}
    ArrayInfo info() const override { return array_->info(); }
    const std::string& name() const override { return array_->name(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        array_->write(region, in, io);
    }
    void finish() override {
        array_->finish();
        zip_.finish();
    }

private:
    ZipWriter zip_;
    std::unique_ptr<ArraySink> array_;
};

bool npz_recognise(ByteSpan first) {
    return starts_with(first, "PK\x03\x04") || starts_with(first, "PK\x05\x06");  // the second: no member at all
}

std::vector<std::string> npz_list(const ArrayPath& path) {
    return npz_members(zip_of(path));
}

std::unique_ptr<ArraySource> npz_open(const ArrayPath& path, const ArrayFileOptions&) {
    const ZipReader zip = zip_of(path);
    const std::string member = chosen_member(path, path.member ? std::vector<std::string>{} : npz_members(zip));
    return open_member(zip, path.path, member);
}

std::unique_ptr<ArraySink> npz_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                      const ArrayFileOptions& options) {
    require_wanted_strings(dtype, options);
    return std::make_unique<NpzSink>(path, dtype, shape, options);
}

/// Describes all members, or the named one; for a member that cannot be read, the error.
Value npz_describe(const ArrayPath& path) {
    const ZipReader zip = zip_of(path);
    constexpr std::uint64_t facts_memory = 1600;  // of a member
    if (!path.member) require_memory(facts_memory * zip.members().size());
    Value members = Value::array();
    for (const ZipMember& m : zip.members()) {
        if (path.member && m.name != *path.member && m.name != *path.member + ".npy") continue;
        Value facts = Value::object();
        facts.set("name", m.name);
        facts.set("method", m.stored ? "stored" : "deflate");
        facts.set("size", m.size);
        facts.set("compressed_size", m.compressed_size);
        if (m.name.ends_with(".npy")) {
            try {
                facts.set("npy", npy_facts(*zip.open(m.name)));
            } catch (const Error& e) {
                facts.set("error", e.what());
            }
        }
        members.push_back(std::move(facts));
    }
    Value facts = Value::object();
    facts.set("format", "npz");
    facts.set("members", std::move(members));
    return facts;
}

/// Checks every member's checksum, and the elements of members that are arrays.
void npz_check(const ArrayPath& path, ArrayFileChecker& checker) {
    const ZipReader zip = zip_of(path);
    std::map<std::string_view, std::size_t> last;  // if members share a name, the last one counts
    for (std::size_t i = 0; i < zip.members().size(); ++i) last[zip.members()[i].name] = i;
    for (std::size_t i = 0; i < zip.members().size(); ++i) {
        const ZipMember& member = zip.members()[i];
        if (last.at(member.name) != i) {
            checker.leftover(member.name, "a later member has the same name: this one is never read");
        }
        const bool whole = checker.attempt(member.name, [&] { checker.read_bytes(*zip.open(i)); });
        constexpr std::string_view extension = ".npy";
        if (!member.name.ends_with(extension)) {
            checker.note(member.name, "a member that is no array");
        } else if (whole && last.at(member.name) == i) {
            checker.read_array(member.name.substr(0, member.name.size() - extension.size()));
        }
    }
}

void npz_bundle(const std::filesystem::path& path, const ArrayBundle& bundle, const ArrayFileOptions& options,
                const IoOptions& io) {
    ZipWriter zip(path, options.durable);
    for (const std::string& name : bundle.names) {
        const std::unique_ptr<ArraySource> stored = bundle.open(name);
        const auto converted = npy_convert(*stored, options, io);
        const ArraySource& source = converted ? *converted : *stored;
        const ArrayInfo info = source.info();
        const auto sink = create_npy(zip.add(name + ".npy", options.deflate_level), info.dtype, info.shape,
                                     bundle.order.value_or(info.order));
        bundle.copy(source, *sink);
        bundle.made(name, info);
    }
    zip.finish();
}

}  // namespace

extern constinit const ArrayFileFormat npz_format{
    .name = "npz",
    .extension = ".npz",
    .about = "NumPy zip of named arrays, stored or deflated",
    .deflates = true,
    .ranged = true,
    .recognise = npz_recognise,
    .members = npz_list,
    .open = npz_open,
    .create = npz_create,
    .convert = npy_convert,
    .describe = npz_describe,
    .check = npz_check,
    .bundle = npz_bundle,
};

}  // namespace tessera
