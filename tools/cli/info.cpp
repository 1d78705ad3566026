// tessera info
#include <array_facts.h>
#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/array_plan.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/copy_hierarchy.h>
#include <tessera/edit.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/file_system.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <tessera/repair.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "command.h"
#include "parity.h"
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

std::string abbreviated(std::string text, std::size_t most = 100) {
    if (text.size() <= most) return text;
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;  // not inside a character
    return text.substr(0, most) + "…";
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

/// The order of the elements in a chunk, derived from its codecs.
std::string order_text(const std::vector<CodecConfig>& codecs) {
    const auto found = std::ranges::find(codecs, "transpose", &CodecConfig::name);
    if (found == codecs.end()) return "C";
    const Value& order = found->configuration.at("order");
    Value reversed = Value::array();
    for (std::int64_t d = std::ssize(order.as_array()) - 1; d >= 0; --d) reversed.push_back(d);
    return order == reversed ? "F" : "transposed " + order.dump();
}

void add_attributes(Facts& facts, const Value& attributes) {
    facts.add("attributes", attributes.as_object().empty() ? "none" : grouped(attributes.as_object().size()));
    for (const auto& [key, value] : attributes.as_object()) facts.more(key + ": " + abbreviated(value.dump()));
}

/// Limits of the array's dialect and of its file system, and elements without a value.
std::vector<std::string> remarks_of(const std::string& path, const Array& array, const StoredSize& stored) {
    std::vector<std::string> remarks = array.dialect().remarks(array.metadata());
    if (auto note = !stored.known ? std::nullopt
                                  : undefined_chunks_note(array.metadata(), stored.chunks_possible - stored.chunks)) {
        remarks.push_back(*std::move(note));
    }
    const FileSystem file_system = file_system_of(path);
    for (const std::string& limit : file_system.limits) {
        remarks.push_back(fmt::format("on this file system, {}, {}", file_system.type, limit));
    }
    return remarks;
}

Value info_array_value(const std::string& path, const Array& array, const StoredSize& stored, std::uint64_t logical,
                       const SetAside& set_aside) {
    const ArrayMetadata metadata = array.metadata();
    const ChunkLayout layout = chunk_layout(metadata);
    Value report = Value::object();
    report.set("path", path_value(path));
    report.set("kind", "array");
    report.set("format", array.dialect().name);
    report.set("dtype", array.dtype().to_string());
    report.set("fields", serve::fields_json(array.dtype()));
    report.set("shape", shape_value(array.shape()));
    report.set("chunks", shape_value(layout.chunks));
    if (!layout.shards.empty()) report.set("shards", shape_value(layout.shards));
    report.set("order", order_text(layout.codecs));
    report.set("codec", codecs_text(layout.codecs));
    report.set("codecs", serve::codecs_json(metadata.codecs));
    report.set("separator", metadata.keys.separator);
    if (!metadata.dimension_names.empty())
        report.set("dimension_names", dimension_names_json(metadata.dimension_names));
    report.set("fill_value", serve::fill_json(metadata));
    report.set("fill_spelling", metadata.fill.spelling ? Value(metadata.fill.spelling->dump()) : Value());
    report.set("chunks_stored", stored.known ? Value(stored.chunks) : Value());
    report.set("chunks_possible", stored.chunks_possible);
    const bool exact = stored.known && stored.sized == stored.chunks;
    report.set("stored_bytes", exact ? Value(stored.bytes) : Value());
    if (stored.known && !exact) report.set("stored_bytes_about", stored.bytes);
    report.set("logical_bytes", logical);
    report.set("ratio", exact ? Value(ratio(logical, stored.bytes)) : Value());
    report.set("stray_files", stored.strays);
    report.set("set_aside_files", set_aside.files);
    report.set("set_aside_bytes", set_aside.bytes);
    report.set("attributes", array.attributes().all());
    if (!metadata.unknown.as_object().empty()) report.set("unknown_members", metadata.unknown);
    Value remarks = Value::array();
    for (const std::string& remark : remarks_of(path, array, stored)) remarks.push_back(remark);
    report.set("remarks", std::move(remarks));
    return report;
}

std::string lengths_and_bytes(const Shape& lengths, const DType& dtype) {
    return fmt::format("{} ({} each)", shape_text(lengths),
                       bytes_text(static_cast<std::uint64_t>(byte_count(lengths, dtype.size()))));
}

void add_layout(Facts& facts, const ArrayMetadata& metadata) {
    const ChunkLayout layout = chunk_layout(metadata);
    facts.add("chunks", lengths_and_bytes(layout.chunks, metadata.dtype));
    if (!layout.shards.empty()) facts.add("shards", lengths_and_bytes(layout.shards, metadata.dtype));
    facts.add("chunk keys", metadata.keys.key(Index::filled(metadata.shape.rank(), 0)));
    facts.add("order", order_text(layout.codecs));
    facts.add("codec", codecs_text(layout.codecs));
}

void add_stored(Facts& facts, const StoredSize& stored, std::uint64_t logical, bool sharded) {
    if (!stored.known) {
        facts.add(sharded ? "shards stored" : "chunks stored",
                  "not known: the server lists nothing (--exact asks for each)");
        facts.add("logical", bytes_exactly(logical));
        return;
    }
    const double percent = stored.chunks_possible == 0 ? 100.0
                                                       : 100.0 * static_cast<double>(stored.chunks) /
                                                             static_cast<double>(stored.chunks_possible);
    facts.add(sharded ? "shards stored" : "chunks stored",
              fmt::format("{} of {} ({:.3g}%)", grouped(static_cast<std::uint64_t>(stored.chunks)),
                          grouped(static_cast<std::uint64_t>(stored.chunks_possible)), percent));
    const bool exact = stored.sized == stored.chunks;
    facts.add("stored", exact ? bytes_exactly(stored.bytes)
                              : fmt::format("about {}, from {} sizes (--exact adds up all)", bytes_text(stored.bytes),
                                            grouped(static_cast<std::uint64_t>(stored.sized))));
    facts.add("logical", bytes_exactly(logical));
    facts.add("ratio", fmt::format("{}{}", exact ? "" : "about ", ratio_text(logical, stored.bytes)));
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

void add_undo(Value& report, const KeptForUndo& kept) {
    report.set("undo_values", kept.values);
    report.set("undo_bytes", kept.bytes);
}

/// Counting a million chunks takes a second, and querying their sizes takes several. Beyond this many, sizes are
/// estimated.
constexpr std::int64_t most_sizes = 50'000;

int info_array(Session& session, const Located& at, bool exact) {
    const std::string& path = at.path;
    const Place& place = *at.place;
    const Array array = at.array();
    const ArrayMetadata metadata = array.metadata();
    const StoredSize stored = exact ? array.stored_size() : array.stored_size(most_sizes);
    const auto logical = static_cast<std::uint64_t>(byte_count(array.shape(), array.dtype().size()));
    const SetAside set_aside = set_aside_in(*place.store, place.prefix);
    if (session.options().json) {
        Value report = info_array_value(path, array, stored, logical, set_aside);
        add_undo(report, kept_for_undo(*place.store, place.prefix).value_or(KeptForUndo{}));
        add_parity(report, at, session.io());
        print_json(report);
        return exit_done;
    }
    Facts facts;
    facts.add("path", path);
    facts.add("format", fmt::format("{}: {}", array.dialect().name, array.dialect().about));
    add_dtype(facts, array.dtype());
    add_shape(facts, array.shape());
    if (!metadata.dimension_names.empty())
        facts.add("dimensions", dimension_names_json(metadata.dimension_names).dump());
    add_layout(facts, metadata);
    facts.add("fill value", fill_text(metadata));
    add_stored(facts, stored, logical, !array.shards().empty());
    if (!metadata.unknown.as_object().empty()) facts.add("unknown members", abbreviated(metadata.unknown.dump()));
    add_attributes(facts, array.attributes().all());
    if (stored.strays > 0) {
        facts.add("stray files", fmt::format("{} beside the chunks (locks, leftovers): not part of the array",
                                             grouped(static_cast<std::uint64_t>(stored.strays))));
    }
    add_set_aside(facts, path, set_aside);
    add_undo(facts, fmt::format("`tessera undo {}`", path),
             kept_for_undo(*place.store, place.prefix).value_or(KeptForUndo{}));
    add_parity(facts, at, session.io());
    for (const std::string& remark : remarks_of(path, array, stored)) facts.add("remark", remark);
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
    const Place& place = *at.place;
    const Value attributes = group.attributes().all();
    const Hierarchy hierarchy = hierarchy_below(*place.store, place.prefix);
    const auto arrays = std::ranges::count(hierarchy.nodes, NodeKind::array, &tessera::Node::kind);
    const auto too_deep = std::ranges::count(hierarchy.passed, PassedFolder::Why::too_deep, &PassedFolder::why);
    const std::int64_t links = std::ssize(hierarchy.passed) - too_deep;
    const int exit = too_deep > 0 ? exit_differences : exit_done;
    const std::size_t children = group.children().size();
    const ConsolidatedState consolidated = group.consolidated_state();
    const bool zip = is_local(path) && !at.is_directory();
    SetAside set_aside = set_aside_in(*place.store, place.prefix);
    KeptForUndo kept = kept_for_undo(*place.store, place.prefix).value_or(KeptForUndo{});
    for (const tessera::Node& node : hierarchy.nodes) {
        const std::string prefix = join_key(place.prefix, node.path);
        set_aside += set_aside_in(*place.store, prefix);
        const KeptForUndo more = kept_for_undo(*place.store, prefix).value_or(KeptForUndo{});
        kept.values += more.values;
        kept.bytes += more.bytes;
    }
    require_present(place);  // otherwise some facts are about a directory that is being removed
    if (session.options().json) {
        Value report = Value::object();
        report.set("path", path_value(path));
        report.set("kind", group.dialect() != nullptr ? "group" : "directory");
        const std::string_view folder = zip ? "zip" : "directory";
        report.set("store", is_local(path) ? folder : store_kind_of(path).scheme);
        if (group.dialect() != nullptr) report.set("format", group.dialect()->name);
        report.set("attributes", attributes);
        report.set("children", children);
        report.set("arrays", arrays);
        report.set("links", links);
        report.set("too_deep", too_deep);
        report.set("consolidated", state_name(consolidated));
        report.set("set_aside_files", set_aside.files);
        report.set("set_aside_bytes", set_aside.bytes);
        add_undo(report, kept);
        add_parity(report, at, session.io());
        print_json(report);
        return exit;
    }
    Facts facts;
    facts.add("path", path);
    if (group.dialect() != nullptr) {
        facts.add("format", fmt::format("{} group: {}", group.dialect()->name, group.dialect()->about));
    } else {
        facts.add("what", fmt::format("a plain {} that holds {}", zip ? "zip or folder in one" : "directory",
                                      count_text(arrays, "array")));
    }
    facts.add("holds", fmt::format("{} directly, {} in all", count_text(static_cast<std::int64_t>(children), "node"),
                                   count_text(arrays, "array")));
    if (links > 0) facts.add("links", fmt::format("{} not gone into", count_text(links, "link")));
    if (too_deep > 0) {
        facts.add("too deep", fmt::format("{} deeper than {} levels: not looked at", count_text(too_deep, "folder"),
                                          deepest_folder));
    }
    if (group.dialect() != nullptr) {
        facts.add("consolidated", consolidated_text(consolidated));
        add_attributes(facts, attributes);
    }
    add_set_aside(facts, path, set_aside);
    add_undo(facts, "of each array or group `tessera undo`", kept);
    add_parity(facts, at, session.io());
    facts.add("to do", fmt::format("`tessera tree {}` lists them", path));
    facts.print();
    return exit;
}

int info_unfinished(Session& session, const std::string& path) {
    constexpr const char* advice =
        "repeat the command that made it with --resume to continue, or with --overwrite to start again; or delete the "
        "directory";
    if (session.options().json) {
        Value report = Value::object();
        report.set("path", path_value(path));
        report.set("kind", "unfinished");
        report.set("advice", advice);
        print_json(report);
    } else {
        Facts facts;
        facts.add("path", path);
        facts.add("what", "an unfinished array: the program that was making it ended too early");
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

int info_file(Session& session, const Located& at, bool reverse_dims) {
    const std::string& name = at.path;
    const ArrayPath& path = at.file;
    const ArrayFileFormat& format = *at.format;
    const std::vector<std::string> members = path.member ? std::vector<std::string>{} : array_members(format, path);
    const Value header = format.describe(path);
    // A file of a format for several arrays has a header even if it contains none.
    const bool several = !path.member && format.holds_several();
    const std::unique_ptr<ArraySource> source =
        members.empty() && !several ? format.open(path, {.reverse_dims = reverse_dims}) : nullptr;

    if (session.options().json) {
        Value report = Value::object();
        report.set("path", path_value(name));
        report.set("kind", "file");
        report.set("format", format.name);
        report.set("file_bytes", at.facts->size);
        if (source) {
            report.set("dtype", source->info().dtype.to_string());
            report.set("fields", serve::fields_json(source->info().dtype));
            report.set("shape", shape_value(source->info().shape));
        }
        report.set("header", header);
        if (!path.member) add_parity(report, at, session.io());
        print_json(report);
        return exit_done;
    }

    Facts facts;
    facts.add("path", name);
    facts.add("format", fmt::format("{}: {}", format.name, format.about));
    if (source) {
        const ArrayInfo& info = source->info();
        add_dtype(facts, info.dtype);
        add_shape(facts, info.shape);
        facts.add("order", info.order == Order::C ? "C" : "F");
        facts.add("logical", bytes_exactly(static_cast<std::uint64_t>(byte_count(info.shape, info.dtype.size()))));
    }
    facts.add("file", bytes_exactly(at.facts->size));
    for (const auto& [key, value] : header.as_object()) {
        if (key == "format" || key == "dtype" || key == "shape" || key == "order" || key == "members") continue;
        facts.add(key, value.is_string() ? value.as_string() : abbreviated(value.dump()));
    }
    if (!source) facts.add("members", grouped(members.size()));
    if (!path.member) add_parity(facts, at, session.io());
    facts.print();
    if (members.empty()) return exit_done;
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
        throw absence(*at.place->store, at.place->prefix, "array or group");
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
    auto path = std::make_shared<std::string>();
    auto reverse_dims = std::make_shared<bool>(false);
    auto exact = std::make_shared<bool>(false);
    app.add_option("PATH", *path,
                   "an array, a group, a zip, an array file, a member of one (file.npz::name), or a directory")
        ->required()
        ->option_text(" ");
    app.add_flag("--reverse-dims", *reverse_dims, "reverse the dimensions of a .ra");
    app.add_flag("--exact", *exact,
                 "query the size of every chunk; by default, beyond 50,000 chunks, only of a sample");
    return [path, reverse_dims, exact](Session& session) {
        return at_located(*path, [&](const Located& at) { return info(session, at, *reverse_dims, *exact); });
    };
}

}  // namespace tessera::cli
