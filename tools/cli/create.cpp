// tessera create
#include <fmt/format.h>

#include <tessera/array_plan.h>
#include <tessera/codec.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/result_options.h>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "advice.h"
#include "command.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"
#include "settings.h"
#include "transfer.h"

namespace tessera::cli {

namespace {

struct CreateOptions {
    std::string path, shape, dtype;
    std::optional<std::string> attributes;
    ResultOptions result;
};

ArrayOptions array_options(const CreateOptions& o) {
    const ResultOptions& r = o.result;
    ArrayOptions options;
    options.shape = parse_shape_option("--shape", o.shape);
    options.dtype = in_context([] { return "--dtype"; }, [&] { return DType::parse(o.dtype); });
    if (r.chunks && r.chunks->named.empty()) ChunkLengths(*r.chunks).give(options.chunks, options.edges);
    if (r.shards) ChunkLengths(*r.shards).give(options.shards, options.shard_edges);
    if (!r.fills.empty()) options.fill_value = r.fills.back();
    const std::string usual_codec = checked_setting("codec", [](const auto& s) { (void)parse_codecs(s); });
    if (r.codec || !usual_codec.empty()) options.codec = r.codec.value_or(usual_codec);
    const Dialect* above = r.format ? nullptr : format_above(o.path);
    options.format = above != nullptr ? above->name : r.format.value_or("");
    options.order = r.order.value_or(Order::C);
    options.separator = r.separator.value_or("");
    options.structures = r.structures.value_or("");
    if (r.dimensions) options.dimension_names = *r.dimensions;
    if (r.chunks && !r.chunks->named.empty()) {
        options.chunks =
            in_context([] { return "--chunks"; },
                       [&] {
                           return chunks_by_names(r.chunks->named, options.dimension_names, options.shape,
                                                  choose_chunks(options.shape, options.dtype.size()), true);
                       });
    }
    if (o.attributes) options.attributes = parse_attributes_option(*o.attributes);
    return options;
}

void say_notes(Session& session, const CreateOptions& o, const Array& array, const ArrayMetadata& planned,
               const std::optional<Note>& of_choice) {
    const auto undefined = !o.result.fills.empty() ? std::nullopt : undefined_note(array.dialect(), array.metadata());
    for (const auto& note : {of_choice, undefined}) {
        if (note) session.note(o.path + ": " + advised(note->text, note->advice));
    }
    if (uses_unknown_zstd(array.dialect(), array.metadata())) {
        session.note(
            fmt::format("{}: {} cannot read chunks compressed with zstd", o.path, array.dialect().cannot_read_zstd));
    }
    if (const auto note = large_chunk_note(planned, session.options().max_memory)) {
        session.note(o.path + ": " + advised(note->text, note->advice));
    }
}

std::uint64_t logical_bytes(const Array& array) {
    return static_cast<std::uint64_t>(byte_count(array.shape(), array.dtype().size()));
}

Value created_value(const CreateOptions& o, const Array& array, bool chosen) {
    const ChunkLayout layout = chunk_layout(array.metadata());
    Value report = Value::object();
    report.set("path", path_value(o.path));
    report.set("format", array.dialect().name);
    report.set("dtype", array.dtype().to_string());
    report.set("shape", shape_value(array.shape()));
    report.set("chunks", shape_value(array.chunks()));
    report.set("chunks_chosen", chosen);
    if (!array.shards().empty()) report.set("shards", shape_value(array.shards()));
    if (!layout.edges.empty()) {
        report.set(layout.shards.empty() ? "chunk_lengths" : "shard_lengths", lengths_text(layout.edges));
    }
    report.set("codec", codecs_text(layout.codecs));
    report.set("logical_bytes", logical_bytes(array));
    return report;
}

int create(Session& session, const CreateOptions& o) {
    if (names_array_file(o.path)) {
        throw invalid_argument("{} has the name of an array file, but create makes a directory: choose another name",
                               o.path);
    }
    require_no_other_file(o.path);
    ArrayOptions options = array_options(o);
    const FormatChoice choice =
        choose_format(options, checked_setting("format", [](const auto& s) { (void)dialect_named(s); }));
    options.format = choice.dialect->name;
    const ArrayMetadata planned =
        about_path(o.path, [&] { return metadata_of_new(options, o.result.format.has_value()); });
    const Array array =
        o.result.overwrite
            ? NewArray(o.path, options, {.overwrite = true, .store = session.store()}, "tessera create").commit()
            : Array::create(o.path, options, session.store());
    say_notes(session, o, array, planned, choice.note);
    const bool chosen = !o.result.chunks && !array.shape().empty();
    const ChunkLayout layout = chunk_layout(array.metadata());
    report(
        session, created_value(o, array, chosen),
        fmt::format("created {}: {} {}, {}, {}{}, {}, {}", o.path, shape_text(array.shape()), array.dtype().to_string(),
                    bytes_text(logical_bytes(array)), layout_text(layout),
                    chosen ? " (chosen; --chunks sets them)" : "", codecs_text(layout.codecs), array.dialect().name));
    return exit_done;
}

}  // namespace

Run declare_create(CLI::App& app) {
    auto o = std::make_shared<CreateOptions>();
    app.add_option("PATH", o->path, "where the array is made: a directory")->required()->option_text(" ");
    app.add_option("--shape", o->shape, "lengths, such as 1000000,1000")->required()->option_text("SHAPE (required)");
    app.add_option("--dtype", o->dtype, "NumPy's notation: '<i4', float32, 'M8[ns]', \"[('a', '<i4'), …]\"")
        ->required()
        ->option_text("DTYPE (required)");
    declare_options(app, o->result,
                    only_named({"chunks", "fill", "codec", "format", "shards", "order", "separator", "structures",
                                "dims", "overwrite"}));
    app.get_option("--fill")->description("value of what was never written: JSON or text (default 0, \"\", null)");
    app.get_option("--codec")->description(
        "codecs in order: blosc:zstd:5:shuffle, delta,zstd:3, none, or v3's JSON list (default "
        "blosc:lz4:5:shuffle; with v2 and v3, blosc:lz4:5:shuffle:16384 makes blocks that suit reading "
        "single elements and small boxes)");
    app.get_option("--format")
        ->description(fmt::format("{} (default: that of the group around it, else zmeta, which is "
                                  "zarr-python 0.4's layout, and v3 for what zmeta cannot express; "
                                  "`tessera help settings`: another)",
                                  format_choices()));
    app.get_option("--shard")->description(
        help_text("lengths of a shard, a multiple of chunks: one file holds many chunks ({shards})"));
    app.get_option("--order")->description("order of the elements in a chunk (default C)");
    app.get_option("--overwrite")->description("replace the array that lies there (never anything else)");
    app.add_option("--attrs", o->attributes, "attributes, a JSON object")->option_text("JSON");
    return [o](Session& session) { return create(session, *o); };
}

}  // namespace tessera::cli
