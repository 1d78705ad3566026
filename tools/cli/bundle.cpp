#include "bundle.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/mldf.h>
#include <tessera/npy.h>
#include <tessera/npz.h>
#include <tessera/place.h>
#include <filesystem>
#include <memory>

#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

Made made_in(const TransferOptions& o, const std::string& name, const ArrayInfo& info) {
    return {fmt::format("{}::{}", o.destination, name), info.dtype, info.shape, {}, 0, {}};
}

std::vector<Made> write_npz(Session& session, const TransferOptions& o, const std::vector<std::string>& names) {
    const ArrayPath path = split_array_path(o.destination);
    const int level = o.deflate ? parse_number("--deflate", *o.deflate, 0, 9) : 0;
    ZipWriter zip(path.path, session.options().durability != Durability::none);
    std::vector<Made> made;
    for (const std::string& name : names) {
        const std::unique_ptr<ArraySource> stored = open_transferred(o, part_path(o, name));
        const ArrayFileOptions options{.object_strings = o.object_strings};
        const auto converted = convert_for_array_file(path, *stored, options, session.io());
        const ArraySource& source = converted ? *converted : *stored;
        const ArrayInfo info = source.info();
        const auto sink = create_npy(zip.add(name + ".npy", level), info.dtype, info.shape,
                                     o.order ? parse_order("--order", *o.order) : info.order);
        copy_array(source, *sink, {.io = session.io(), .selection = {}});
        made.push_back(made_in(o, name, info));
    }
    zip.finish();
    return made;
}

std::vector<Made> write_fields(Session& session, const TransferOptions& o, const std::vector<std::string>& names) {
    std::vector<Made> made;
    std::vector<std::unique_ptr<ArraySource>> sources;
    std::vector<MldfColumn> columns;
    for (const std::string& name : names) {
        sources.push_back(open_transferred(o, part_path(o, name)));
        made.push_back(made_in(o, name, sources.back()->info()));
        columns.push_back({.name = name, .source = sources.back().get()});
    }
    const MldfWriteOptions options{.durable = session.options().durability != Durability::none};
    write_mldf(split_array_path(o.destination).path, columns, options, session.io());
    return made;
}

}  // namespace

std::vector<std::string> arrays_below(const std::string& path, std::vector<PassedFolder>& passed) {
    std::vector<std::string> names;
    const auto place = probe_place(path, {.read_only = true});
    if (!place || probe_dialect(*place->store, place->prefix) != nullptr || occupant(path) == Occupant::unfinished) {
        return names;
    }
    Hierarchy hierarchy = hierarchy_below(*place->store, place->prefix);
    for (const Node& node : hierarchy.nodes) {
        if (node.kind == NodeKind::array) names.push_back(node.path);
    }
    passed = std::move(hierarchy.passed);
    return names;
}

std::vector<Made> write_bundle(Session& session, const TransferOptions& o, const std::vector<std::string>& names) {
    const ArrayPath path = split_array_path(o.destination);
    const fs::path extension = path.path.extension();
    if (path.member || (extension != ".npz" && extension != ".mldf")) {
        throw invalid_argument(fmt::format(
            "{} holds {}, and {} takes one: name one of them "
            "(`tessera tree {}` lists them), or a file that ends in .npz or .mldf",
            o.source, count_text(static_cast<std::int64_t>(names.size()), "array"), o.destination, o.source));
    }
    if (o.selection) {
        throw invalid_argument(fmt::format("--sel: {} holds {} arrays; export one of them", o.source, names.size()));
    }
    return extension == ".npz" ? write_npz(session, o, names) : write_fields(session, o, names);
}

}  // namespace tessera::cli
