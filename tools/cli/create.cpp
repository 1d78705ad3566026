// tessera create
#include <fmt/format.h>

#include <tessera/array_plan.h>
#include <tessera/codec.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <CLI/CLI.hpp>
#include <memory>

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
    std::string path, shape, dtype, chunks, shards, fill, attributes, separator, structures, dimensions, order = "C";
    std::string format;
    std::string codec;
    bool overwrite = false;
    bool fill_given = false;
};

ArrayOptions array_options(const CreateOptions& o) {
    ArrayOptions options;
    options.shape = parse_shape_option("--shape", o.shape);
    options.dtype = in_context([] { return "--dtype"; }, [&] { return DType::parse(o.dtype); });
    if (!o.chunks.empty()) parse_lengths_option("--chunks", o.chunks).give(options.chunks, options.edges);
    if (o.fill_given) options.fill_value = json_or_text(o.fill);
    const std::string usual_codec = checked_setting("codec", [](const auto& s) { (void)parse_codecs(s); });
    if (!o.codec.empty() || !usual_codec.empty()) options.codec = o.codec.empty() ? usual_codec : o.codec;
    const Dialect* above = o.format.empty() ? format_above(o.path) : nullptr;
    options.format = above != nullptr ? above->name : o.format;
    in_context([] { return "--order"; }, [&] { read_member(o.order, options.order); });
    options.separator = o.separator;
    options.structures = o.structures;
    if (!o.shards.empty()) parse_lengths_option("--shard", o.shards).give(options.shards, options.shard_edges);
    if (!o.dimensions.empty()) options.dimension_names = parse_names(o.dimensions);
    if (!o.attributes.empty()) {
        options.attributes = in_context([] { return "--attrs"; }, [&] { return Value::parse(o.attributes); });
        if (!options.attributes.is_object()) {
            throw invalid_argument("--attrs: expected a JSON object such as '{{\"units\": \"m\"}}', found {}",
                                   options.attributes.kind_name());
        }
    }
    return options;
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
    const ArrayMetadata planned = about_path(o.path, [&] { return metadata_of_new(options, !o.format.empty()); });
    const Array array =
        o.overwrite
            ? NewArray(o.path, options, {.overwrite = true, .store = session.store()}, "tessera create").commit()
            : Array::create(o.path, options, session.store());
    const auto undefined = o.fill_given ? std::nullopt : undefined_note(array.dialect(), array.metadata());
    for (const auto& note : {choice.note, undefined}) {
        if (note) session.note(o.path + ": " + advised(note->text, note->advice));
    }
    if (uses_unknown_zstd(array.dialect(), array.metadata())) {
        session.note(
            fmt::format("{}: {} cannot read chunks compressed with zstd", o.path, array.dialect().cannot_read_zstd));
    }
    if (const auto note = large_chunk_note(planned, session.options().max_memory)) {
        session.note(o.path + ": " + advised(note->text, note->advice));
    }

    const bool chosen = o.chunks.empty() && !array.shape().empty();
    const ChunkLayout layout = chunk_layout(array.metadata());
    const auto logical = static_cast<std::uint64_t>(byte_count(array.shape(), array.dtype().size()));
    if (session.options().json) {
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
        report.set("logical_bytes", logical);
        print_json(report);
    } else if (!session.options().quiet) {
        print(printable(fmt::format("created {}: {} {}, {}, {}{}, {}, {}", o.path, shape_text(array.shape()),
                                    array.dtype().to_string(), bytes_text(logical), layout_text(layout),
                                    chosen ? " (chosen; --chunks sets them)" : "", codecs_text(layout.codecs),
                                    array.dialect().name)) +
              "\n");
    }
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
    app.add_option("--chunks", o->chunks,
                   fmt::format("lengths of a chunk, or '[10,10,5]*4,32' where they differ along a dimension ({})",
                               formats_with(&Dialect::edges)))
        ->option_text("SHAPE");
    const CLI::Option* fill =
        app.add_option("--fill", o->fill, "value of what was never written: JSON or text (default 0, \"\", null)")
            ->option_text("VALUE");
    app.add_option("--codec", o->codec,
                   "codecs in order: blosc:zstd:5:shuffle, delta,zstd:3, none, or v3's JSON list (default "
                   "blosc:lz4:5:shuffle; with v2 and v3, blosc:lz4:5:shuffle:16384 makes blocks that suit reading "
                   "single elements and small boxes)")
        ->option_text("CODECS");
    app.add_option("--format", o->format,
                   fmt::format("{} (default: that of the group around it, else zmeta, which is "
                               "zarr-python 0.4's layout, and v3 for what zmeta cannot express; "
                               "`tessera help settings`: another)",
                               format_choices()))
        ->option_text("FORMAT");
    app.add_option("--shard,--shards", o->shards,
                   fmt::format("lengths of a shard, a multiple of chunks: one file holds many chunks ({})",
                               formats_with(&Dialect::shards)))
        ->option_text("SHAPE");
    app.add_option("--order", o->order, "order of the elements in a chunk (default C)")->option_text("C|F");
    app.add_option("--separator", o->separator,
                   fmt::format("between the indices of chunk keys: . or / ({})", formats_with(&Dialect::separators)))
        ->option_text(".|/");
    app.add_option("--structures", o->structures,
                   "v3: the name of structures: struct, or structured for zarr-python before 3.3")
        ->option_text("NAME");
    app.add_option("--dims", o->dimensions, "names of the dimensions: time,y,x")->option_text("NAMES");
    app.add_option("--attrs", o->attributes, "attributes, a JSON object")->option_text("JSON");
    app.add_flag("--overwrite", o->overwrite, "replace the array that lies there (never anything else)");
    return [o, fill](Session& session) {
        o->fill_given = fill->count() > 0;
        return create(session, *o);
    };
}

}  // namespace tessera::cli
