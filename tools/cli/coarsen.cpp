// tessera coarsen, pyramid
#include <tessera/coarsen.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/copy_hierarchy.h>
#include <tessera/destination.h>
#include <tessera/error_text.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>

#include "command.h"
#include "computed.h"
#include "options.h"
#include "overlap.h"
#include "report.h"
#include "transfer_report.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

struct CoarsenCommand {
    TransferOptions out;
    std::string by, with = "mean";
};

/// --by: a factor for each dimension, or one for all.
Shape parse_factors(const std::string& text, int rank) {
    const Shape by = parse_shape_option("--by", text);
    for (const std::int64_t factor : by) {
        if (factor < 1) throw invalid_argument("--by: expected factors of at least 1, found {}", text);
    }
    return by.rank() == 1 ? Shape::filled(rank, by[0]) : by;
}

Coarsening parse_with(const std::string& word) {
    return in_context([] { return "--with"; }, [&] { return parse_coarsening(word); });
}

/// The chunks of an array, clipped to the coarsened shape; empty if it has none.
Shape chunks_like(const ArrayInfo& info, const Shape& coarse) {
    if (info.chunks.rank() != info.shape.rank()) return {};
    Shape chunks = info.chunks;
    for (int d = 0; d < chunks.rank(); ++d) chunks[d] = std::clamp<std::int64_t>(coarse[d], 1, chunks[d]);
    return chunks;
}

int coarsen(Session& session, const CoarsenCommand& o) {
    const Coarsening with = parse_with(o.with);
    std::unique_ptr<ArraySource> array = about_path(o.out.source, [&] { return open_source(o.out.source); });
    const ArraySource& like = *array;
    const Shape by = parse_factors(o.by, like.info().shape.rank());
    const auto names = dimension_names_of(like);
    const auto source = about_path(o.out.source, [&] { return coarsen_source(std::move(array), by, with); });
    return write_computed(session, o.out, *source,
                          {.paths = {o.out.source},
                           .like = &like,
                           .chunks = chunks_like(like.info(), source->info().shape),
                           .dimension_names = names},
                          "coarsened");
}

// ---- pyramid

struct PyramidCommand {
    TransferOptions out;
    std::string by = "2", with = "mean";
    std::optional<std::string> levels, axes, scale, units;
};

std::vector<std::string> split_list(const std::string& text) {
    std::vector<std::string> parts;
    for (const auto& part : parse_names(text)) parts.push_back(part.value_or(""));
    return parts;
}

/// --axes, or else the array's dimension names if OME-NGFF knows them, or else defaults for the rank.
std::vector<std::string> axes_of(const PyramidCommand& o, const ArraySource& array) {
    const int rank = array.info().shape.rank();
    if (o.axes) {
        std::vector<std::string> axes = split_list(*o.axes);
        if (std::cmp_equal(axes.size(), rank)) return axes;
        throw invalid_argument("--axes: {} names were given for {} dimensions", axes.size(), rank);
    }
    std::vector<std::string> axes;
    for (const auto& name : dimension_names_of(array)) axes.push_back(name.value_or(""));
    const bool known = !axes.empty() && std::ranges::all_of(axes, [](const std::string& name) {
        return name == "t" || name == "c" || name == "z" || name == "y" || name == "x";
    });
    if (known) return axes;
    const std::vector<std::string> all{"t", "c", "z", "y", "x"};
    if (rank < 2 || rank > 5) {
        throw invalid_argument("{}: OME-NGFF takes 2 to 5 dimensions, found {}", array.name(), rank);
    }
    if (rank == 4) return {"c", "z", "y", "x"};
    return {all.end() - rank, all.end()};
}

/// --by for each dimension; a single number applies only to dimensions of space.
Shape level_factors(const std::string& text, const std::vector<std::string>& axes) {
    const Shape given = parse_factors(text, 1);
    if (given.rank() != 1 || axes.size() == 1) return parse_factors(text, static_cast<int>(axes.size()));
    Shape by;
    for (const std::string& axis : axes) by.push_back(axis == "t" || axis == "c" ? 1 : given[0]);
    return by;
}

