// tessera create
#include <fmt/format.h>

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
    std::string path, shape, dtype, chunks, fill, attributes, order = "C";
    std::string format = "zmeta";
    std::string codec = "blosc:lz4:5:shuffle";
    bool overwrite = false;
    bool fill_given = false;
};

ArrayOptions array_options(const CreateOptions& o) {
    ArrayOptions options;
    options.shape = parse_shape_option("--shape", o.shape);
    options.dtype = in_context([] { return "--dtype"; }, [&] { return DType::parse(o.dtype); });
    if (!o.chunks.empty()) options.chunks = parse_shape_option("--chunks", o.chunks);
    if (o.fill_given) options.fill_value = json_or_text(o.fill);
    options.codec = o.codec;
    options.format = o.format;
    if (parse_order("--order", o.order) == Order::F) {
        throw unsupported(fmt::format("--order F: the format {} stores the elements of a chunk in C order only",
                                      dialect_named(o.format).name));
    }
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
    NewArray made(o.path, options, {.overwrite = o.overwrite}, "tessera create");
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
        report.set("codec", codecs_text(array.metadata().codecs));
        report.set("logical_bytes", logical);
        print_json(report);
    } else if (!session.options().quiet) {
        print(printable(fmt::format("created {}: {} {}, {}, chunks {}{}, {}, {}", o.path, shape_text(array.shape()),
                                    array.dtype().to_string(), bytes_text(logical), shape_text(array.chunks()),
                                    chosen ? " (chosen; --chunks sets them)" : "", codecs_text(array.metadata().codecs),
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
    app.add_option("--chunks", o->chunks, "lengths of a chunk")->option_text("SHAPE");
    const CLI::Option* fill =
        app.add_option("--fill", o->fill, "value of what was never written: JSON or text (default 0, \"\", null)")
            ->option_text("VALUE");
    app.add_option("--codec", o->codec, "blosc:COMPRESSOR:LEVEL:SHUFFLE (default blosc:lz4:5:shuffle)")
        ->option_text("CODEC");
    app.add_option("--format", o->format, "zmeta, the layout of zarr-python 0.4 (default)")->option_text("FORMAT");
    app.add_option("--order", o->order, "order of the elements in a chunk: C")->option_text("C");
    app.add_option("--attrs", o->attributes, "attributes, a JSON object")->option_text("JSON");
    app.add_flag("--overwrite", o->overwrite, "replace the array that lies there (never anything else)");
    return [o, fill](Session& session) {
        o->fill_given = fill->count() > 0;
        return create(session, *o);
    };
}

}  // namespace tessera::cli
