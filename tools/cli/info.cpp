// tessera info
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/address.h>
#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/edit.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/group.h>
#include <tessera/node_facts.h>
#include <tessera/place.h>
#include <tessera/verify.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "command.h"
#include "parity.h"
#include "paths.h"
#include "report.h"
#include "tree.h"

namespace tessera::cli {

namespace {

/// The fill as text. For variable-length kinds, `bytes` are the content, not a slot.
std::string fill_bytes_text(const DType& dtype, const ElementBytes& bytes) {
    if (dtype.is_variable()) {
        return Value(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())).dump();
    }
    const Value value = element_to_value(dtype, bytes.data());
    return value.is_string() ? value.dump() : element_to_text(dtype, bytes.data());
}

std::string fill_text(const ArrayMetadata& metadata) {
    const FillValue& fill = metadata.fill;
    if (!fill.error.empty()) return fmt::format("unusable: {}", fill.error);
    if (!fill.bytes) return "null (undefined; reads as zeros)";
    const std::string value = fill_bytes_text(metadata.dtype, *fill.bytes);
    if (fill.spelling) {
        const std::string spelt = fill.spelling->dump();
        if (spelt != value && spelt + ".0" != value) return fmt::format("{} (spelt {})", value, spelt);
    }
    return value;
}

void add_dtype(Facts& facts, const DType& dtype) {
    if (dtype.kind() != Kind::structure) {
        facts.add("dtype", fmt::format("{} ({} each)", dtype.to_string(), count_text(dtype.size(), "byte")));
        return;
    }
    facts.add("dtype", fmt::format("structure of {}, {} each", count_text(std::ssize(dtype.fields()), "field"),
                                   count_text(dtype.size(), "byte")));
    for (const Field& field : dtype.fields()) {
        facts.more(fmt::format("{}: {}{}{}", field.name, field.dtype.to_string(),
                               field.shape.empty() ? "" : " " + shape_text(field.shape),
                               field.unnamed ? " (padding, nameless in the metadata)" : ""));
    }
}

void add_shape(Facts& facts, const Shape& shape) {
    facts.add("shape", fmt::format("{} ({})", shape_text(shape), count_text(element_count(shape), "element")));
}

/// Adds a line about where the elements lie, if the attributes say that.
void add_georeference(Facts& facts, const Value& attributes) {
    const auto reference = geo_reference_in(attributes);
    if (!reference) return;
    std::vector<std::string> parts;
    if (const std::string crs = reference->crs_name(); !crs.empty()) parts.push_back(abbreviated(crs));
    if (const auto bounds = reference->bounds()) {
        const auto [left, bottom, right, top] = *bounds;
        parts.push_back(fmt::format("x {} to {}, y {} to {}", left, right, bottom, top));
    }
    if (reference->transform) {
        const auto [a, b, c, d, e, f] = *reference->transform;
        parts.push_back(fmt::format("{} × {} each{}{}", std::hypot(a, d), std::hypot(b, e),
                                    b != 0 || d != 0 ? ", turned" : "", reference->nodes ? ", at their centres" : ""));
    }
    facts.add("georeference", fmt::format("{}", fmt::join(parts, "; ")));
}

void add_attributes(Facts& facts, const Value& attributes) {
    add_georeference(facts, attributes);
    facts.add("attributes", attributes.as_object().empty() ? "none" : grouped(attributes.as_object().size()));
    for (const auto& [key, value] : attributes.as_object()) facts.more(key + ": " + abbreviated(value.dump()));
}

std::string lengths_and_bytes(const Shape& lengths, const DType& dtype) {
    return fmt::format("{} ({} each)", shape_text(lengths),
                       bytes_text(static_cast<std::uint64_t>(byte_count(lengths, dtype.size()))));
}

void add_layout(Facts& facts, const ArrayFacts& array) {
    const ChunkLayout& layout = array.layout;
    const bool sharded = !layout.shards.empty();
    const auto different = [&](const Shape& longest) {
        return fmt::format("of different lengths, {}; at most {}", abbreviated(lengths_text(layout.edges)),
                           lengths_and_bytes(longest, array.metadata.dtype));
    };
    const auto lengths = [&](const Shape& shape, bool differ) {
        return differ ? different(shape) : lengths_and_bytes(shape, array.metadata.dtype);
    };
    facts.add("chunks", lengths(layout.chunks, !layout.edges.empty() && !sharded));
    if (sharded) facts.add("shards", lengths(layout.shards, !layout.edges.empty()));
    facts.add("chunk keys", array.metadata.keys.key(Index::filled(array.metadata.shape.rank(), 0)));
    facts.add("order", order_text(layout.codecs));
    facts.add("codec", codecs_text(layout.codecs));
}

void add_stored(Facts& facts, const ArrayFacts& array) {
    const StoredSize& stored = *array.stored;
    if (!stored.known) {
        facts.add(array.layout.shards.empty() ? "chunks stored" : "shards stored",
                  "not known: the server lists nothing (--exact asks for each)");
        facts.add("logical", bytes_exactly(array.logical));
        return;
    }
    const auto count = [&](const char* what, std::int64_t there, std::int64_t possible) {
        const double percent =
            possible == 0 ? 100.0 : 100.0 * static_cast<double>(there) / static_cast<double>(possible);
        facts.add(what, fmt::format("{} of {} ({:.3g}%)", grouped(static_cast<std::uint64_t>(there)),
                                    grouped(static_cast<std::uint64_t>(possible)), percent));
    };
    const bool sharded = !array.layout.shards.empty();
    if (array.inner_stored) count("chunks stored", *array.inner_stored, array.inner_possible);
    count(sharded ? "shards stored" : "chunks stored", stored.chunks, stored.chunks_possible);
    const bool exact = array.is_exact();
    facts.add("stored", exact ? bytes_exactly(stored.bytes)
                              : fmt::format("about {}, from {} sizes (--exact adds up all)", bytes_text(stored.bytes),
                                            grouped(static_cast<std::uint64_t>(stored.sized))));
    facts.add("logical", bytes_exactly(array.logical));
    facts.add("ratio", fmt::format("{}{}", exact ? "" : "about ", ratio_text(array.logical, stored.bytes)));
}

/// Adds a line about files that repair has set aside, if any.
void add_set_aside(Facts& facts, const std::string& path, const SetAside& set_aside) {
    if (set_aside.files == 0) return;
    facts.add("set aside", fmt::format("{} in .tessera/damaged, {}; `tessera repair {} --drop-damaged` deletes them",
                                       count_text(set_aside.files, "file"), bytes_text(set_aside.bytes), path));
}

/// Adds a line about what is kept for `undo`, if anything.
void add_undo(Facts& facts, const std::string& how, const KeptForUndo& kept) {
    if (kept.bytes == 0) return;
    facts.add("kept for undo", fmt::format("{} in .tessera/undo, {}; {} takes the last change back",
                                           count_text(kept.values, "old value"), bytes_text(kept.bytes), how));
}

/// How other programs name it.
void add_address(Value& report, const Located& at) {
    if (at.dialect == nullptr) return;
    const auto address = address_of(at.file.path, *at.place, *at.dialect, at.is_directory());
    if (address) report.set("address", path_value(*address));
}

/// What kind of store a path leads to that does not say so.
void add_kind(Facts& facts, const Located& at) {
    const StoreKind& kind = store_kind_of(at.place->store->name());
    if (is_local(at.path) && !kind.scheme.empty()) facts.add("stored as", std::string(kind.about));
}

int info_array(Session& session, const Located& at, bool exact) {
    const std::string& path = at.path;
    FactsOptions options{.path = path};
    if (exact) options.most_sizes = std::numeric_limits<std::int64_t>::max();
    const ArrayFacts array = array_facts(at.array(), options);
    if (session.options().json) {
        Value report{{"path", path_value(path)}};
        add_address(report, at);
        add_facts(report, array);
        add_parity(report, at, session.io());
        print_json(report);
        return exit_done;
    }
    const ArrayMetadata& metadata = array.metadata;
    Facts facts;
    facts.add("path", path);
    facts.add("format", fmt::format("{}: {}", array.dialect->name, array.dialect->about));
    add_kind(facts, at);
    add_dtype(facts, metadata.dtype);
    add_shape(facts, metadata.shape);
    if (!metadata.dimension_names.empty())
        facts.add("dimensions", dimension_names_json(metadata.dimension_names).dump());
    add_layout(facts, array);
    facts.add("fill value", fill_text(metadata));
    add_stored(facts, array);
    if (array.known && array.known->min) {
        facts.add("range", fmt::format("{} to {}, by the index of chunks", *array.known->min, *array.known->max));
    }
    if (!metadata.unknown.as_object().empty()) facts.add("unknown members", abbreviated(metadata.unknown.dump()));
    add_attributes(facts, array.attributes);
    if (array.stored->strays > 0) {
        facts.add("stray files", fmt::format("{} beside the chunks (locks, leftovers): not part of the array",
                                             grouped(static_cast<std::uint64_t>(array.stored->strays))));
    }
    add_set_aside(facts, path, array.set_aside);
    add_undo(facts, fmt::format("`tessera undo {}`", path), array.kept);
    add_parity(facts, at, session.io());
    for (const std::string& remark : array.remarks) facts.add("remark", remark);
    facts.print();
    return exit_done;
}

std::string consolidated_text(const ConsolidatedState& state) {
    if (!state.present) return "none";
    if (state.fresh()) return "as the nodes have them";
    return fmt::format("stale for {}; `tessera consolidate` renews them", count_text(std::ssize(state.stale), "node"));
}

/// Prints a group, which may be a plain folder or zip with nodes.
int info_group(Session& session, const Located& at, const Group& group) {
    const std::string& path = at.path;
    const tessera::GroupFacts found = group_facts(group);
    const int exit = found.too_deep > 0 ? exit_differences : exit_done;
    const bool zip = is_local(path) && !at.is_directory();
    if (session.options().json) {
        Value report{{"path", path_value(path)}};
        const std::string_view folder = zip ? "zip" : "directory";
        const std::string_view scheme = store_kind_of(at.place->store->name()).scheme;
        report.set("store", scheme.empty() ? folder : scheme);
        add_address(report, at);
        add_facts(report, found);
        add_parity(report, at, session.io());
        print_json(report);
        return exit;
    }
    Facts facts;
    facts.add("path", path);
    if (found.dialect != nullptr) {
        facts.add("format", fmt::format("{} group: {}", found.dialect->name, found.dialect->about));
        add_kind(facts, at);
    } else {
        facts.add("what", fmt::format("a plain {} that holds {}", zip ? "zip or folder in one" : "directory",
                                      count_text(found.arrays, "array")));
    }
    facts.add("holds", fmt::format("{} directly, {} in all", count_text(found.children, "node"),
                                   count_text(found.arrays, "array")));
    if (found.links > 0) facts.add("links", fmt::format("{} not gone into", count_text(found.links, "link")));
    if (found.too_deep > 0) {
        facts.add("too deep", fmt::format("{} deeper than {} levels: not looked at",
                                          count_text(found.too_deep, "folder"), deepest_folder));
    }
    if (found.dialect != nullptr) {
        facts.add("consolidated", consolidated_text(found.consolidated));
        add_attributes(facts, found.attributes);
    }
    add_set_aside(facts, path, found.set_aside);
    add_undo(facts, "of each array or group `tessera undo`", found.kept);
    add_parity(facts, at, session.io());
    facts.add("to do", fmt::format("`tessera tree {}` lists them", path));
    facts.print();
    return exit;
}

int info_unfinished(Session& session, const std::string& path) {
    const bool removed = occupant(path) == Occupant::removed;
    const char* const advice =
        removed ? "`tessera rm` removes the rest; so does what makes an array there"
                : "repeat the command that made it with --resume to continue, or with --overwrite to start again; or "
                  "delete the directory";
    if (session.options().json) {
        Value report = Value::object();
        report.set("path", path_value(path));
        report.set("kind", removed ? "removed" : "unfinished");
        report.set("advice", advice);
        print_json(report);
    } else {
        Facts facts;
        facts.add("path", path);
        facts.add("what", removed ? "an array that was being removed: the program that did so ended too early"
                                  : "an unfinished array: the program that was making it ended too early");
        facts.add("to do", advice);
        facts.print();
    }
    return exit_differences;
}

bool any_too_deep(const TreeNode& node) {
    return (node.passed && node.passed->why == PassedFolder::Why::too_deep) ||
           std::ranges::any_of(node.children, any_too_deep);
}

int info_directory(Session& session, const Located& at) {
    const std::string& path = at.path;
    const TreeNode found = scan(at);
    const std::int64_t arrays = count_arrays(found);
    const int exit = any_too_deep(found) ? exit_differences : exit_done;
    if (session.options().json) {
        Value report = Value::object();
        report.set("path", path_value(path));
        report.set("kind", "directory");
        report.set("arrays", arrays);
        add_parity(report, at, session.io());
        print_json(report);
    } else {
        Facts facts;
        facts.add("path", path);
        facts.add("what", arrays == 0 ? "a plain directory without arrays"
                                      : fmt::format("a plain directory that holds {}", count_text(arrays, "array")));
        add_parity(facts, at, session.io());
        if (exit != exit_done) {
            facts.add("too deep", fmt::format("a folder deeper than {} levels: not looked at", deepest_folder));
        }
        if (!found.children.empty()) facts.add("to do", fmt::format("`tessera tree {}` lists what is there", path));
        facts.print();
    }
    return exit;
}

/// What is told of an array file.
struct FileFacts {
    const Located& at;
    std::vector<std::string> members;     ///< none of a path to one of them
    Value header;                         ///< as the format describes it
    std::unique_ptr<ArraySource> source;  ///< of one array; null for several
    std::uint64_t bytes = 0;