/// The factors of all levels. Without --levels, adds levels until no shrinking dimension is longer than 256.
std::vector<Shape> all_factors(const PyramidCommand& o, const Shape& shape, const Shape& by) {
    constexpr int most = 30;
    const int wanted = o.levels ? parse_number("--levels", *o.levels, 1, most) : most;
    const auto is_large = [&](const Shape& now) {
        for (int d = 0; d < now.rank(); ++d) {
            if (by[d] > 1 && now[d] > 256) return true;
        }
        return false;
    };
    std::vector<Shape> factors{Shape::filled(shape.rank(), 1)};
    while (std::ssize(factors) < wanted && (o.levels || is_large(coarsened(shape, factors.back())))) {
        Shape next = factors.back();
        for (int d = 0; d < next.rank(); ++d) next[d] = checked_multiply(next[d], by[d], "--by");
        factors.push_back(next);
    }
    return factors;
}

std::vector<double> scale_of(const PyramidCommand& o, std::size_t rank) {
    if (!o.scale) return std::vector<double>(rank, 1.0);
    std::vector<double> scale;
    for (const std::string& part : split_list(*o.scale)) {
        const Value value = json_or_text(part);
        const double v = value.is_number() ? value.as_double() : 0;
        if (!(v > 0)) throw invalid_argument("--scale: expected numbers above 0, found {}", *o.scale);
        scale.push_back(v);
    }
    if (scale.size() != rank) {
        throw invalid_argument("--scale: {} numbers were given for {} dimensions", scale.size(), rank);
    }
    return scale;
}

std::vector<std::optional<std::string>> units_of(const PyramidCommand& o, std::size_t rank) {
    if (!o.units) return {};
    std::vector<std::optional<std::string>> units = parse_names(*o.units);
    if (units.size() == rank) return units;
    throw invalid_argument("--units: {} were given for {} dimensions", units.size(), rank);
}

/// v2 or v3: the chosen one, else the array's, else v3.
std::string pyramid_format(const PyramidCommand& o, const ArraySource& array) {
    if (o.out.format && *o.out.format != "v2" && *o.out.format != "v3") {
        throw invalid_argument("--format: OME-NGFF is v2 (0.4) or v3 (0.5), found {}", *o.out.format);
    }
    if (o.out.format) return *o.out.format;
    const auto* stored = dynamic_cast<const Array*>(&array);
    const Dialect& usual = stored != nullptr ? stored->dialect() : default_format();
    return usual.name == "v2" ? "v2" : "v3";
}

void require_place(const PyramidCommand& o, std::size_t levels, const std::string& format) {
    const std::string& path = o.out.destination;
    if (names_array_file(path)) {
        throw invalid_argument("{}: a pyramid is a group: a directory or a .zip", path);
    }
    require_no_other_file(path);
    require_apart({o.out.source}, path);
    if (!o.out.dry_run) require_pyramid_place(path, levels, dialect_named(format), o.out.overwrite);
}

/// The plan of one level: its source and its metadata.
struct Level {
    std::unique_ptr<ArraySource> source;
    PlannedCopy job;
};

Level plan_level(const PyramidCommand& o, const Pyramid& pyramid, std::size_t level, const std::string& format) {
    std::unique_ptr<ArraySource> array = open_source(o.out.source);
    const ArrayInfo info = array->info();
    Level made;
    // The first level is the array bit for bit.
    const Coarsening with = level == 0 ? Coarsening::nearest : pyramid.with;
    made.source =
        about_path(o.out.source, [&] { return coarsen_source(std::move(array), pyramid.factors[level], with); });
    TransferOptions own = o.out;
    own.format = format;
    own.separator = "/";
    const Shape chunks = chunks_like(info, made.source->info().shape);
    if (!own.chunks && !chunks.empty()) own.chunks = fmt::format("{}", chunks.to_string());
    if (format == "v3") {
        std::string names;
        for (const std::string& name : pyramid.axes) names += (names.empty() ? "" : ",") + name;
        own.dimensions = names;
    }
    ArrayWishes wishes = wishes_of(own, false);
    if (!own.fills.empty()) wishes.fill = json_or_text(own.fills.back());
    const std::string node = fmt::format("{}", level);
    made.job = {o.out.source, node,
                in_context([&] { return join_key(o.out.destination, node); },
                           [&] { return plan_array(*made.source, wishes); })};
    made.job.plan.recode = "it is computed";
    return made;
}

