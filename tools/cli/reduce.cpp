// tessera reduce
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
    std::optional<std::string> axes;
    std::string with;
    bool keep_dims = false;
    bool skip_nan = false;
};

std::vector<int> parse_axes(const std::string& text) {
    std::vector<int> axes;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        axes.push_back(parse_number("--axis", text.substr(at, end - at), -max_rank, max_rank - 1));
        at = end + 1;
    }
    return axes;
}

int reduce(Session& session, const ReduceCommand& o) {
    const Reduction with = in_context([] { return "--with"; }, [&] { return parse_reduction(o.with); });
    std::unique_ptr<ArraySource> array = about_path(o.out.source, [&] { return open_source(o.out.source); });
    const ArraySource& like = *array;
    const ReduceOptions options{.with = with,
                                .axes = o.axes ? parse_axes(*o.axes) : std::vector<int>{},
                                .keep_dimensions = o.keep_dims,
                                .skip_nan = o.skip_nan,
                                .memory = computing_memory(session)};
    ComputedFrom from = reduced_from(like, options);
    from.paths = {o.out.source};
    const auto source = about_path(
        o.out.source, [&] { return converted(reduce_source(std::move(array), options), o.out.dtype, o.out.cast); });
    TransferOptions out = o.out;
    Value axes = Value::array();
    for (const int axis : options.axes) axes.push_back(axis);
    out.recipe = Value{{"do", "reduce"},          {"path", o.out.source},           {"with", o.with},
                       {"axes", std::move(axes)}, {"keep_dimensions", o.keep_dims}, {"skip_nan", o.skip_nan}};
    return write_computed(session, out, *source, from, fmt::format("{} of {}:", o.with, o.out.source));
}

}  // namespace

Run declare_reduce(CLI::App& app) {
    auto o = std::make_shared<ReduceCommand>();
    app.add_option("SRC", o->out.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->out.destination, "a directory, or a .zip or array file by its extension")
        ->required()
        ->option_text(" ");
    app.add_option("--axis", o->axes, "the dimensions to reduce: 0 or 0,2; -1 is the last (default: all)")
        ->option_text("N");
    app.add_option("--with", o->with, "min, max, sum, mean, std, var, count, argmin, argmax or median")
        ->required()
        ->option_text("WORD (required)");
    app.add_flag("--keep-dims", o->keep_dims, "dimensions that go stay as length 1");
    app.add_flag("--skip-nan", o->skip_nan, "leave NaN and NaT out, as numpy.nanmean does");
    app.add_option("--dtype", o->out.dtype, "convert the results: f4, '<i2'")->option_text("DTYPE");
    app.add_option("--cast", o->out.cast, "safe, same_kind (default), unsafe, round or clip")->option_text("RULE");
    declare_result_options(app, o->out);
    return [o](Session& session) { return reduce(session, *o); };
}

}  // namespace tessera::cli