    FileFacts(const Located& where, bool reverse_dims)
        : at(where), members(at.file.member ? std::vector<std::string>{} : array_members(*at.format, at.file)) {
        header = at.format->describe(at.file);
        if (at.file.member || at.format->is_one(members))
            source = at.format->open(at.file, {.reverse_dims = reverse_dims});
        bytes = at.facts ? at.facts->size : at.file.bytes()->size();
    }
};

Value file_value(const FileFacts& file, const IoOptions& io) {
    Value report = Value::object();
    report.set("path", path_value(file.at.path));
    report.set("kind", "file");
    report.set("format", file.at.format->name);
    report.set("file_bytes", file.bytes);
    if (file.source) add_elements(report, file.source->info().dtype, file.source->info().shape);
    report.set("header", file.header);
    if (!file.at.file.member) add_parity(report, file.at, io);
    return report;
}

void print_file(const FileFacts& file, const IoOptions& io) {
    Facts facts;
    facts.add("path", file.at.path);
    facts.add("format", fmt::format("{}: {}", file.at.format->name, file.at.format->about));
    if (file.source) {
        const ArrayInfo& info = file.source->info();
        add_dtype(facts, info.dtype);
        add_shape(facts, info.shape);
        facts.add("order", info.order == Order::C ? "C" : "F");
        facts.add("logical", bytes_exactly(static_cast<std::uint64_t>(byte_count(info.shape, info.dtype.size()))));
    }
    facts.add("file", bytes_exactly(file.bytes));
    for (const auto& [key, value] : file.header.as_object()) {
        if (key == "format" || key == "dtype" || key == "shape" || key == "order" || key == "members") continue;
        facts.add(key, value.is_string() ? value.as_string() : abbreviated(value.dump()));
    }
    if (!file.source) facts.add("members", grouped(file.members.size()));
    if (!file.at.file.member) add_parity(facts, file.at, io);
    facts.print();
}

int info_file(Session& session, const Located& at, bool reverse_dims) {
    const FileFacts file(at, reverse_dims);
    if (session.options().json) {
        print_json(file_value(file, session.io()));
        return exit_done;
    }
    print_file(file, session.io());
    if (file.members.empty()) return exit_done;
    for (const TreeNode& member : scan(at).children) {
        const std::string what = member.leaf->error.empty()
                                     ? shape_text(member.leaf->shape) + "  " + member.leaf->dtype.to_string()
                                     : member.leaf->error;
        print(printable(fmt::format("  ::{}  {}", member.name, what)) + "\n");
    }
    return exit_done;
}

int info(Session& session, const Located& at, bool reverse_dims, bool exact) {
    if (at.kind == PathKind::array) return info_array(session, at, exact);
    if (at.kind == PathKind::unfinished) return info_unfinished(session, at.path);
    if (at.place && !at.file.member) {
        if (const std::optional<Group> group = group_at(at)) return info_group(session, at, *group);
        require_present(*at.place);
        if (at.is_directory()) return info_directory(session, at);
        throw absence(*at.place, "array or group");
    }
    if (at.kind == PathKind::nothing) {
        throw not_found("{}: no such file or directory", at.file.path.string());
    }
    if (at.format != nullptr) return info_file(session, at, reverse_dims);
    if (!at.place) (void)at.file.bytes();  // throws for what is no regular file
    throw no_array_file(at.file.path);
}

}  // namespace

Run declare_info(CLI::App& app) {
    auto paths = std::make_shared<std::vector<std::string>>();
    auto reverse_dims = std::make_shared<bool>(false);
    auto exact = std::make_shared<bool>(false);
    app.add_option("PATH", *paths, "arrays, groups, zips, array files, members of one (file.npz::name), or directories")
        ->required()
        ->option_text(" ");
    app.add_flag("--reverse-dims", *reverse_dims, "reverse the dimensions of a .ra");
    app.add_flag("--exact", *exact,
                 "query the size of every chunk; by default, beyond 50,000 chunks, only of a sample");
    return [paths, reverse_dims, exact](Session& session) {
        return for_each_path(session, *paths, [&](const std::string& path) {
            if (path != paths->front() && !session.options().json) print("\n");
            return at_located(path, [&](const Located& at) { return info(session, at, *reverse_dims, *exact); });
        });
    };
}

}  // namespace tessera::cli
