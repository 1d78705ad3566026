// tessera create
#include <fmt/format.h>

#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <CLI/CLI.hpp>
#include <memory>

#include "command.h"
#include "options.h"
#include "report.h"
#include "transfer.h"

namespace tessera::cli {

namespace {

struct CreateOptions {
    std::string path, shape, dtype, chunks, shards, fill, attributes, separator, dimensions, order = "C";
    std::string format = "zmeta";
    std::string codec = "blosc:lz4:5:shuffle";
    bool overwrite = false;
    bool fill_given = false;
};

/// "time, y, x"; an empty name is none.
std::vector<std::optional<std::string>> parse_names(std::string_view text) {
    std::vector<std::optional<std::string>> names;
    for (;;) {
        const std::size_t comma = text.find(',');
        std::string_view name = text.substr(0, comma);
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        names.push_back(name.empty() ? std::nullopt : std::optional<std::string>(name));
        if (comma == std::string_view::npos) return names;
        text.remove_prefix(comma + 1);
    }
}

ArrayOptions array_options(const CreateOptions& o) {
    ArrayOptions options;
    options.shape = parse_shape_option("--shape", o.shape);
    options.dtype = in_context([] { return "--dtype"; }, [&] { return DType::parse(o.dtype); });
    if (!o.chunks.empty()) options.chunks = parse_shape_option("--chunks", o.chunks);
    if (o.fill_given) options.fill_value = json_or_text(o.fill);
    options.codec = o.codec;
    options.format = o.format;
    options.order = parse_order("--order", o.order);
    options.separator = o.separator;
    if (!o.shards.empty()) options.shards = parse_shape_option("--shard", o.shards);
    if (!o.dimensions.empty()) options.dimension_names = parse_names(o.dimensions);
    if (!o.attributes.empty()) {
        options.attributes = in_context([] { return "--attrs"; }, [&] { return Value::parse(o.attributes); });
        if (!options.attributes.is_object()) {
            throw invalid_argument(
                fmt::format("--attrs: expected a JSON object such as '{{\"units\": \"m\"}}', found {}",
                            options.attributes.kind_name()));
        }
    }
    return options;
}

int create(Session& session, const CreateOptions& o) {
    if (names_array_file(o.path)) {
        throw invalid_argument(
            fmt::format("{} is named as an array file; create makes a directory: choose another name", o.path));
    }
    const ArrayOptions options = array_options(o);
    NewArray made(o.path, options, {.overwrite = o.overwrite, .store = session.store()}, "tessera create");
    const Array array = made.commit();

    const bool chosen = o.chunks.empty() && !array.shape().empty();
    const auto logical = static_cast<std::uint64_t>(byte_count(array.shape(), array.dtype().size()));
    if (session.options().json) {
        Value report = Value::object();
        report.set("path", path_value(o.path));
        report.set("format", array.dialect().name);
        report.set("dtype", array.dtype().descr());
        report.set("shape", shape_value(array.shape()));
        report.set("chunks", shape_value(array.chunks()));
        report.set("chunks_chosen", chosen);
        if (!array.shards().empty()) report.set("shards", shape_value(array.shards()));
        report.set("codec", codecs_text(chunk_layout(array.metadata()).codecs));
        report.set("logical_bytes", logical);
        print_json(report);
    } else if (!session.options().quiet) {
        print(printable(fmt::format("created {}: {} {}, {}, chunks {}{}{}, {}, {}", o.path, shape_text(array.shape()),
                                    array.dtype().to_string(), bytes_text(logical), shape_text(array.chunks()),
                                    chosen ? " (chosen; --chunks sets them)" : "",
                                    array.shards().empty() ? "" : " in shards of " + shape_text(array.shards()),
                                    codecs_text(chunk_layout(array.metadata()).codecs), array.dialect().name)) +
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
    app.add_option("--chunks", o->chunks, "lengths of a chunk")->option_text("SHAPE");
    const CLI::Option* fill =
        app.add_option("--fill", o->fill, "value of what was never written: JSON or text (default 0, \"\", null)")
            ->option_text("VALUE");
    app.add_option("--codec", o->codec,
                   "codecs in order: blosc:zstd:5:shuffle, delta,zstd:3, none, or v3's JSON list (default "
                   "blosc:lz4:5:shuffle; with v2 and v3, blosc:lz4:5:shuffle:16384 makes blocks that suit reading "
                   "single elements and small boxes)")
        ->option_text("CODECS");
    app.add_option("--format", o->format, "generation: zmeta (default: zarr-python 0.4's layout), v1, v2 or v3")
        ->option_text("FORMAT");
    app.add_option("--shard", o->shards, "lengths of a shard, a multiple of chunks: one file holds many chunks (v3)")
        ->option_text("SHAPE");
    app.add_option("--order", o->order, "order of the elements in a chunk (default C)")->option_text("C|F");
    app.add_option("--separator", o->separator, "between the indices of chunk keys: . or / (v2, v3)")
        ->option_text(".|/");
    app.add_option("--dims", o->dimensions, "names of the dimensions: time,y,x")->option_text("NAMES");
    app.add_option("--attrs", o->attributes, "attributes, a JSON object")->option_text("JSON");
    app.add_flag("--overwrite", o->overwrite, "replace the array that lies there (never anything else)");
    return [o, fill](Session& session) {
        o->fill_given = fill->count() > 0;
        return create(session, *o);
    };
}

}  // namespace tessera::cli
