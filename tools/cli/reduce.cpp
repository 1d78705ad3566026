// tessera reduce
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/reduce.h>

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/error.h>
#include <CLI/CLI.hpp>
#include <algorithm>

#include "command.h"
#include "computed.h"
#include "options.h"

namespace tessera::cli {

namespace {

struct ReduceCommand {
    TransferOptions out;
    std::optional<std::string> axes, by;
    std::string with;
    bool keep_dims = false;
    bool skip_nan = false;
};

/// Whether --by is the path of an array.
bool labels_named(const ReduceCommand& o) {
    return o.by && std::ranges::count(grouping_words(), *o.by) == 0;
}

/// The groups that --by asks for, along the dimension of --axis, or else the one that has times.
std::shared_ptr<const Grouping> grouped(const ReduceCommand& o, const ArraySource& array,
                                        const std::vector<int>& axes) {
    if (axes.size() > 1) throw invalid_argument("--by: groups along one dimension, and --axis has {}", axes.size());
    if (o.keep_dims) throw invalid_argument("--keep-dims: with --by the dimension stays, one index for each group");
    const int rank = array.info().shape.rank();
    if (!labels_named(o)) {
        return in_context(
            [] { return "--by"; },
            [&] { return group_by_time(array, axes.empty() ? time_dimension(array) : axes.front(), *o.by); });
    }
    auto labels = in_context([] { return "--by"; }, [&] { return open_source(*o.by); });
    if (axes.empty() && rank != 1) {
        throw invalid_argument("--by: which of {} dimensions the labels are of is to be said with --axis", rank);
    }
    return group_by_labels(array, axes.empty() ? 0 : axes.front(), std::move(labels));
}

int reduce(Session& session, const ReduceCommand& o) {
    const Reduction with = in_context([] { return "--with"; }, [&] { return parse_reduction(o.with); });
    std::unique_ptr<ArraySource> array = about_path(o.out.source, [&] { return open_source(o.out.source); });
    const ArraySource& like = *array;
    std::vector<int> axes;
    if (o.axes) axes = in_context([] { return "--axis"; }, [&] { return find_dimensions(*o.axes, like); });
    const auto groups = o.by ? grouped(o, like, axes) : nullptr;
    const ReduceOptions options{.with = with,
                                .percent = parse_percent(o.with),
                                .axes = axes,
                                .keep_dimensions = o.keep_dims,
                                .skip_nan = o.skip_nan,
                                .groups = groups,
                                .memory = computing_memory(session)};
    ComputedFrom from = reduced_from(like, options);
    from.paths = {o.out.source};
    if (labels_named(o)) from.paths.push_back(*o.by);
    const auto source = about_path(
        o.out.source, [&] { return converted(reduce_source(std::move(array), options), o.out.dtype, o.out.cast); });
    TransferOptions out = o.out;
    Value reduced = Value::array();
    for (const int axis : options.axes) reduced.push_back(axis);
    out.recipe = Value{{"do", "reduce"},
                       {"path", o.out.source},
                       {"with", o.with},
                       {"axes", std::move(reduced)},
                       {"keep_dimensions", o.keep_dims},
                       {"skip_nan", o.skip_nan}};
    if (o.by) out.recipe.set("by", *o.by);
    return write_computed(session, out, *source, from, fmt::format("{} of {}:", o.with, o.out.source));
}

}  // namespace

Run declare_reduce(CLI::App& app) {
    auto o = std::make_shared<ReduceCommand>();
    app.add_option("SRC", o->out.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->out.destination, "a directory, or a .zip or array file by its extension")
        ->required()
        ->option_text(" ");
    app.add_option("--axis", o->axes,
                   "the dimensions to reduce, by name or number: time or 0,2; -1 is the last (default: all)")
        ->option_text("DIMS");
    app.add_option("--with", o->with,
                   "min, max, sum, mean, std, var, count, argmin, argmax, any, all, median or a percentile: p95, p2.5")
        ->required()
        ->option_text("WORD (required)");
    app.add_option("--by", o->by,
                   "a result for each year, month, month-of-year, day-of-year or season of a dimension's times,\n"
                   "or for each label in an array: labels.zarr")
        ->option_text("WORD|PATH");
    app.add_flag("--keep-dims", o->keep_dims, "dimensions that go stay as length 1");
    app.add_flag("--skip-nan", o->skip_nan, "leave NaN and NaT out, as numpy.nanmean, nanmedian and so on do");
    app.add_option("--dtype", o->out.dtype, "convert the results: f4, '<i2'")->option_text("DTYPE");
    app.add_option("--cast", o->out.cast, "safe, same_kind (default), unsafe, round or clip")->option_text("RULE");
    declare_result_options(app, o->out);
    return [o](Session& session) { return reduce(session, *o); };
}

}  // namespace tessera::cli