void make_levels(Session& session, const PyramidCommand& o, std::vector<Level>& levels, Value attributes,
                 const std::string& format) {
    const DestinationLock building = lock_destination(o.out.destination, session.store());
    const auto destination =
        open_destination(o.out.destination,
                         {.overwrite = o.out.overwrite, .resume = false, .store = session.store(), .lock = &building});
    destination->add_group({"", &dialect_named(format), std::move(attributes)});
    const IoOptions io = session.io();
    for (Level& level : levels) {
        Array& array = destination->add(level.job.node, level.job.plan, o.out.source);
        copy_array(*level.source, array, {.io = io});
    }
    destination->commit();
}

int pyramid(Session& session, const PyramidCommand& o) {
    const std::unique_ptr<ArraySource> array = about_path(o.out.source, [&] { return open_source(o.out.source); });
    const Shape shape = array->info().shape;
    Pyramid p{.name = fs::path(o.out.source).stem().string(),
              .axes = axes_of(o, *array),
              .units = units_of(o, shape.size()),
              .scale = scale_of(o, shape.size()),
              .factors = {},
              .with = parse_with(o.with)};
    p.factors = all_factors(o, shape, level_factors(o.by, p.axes));
    const std::string format = pyramid_format(o, *array);
    Value attributes = multiscales_attributes(p, format == "v3");
    require_place(o, p.factors.size(), format);
    std::vector<Level> levels;
    CopiedHierarchy made{.path = o.out.destination};
    for (std::size_t level = 0; level < p.factors.size(); ++level) {
        levels.push_back(plan_level(o, p, level, format));
        made.planned.push_back(levels.back().job);
    }
    if (o.out.dry_run) {
        report_plan(session, o.out, made);
        return exit_done;
    }
    make_levels(session, o, levels, std::move(attributes), format);
    session.clear_progress();
    for (const PlannedCopy& job : made.planned) {
        const std::string path = join_key(o.out.destination, job.node);
        const Place place = find_place(path, {.read_only = true});
        made.made.push_back(copied_array(path, Array::open(place.store, place.prefix)));
        made.bytes += made.made.back().bytes.value_or(0);
    }
    report_copied(session, o.out, made, "made");
    return exit_done;
}

}  // namespace

Run declare_coarsen(CLI::App& app) {
    auto o = std::make_shared<CoarsenCommand>();
    app.add_option("SRC", o->out.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->out.destination, "a directory, or a .zip or array file by its extension")
        ->required()
        ->option_text(" ");
    app.add_option("--by", o->by, "a factor for each dimension, or one for all: 4,4")
        ->required()
        ->option_text("FACTORS (required)");
    app.add_option("--with", o->with, "mean (default), max, min, mode or nearest")->option_text("WORD");
    declare_result_options(app, o->out);
    return [o](Session& session) { return coarsen(session, *o); };
}

Run declare_pyramid(CLI::App& app) {
    auto o = std::make_shared<PyramidCommand>();
    app.add_option("SRC", o->out.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->out.destination, "a directory, or a .zip by its extension")->required()->option_text(" ");
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
    app.add_flag("--overwrite", o->out.overwrite, "replace the levels that are there");
    app.add_flag("--dry-run", o->out.dry_run, "say what would be made; make nothing");
    return [o](Session& session) { return pyramid(session, *o); };
}

}  // namespace tessera::cli
