#include <tessera/node_facts.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/array_plan.h>
#include <tessera/element.h>
#include <tessera/file_system.h>
#include <tessera/json.h>
#include <tessera/known_statistics.h>
#include <tessera/packing.h>
#include <tessera/place.h>

#include "array_access.h"
#include "array_state.h"
#include "group_access.h"
#include "stored_chunks.h"

namespace tessera {

namespace {

/// The fill; null where it is undefined or unusable.
Value fill_value(const ArrayMetadata& metadata) {
    const FillValue& fill = metadata.fill;
    if (!fill.error.empty() || !fill.bytes) return nullptr;
    const VariableSlot slot{reinterpret_cast<const char*>(fill.bytes->data()), fill.bytes->size()};
    const bool variable = metadata.dtype.is_variable();
    return element_to_json(metadata.dtype, variable ? reinterpret_cast<const std::byte*>(&slot) : fill.bytes->data());
}

Value all_codecs(const std::vector<CodecConfig>& codecs) {
    Value list = Value::array();
    for (const CodecConfig& codec : codecs) {
        list.push_back(Value{{"name", codec.name}, {"configuration", codec.configuration}});
    }
    return list;
}

void add_stored(Value& report, const ArrayFacts& facts) {
    const StoredSize& stored = *facts.stored;
    const bool sharded = !facts.layout.shards.empty();
    const auto known = stored.known ? Value(stored.chunks) : Value();
    report.set("chunks_stored", !sharded ? known : facts.inner_stored ? Value(*facts.inner_stored) : Value());
    report.set("chunks_possible", sharded ? facts.inner_possible : stored.chunks_possible);
    if (sharded) {
        report.set("shards_stored", known);
        report.set("shards_possible", stored.chunks_possible);
    }
    report.set("stored_bytes", facts.is_exact() ? Value(stored.bytes) : Value());
    if (stored.known && !facts.is_exact()) report.set("stored_bytes_about", stored.bytes);
    report.set("ratio", facts.is_exact() ? Value(ratio(facts.logical, stored.bytes)) : Value());
    report.set("stray_files", stored.strays);
}

/// The least and the greatest element, where an index knows them.
Value range_value(const ArrayFacts& facts) {
    if (!facts.known || !facts.known->min) return nullptr;
    Value range = Value::array();
    range.push_back(facts.known->min_json);
    range.push_back(facts.known->max_json);
    return range;
}

void add_kept(Value& report, const SetAside& set_aside, const KeptForUndo& kept) {
    report.set("set_aside_files", set_aside.files);
    report.set("set_aside_bytes", set_aside.bytes);
    report.set("undo_values", kept.values);
    report.set("undo_bytes", kept.bytes);
}

/// Reads the index of each shard; but of very many, or over the network, only if all is asked for.
void count_inner(const ArrayState& state, std::int64_t most, ArrayFacts& facts) {
    const auto loaded = state.loaded();
    if (loaded->pipeline.shard() == nullptr) return;
    facts.inner_possible = unit_grid(*loaded).chunk_count();
    const bool all = most == INT64_MAX;
    if (!facts.stored->known || (!all && (state.store->is_far() || facts.stored->chunks > most))) return;
    std::vector<std::int64_t> shards;
    const auto each = [&](const Index& index, const std::string&, const auto&) {
        if (in_grid(loaded->grid, index)) shards.push_back(loaded->grid.linear(index));
    };
    for_each_stored(state, *loaded,
                    {.each = each, .in_the_way = [](const Index*, const std::string&, const std::string&) {}});
    facts.inner_stored = std::ssize(stored_units(state, *loaded, shards, {}));
}

}  // namespace

namespace {

/// What the attributes call valid, if they do; empty: they do not.
std::string valid_range_remark(const Value& attributes) {
    const Packing packing = packing_of(attributes).value_or(Packing());
    if (!packing.valid_min && !packing.valid_max) return {};
    const auto end = [](const std::optional<double>& limit) { return limit ? fmt::format("{}", *limit) : "any"; };
    return fmt::format(
        "valid_range, or valid_min and valid_max, say that stored values from {} to {} are valid. Others still count; "
        "`stats` says how many there are",
        end(packing.valid_min), end(packing.valid_max));
}

}  // namespace

ArrayFacts array_facts(const Array& array, const FactsOptions& options) {
    const ArrayState& state = *ArrayAccess::state(array);
    ArrayMetadata metadata = array.metadata();
    ArrayFacts facts{.dialect = &array.dialect(),
                     .metadata = metadata,
                     .layout = chunk_layout(metadata),
                     .attributes = Value(),
                     .logical = static_cast<std::uint64_t>(byte_count(array.shape(), array.dtype().size()))};
    facts.remarks = facts.dialect->remarks(metadata);
    if (const std::string promise = state.store->promise(); !promise.empty()) {
        facts.remarks.push_back("The server's promise to writers: " + promise + '.');
    }
    if (options.most_sizes) {
        facts.stored = array.stored_size(*options.most_sizes);
        count_inner(state, *options.most_sizes, facts);
        facts.set_aside = set_aside_in(state);
        facts.kept = kept_for_undo(state).value_or(KeptForUndo{});
        const std::int64_t missing = facts.stored->known ? facts.stored->chunks_possible - facts.stored->chunks : 0;
        if (facts.is_exact()) facts.known = known_statistics(array);
        if (auto note = undefined_chunks_note(metadata, missing)) facts.remarks.push_back(*std::move(note));
    }
    facts.attributes = array.attributes().all();
    if (auto valid = valid_range_remark(facts.attributes); !valid.empty()) facts.remarks.push_back(std::move(valid));
    if (options.path.empty()) return facts;
    const FileSystem file_system = file_system_of(options.path);
    for (const std::string& limit : file_system.limits) {
        facts.remarks.push_back("on this file system, " + file_system.type + ", " + limit);
    }
    return facts;
}

GroupFacts group_facts(const Group& group) {
    const NodeState& state = *GroupAccess::state(group);
    GroupFacts facts{.dialect = group.dialect(), .attributes = group.attributes().all(), .consolidated = {}};
    const Hierarchy hierarchy = hierarchy_below(state);
    facts.arrays = std::ranges::count(hierarchy.nodes, NodeKind::array, &Node::kind);
    facts.too_deep = std::ranges::count(hierarchy.passed, PassedFolder::Why::too_deep, &PassedFolder::why);
    facts.links = std::ssize(hierarchy.passed) - facts.too_deep;
    facts.children = std::ssize(group.children());
    facts.consolidated = group.consolidated_state();
    const auto add = [&](const std::string& prefix) {
        facts.set_aside += set_aside_in({*state.store, prefix});
        const KeptForUndo more = kept_for_undo({*state.store, prefix}).value_or(KeptForUndo{});
        facts.kept.values += more.values;
        facts.kept.bytes += more.bytes;
    };
    add(state.prefix);
    for (const Node& node : hierarchy.nodes) add(state.key(node.path));
    require_present(state);  // otherwise some facts are about a directory that is being removed
    return facts;
}

void add_elements(Value& report, const DType& dtype, const Shape& shape) {
    report.set("dtype", dtype.to_string());
    report.set("fields", dtype.kind() == Kind::structure ? dtype.descr() : Value::array());
    report.set("shape", shape_value(shape));
}

void add_facts(Value& report, const ArrayFacts& facts) {
    const ArrayMetadata& metadata = facts.metadata;
    report.set("kind", "array");
    report.set("format", facts.dialect->name);
    add_elements(report, metadata.dtype, metadata.shape);
    report.set("chunks", shape_value(facts.layout.chunks));
    if (!facts.layout.shards.empty()) report.set("shards", shape_value(facts.layout.shards));
    if (!facts.layout.edges.empty()) {
        report.set(facts.layout.shards.empty() ? "chunk_lengths" : "shard_lengths", lengths_text(facts.layout.edges));
    }
    report.set("order", order_text(facts.layout.codecs));
    report.set("codec", codecs_text(facts.layout.codecs));
    report.set("codecs", all_codecs(metadata.codecs));
    report.set("separator", metadata.keys.separator);
    if (!metadata.dimension_names.empty()) {
        report.set("dimension_names", dimension_names_json(metadata.dimension_names));
    }
    report.set("fill_value", fill_value(metadata));
    report.set("fill_spelling", metadata.fill.spelling ? Value(metadata.fill.spelling->dump()) : Value());
    report.set("logical_bytes", facts.logical);
    if (facts.stored) {
        add_stored(report, facts);
        report.set("range", range_value(facts));
        add_kept(report, facts.set_aside, facts.kept);
    }
    report.set("attributes", facts.attributes);
    if (!metadata.unknown.as_object().empty()) report.set("unknown_members", metadata.unknown);
    Value remarks = Value::array();
    for (const std::string& remark : facts.remarks) remarks.push_back(remark);
    report.set("remarks", std::move(remarks));
}

void add_facts(Value& report, const GroupFacts& facts) {
    report.set("kind", facts.dialect != nullptr ? "group" : "directory");
    if (facts.dialect != nullptr) report.set("format", facts.dialect->name);
    report.set("attributes", facts.attributes);
    report.set("children", facts.children);
    report.set("arrays", facts.arrays);
    report.set("links", facts.links);
    report.set("too_deep", facts.too_deep);
    report.set("consolidated", state_name(facts.consolidated));
    add_kept(report, facts.set_aside, facts.kept);
}

Value shape_value(const Shape& shape) {
    Value list = Value::array();
    for (const std::int64_t length : shape) list.push_back(length);
    return list;
}

std::string codecs_text(const std::vector<CodecConfig>& codecs) {
    std::string text;
    for (const CodecConfig& codec : codecs) {
        if (codec.name == "bytes") continue;  // only the element layout, not a user's choice
        text += (text.empty() ? "" : " + ") + codec_text(codec);
    }
    return text.empty() ? "none" : text;
}

std::string order_text(const std::vector<CodecConfig>& codecs) {
    const auto found = std::ranges::find(codecs, "transpose", &CodecConfig::name);
    if (found == codecs.end()) return "C";
    const Value& order = found->configuration.at("order");
    Value reversed = Value::array();
    for (std::int64_t d = std::ssize(order.as_array()) - 1; d >= 0; --d) reversed.push_back(d);
    return order == reversed ? "F" : "transposed " + order.dump();
}

std::string_view state_name(const ConsolidatedState& state) {
    return !state.present ? "none" : state.fresh() ? "fresh" : "stale";
}

double ratio(std::uint64_t logical, std::uint64_t stored) {
    return stored == 0 ? 0.0 : static_cast<double>(logical) / static_cast<double>(stored);
}

}  // namespace tessera
