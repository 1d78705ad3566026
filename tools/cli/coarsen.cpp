// tessera coarsen, pyramid
#include <tessera/apart.h>
#include <tessera/reduce.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/node_facts.h>
#include <tessera/pyramid.h>
#include <tessera/secrets.h>
#include <tessera/write_computed.h>
#include <CLI/CLI.hpp>

#include "command.h"
#include "computed.h"
#include "job.h"
#include "options.h"
#include "report.h"
#include "transfer_report.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

struct CoarsenCommand {
    TransferOptions out;
    std::string by, with = "mean";
};

Coarsening parse_with(const std::string& word) {
    return in_context([] { return "--with"; }, [&] { return parse_coarsening(word); });
}

int coarsen(Session& session, const CoarsenCommand& o) {
    const Coarsening with = parse_with(o.with);
    std::unique_ptr<ArraySource> array = about_path(o.out.source, [&] { return open_source(o.out.source); });
    const ArraySource& like = *array;
    const Shape by = in_context([] { return "--by"; }, [&] { return parse_factors(o.by, like); });
    const auto source = about_path(o.out.source, [&] { return coarsen_source(std::move(array), by, with); });
    ComputedFrom from = coarsened_from(like, source->info().shape);
    from.paths = {o.out.source};
    TransferOptions out = o.out;
    out.recipe = Value{{"do", "coarsen"}, {"path", o.out.source}, {"by", shape_value(by)}, {"with", o.with}};
    return write_computed(session, out, *source, from, "coarsened");
}

// ---- pyramid

struct PyramidCommand {
    TransferOptions out;
    std::string by = "2", with = "mean";
    std::optional<std::string> levels, axes, scale, units, ome, crs, transform;
    bool upgrade = false, geo = false;
};

std::vector<std::string> split_list(const std::string& text) {
    std::vector<std::string> parts;
    for (const auto& part : parse_names(text)) parts.push_back(part.value_or(""));
    return parts;
}

std::vector<double> scale_of(const std::string& text) {
    std::vector<double> scale;
    for (const std::string& part : split_list(text)) {
        const Value value = json_or_text(part);
        const double v = value.is_number() ? value.as_double() : 0;
        if (!(v > 0)) throw invalid_argument("--scale: expected numbers above 0, found {}", text);
        scale.push_back(v);
    }
    return scale;
}

std::array<double, 6> transform_of(const std::string& text) {
    std::array<double, 6> transform{};
    const std::vector<std::string> parts = split_list(text);
    const auto wrong = [&] {
        return invalid_argument("--transform: expected six numbers a,b,c,d,e,f, found {}", text);
    };
    if (parts.size() != transform.size()) throw wrong();
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Value value = json_or_text(parts[i]);
        if (!value.is_number() || !std::isfinite(value.as_double())) throw wrong();
        transform.at(i) = value.as_double();
    }
    return transform;
}

Value pyramid_recipe(const std::string& path, const PyramidOptions& o) {
    Value recipe{{"do", "pyramid"}, {"path", path}, {"by", shape_value(o.by)}, {"with", coarsening_name(o.with)}};
    const auto list = [&](const char* name, const auto& values) {
        Value all = Value::array();
        for (const auto& value : values) all.push_back(Value(value));
        if (!values.empty()) recipe.set(name, std::move(all));
    };
    list("axes", o.axes);
    list("scale", o.scale);
    Value units = Value::array();
    for (const auto& unit : o.units) units.push_back(unit ? Value(*unit) : Value());
    if (!o.units.empty()) recipe.set("units", std::move(units));
    if (o.levels) recipe.set("levels", *o.levels);
    if (o.ome) recipe.set("ome", ome_version_text(*o.ome));
    if (o.geo) {
        Value geo = Value::object();
        if (o.geo->crs) geo.set("crs", *o.geo->crs);
        if (o.geo->transform) geo.set("transform", Value::Array(o.geo->transform->begin(), o.geo->transform->end()));
        recipe.set("geo", std::move(geo));
    }
    return recipe;
}

OmeVersion ome_option(const std::string& text) {
    return in_context([] { return "--ome"; }, [&] { return ome_version_named(text); });
}

/// `pyramid PATH --upgrade`: newer metadata, the same chunks.
int upgrade(Session& session, const PyramidCommand& o) {
    const std::string& path = o.out.source;
    if (!o.out.destination.empty()) {
        throw invalid_argument("--upgrade changes the metadata of one group, {}, and makes no {}", path,
                               o.out.destination);
    }
    const OmeVersion to = ome_option(o.ome.value_or("0.5"));
    const std::vector<std::string> changed = about_path(path, [&] { return upgrade_ome(path, to, session.store()); });
    if (session.options().json) {
        print_json(Value{{"path", path_value(path)}, {"ome", ome_version_text(to)}, {"groups", changed.size()}});
    } else if (!session.options().quiet) {
        print(fmt::format("{}: {} group{} upgraded to OME-Zarr {}\n", printable(path), changed.size(),
                          changed.size() == 1 ? "" : "s", ome_version_text(to)));
    }
    return exit_done;
}

