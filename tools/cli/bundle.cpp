#include "bundle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <memory>
#include <optional>

#include "options.h"
#include "report.h"
#include "transfer.h"

namespace tessera::cli {

namespace {

Made made_in(const TransferOptions& o, const std::string& name, const ArrayInfo& info) {
    return {fmt::format("{}::{}", o.destination, name), info.dtype, info.shape, {}, 0, {}};
}

/// ".npz or .mldf": of the files that hold several arrays.
std::string extensions_of_bundles() {
    std::vector<std::string_view> names;
    for (const ArrayFileFormat& format : array_file_formats()) {
        if (format.holds_several()) names.push_back(format.extension);
    }
    return fmt::format("{}", fmt::join(names, " or "));
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
    const ArrayFileFormat* format = named_format(o.destination);
    if (path.member || format == nullptr || !format->holds_several()) {
        throw invalid_argument(
            fmt::format("{} holds {}, and {} takes one: name one of them "
                        "(`tessera tree {}` lists them), or a file that ends in {}",
                        o.source, count_text(static_cast<std::int64_t>(names.size()), "array"), o.destination, o.source,
                        extensions_of_bundles()));
    }
    if (o.selection) {
        throw invalid_argument(fmt::format("--sel: {} holds {} arrays; export one of them", o.source, names.size()));
    }
    const ArrayFileOptions options{.deflate_level = o.deflate ? parse_number("--deflate", *o.deflate, 0, 9) : 0,
                                   .durable = session.options().durability != Durability::none,
                                   .object_strings = o.object_strings};
    std::vector<Made> made;
    const ArrayBundle bundle{
        .names = names,
        .open = [&](const std::string& name) { return open_transferred(o, part_path(o, name)); },
        .copy = [&](const ArraySource& from,
                    ArraySink& to) { copy_array(from, to, {.io = session.io(), .selection = {}}); },
        .made = [&](const std::string& name, const ArrayInfo& info) { made.push_back(made_in(o, name, info)); },
        .order = o.order ? std::optional(parse_order("--order", *o.order)) : std::nullopt,
    };
    format->bundle(path.path, bundle, options, session.io());
    return made;
}

}  // namespace tessera::cli