int pyramid(Session& session, const PyramidCommand& o) {
    if (o.upgrade) return upgrade(session, o);
    const std::string& path = o.out.destination;
    if (path.empty()) throw invalid_argument("no DST was given, where the group is made");
    const std::shared_ptr<const ArraySource> array =
        about_path(o.out.source, [&] { return open_source(o.out.source); });
    if (!names_array_file(path)) require_no_other_file(path);
    require_apart({o.out.source}, path);
    PyramidOptions options{.name = fs::path(without_secrets(o.out.source)).stem().string(),
                           .by = parse_shape_option("--by", o.by),
                           .with = parse_with(o.with),
                           .arrays = wishes_of(o.out, false),
                           .overwrite = o.out.overwrite,
                           .dry_run = o.out.dry_run,
                           .io = session.io(),
                           .store = session.store()};
    if (o.axes) options.axes = split_list(*o.axes);
    if (o.scale) options.scale = scale_of(*o.scale);
    if (o.units) options.units = parse_names(*o.units);
    if (o.ome) options.ome = ome_option(*o.ome);
    if (o.geo) {
        options.geo = GeoWishes{.crs = o.crs};
        if (o.transform) options.geo->transform = transform_of(*o.transform);
    }
    if (o.levels) options.levels = parse_number("--levels", *o.levels, 1, 30);
    if (!o.out.fills.empty()) options.arrays.fill = json_or_text(o.out.fills.back());
    if (session.planning) {
        TransferOptions out = o.out;
        out.recipe = pyramid_recipe(out.source, options);
        return plan_transfer(session, out);
    }
    const CopiedHierarchy made =
        about_options({"axes", "by", "crs", "format", "levels", "ome", "scale", "transform", "units"},
                      [&] { return make_pyramid(array, o.out.source, path, options); });
    session.clear_progress();
    if (o.out.dry_run) {
        report_plan(session, o.out, made);
    } else {
        report_copied(session, o.out, made, "made");
    }
    return exit_done;
}

}  // namespace

Run declare_coarsen(CLI::App& app) {
    auto o = std::make_shared<CoarsenCommand>();
    app.add_option("SRC", o->out.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->out.destination, "a directory, or a .zip or array file by its extension")
        ->required()
        ->option_text(" ");
    app.add_option("--by", o->by,
                   "a factor for each dimension, or one for all: 4,4; or for those that are named: lat=4,lon=2")
        ->required()
        ->option_text("FACTORS (required)");
    app.add_option("--with", o->with, "mean (default), max, min, mode or nearest")->option_text("WORD");
    declare_result_options(app, o->out);
    return [o](Session& session) { return coarsen(session, *o); };
}

Run declare_pyramid(CLI::App& app) {
    auto o = std::make_shared<PyramidCommand>();
    app.add_option("SRC", o->out.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->out.destination, "a directory, or a .zip or .ozx by its extension")

        ->option_text(" ");
    app.add_option("--by", o->by, "the factor between levels (default 2), for dimensions of space; or one for each")
        ->option_text("FACTORS");
    app.add_option("--levels", o->levels, "how many, the first included (default: until 256 elements long)")
        ->option_text("N");
    app.add_option("--with", o->with, "mean (default), max, min, mode or nearest")->option_text("WORD");
    app.add_option("--axes", o->axes, "names of the dimensions: t,c,z,y,x, as many as there are")->option_text("NAMES");
    app.add_option("--scale", o->scale, "distances between neighbours in the first level: 1,0.5,0.5")
        ->option_text("NUMBERS");
    app.add_option("--units", o->units, "units of the distances: micrometer,micrometer")->option_text("NAMES");
    app.add_option("--chunks", o->out.chunks, "lengths of a chunk")->option_text("SHAPE");
    app.add_option("--codec", o->out.codec, "codecs in order, such as blosc:zstd:5:shuffle")->option_text("CODECS");
    app.add_option("--fill", o->out.fills, "fill value, JSON or text")->allow_extra_args(false)->option_text("VALUE");
    app.add_option("--format", o->out.format, "v2 (OME-NGFF 0.4) or v3 (0.5, the default)")->option_text("FORMAT");
    app.add_option("--ome", o->ome, "version of OME-Zarr: 0.4 (in v2), 0.5 or 0.6 (0.6rc0; in v3)")
        ->option_text("VERSION");
    CLI::Option* geo = app.add_flag("--geo", o->geo,
                                    "GeoZarr's metadata (multiscales, spatial, proj) in place of OME-Zarr's; both with "
                                    "--ome. SRC has a georeference, as from GeoTIFF, or these options say one");
    app.add_option("--crs", o->crs, "the coordinate reference system: EPSG:4326, or WKT2, or PROJJSON")
        ->option_text("CODE")
        ->needs(geo);
    app.add_option("--transform", o->transform, "a,b,c,d,e,f: x = a*column + b*row + c, y = d*column + e*row + f")
        ->option_text("NUMBERS")
        ->needs(geo);
    app.add_flag("--upgrade", o->upgrade,
                 "no DST: SRC, a group of v3, gets metadata of a newer version (default 0.5); no chunk is touched");
    app.add_flag("--overwrite", o->out.overwrite, "replace the levels that are there");
    app.add_flag("--dry-run", o->out.dry_run, "say what would be made; make nothing");
    return [o](Session& session) { return pyramid(session, *o); };
}

}  // namespace tessera::cli
