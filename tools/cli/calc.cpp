// tessera calc
#include <tessera/calc.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <CLI/CLI.hpp>

#include "command.h"
#include "edit.h"
#include "hierarchy.h"
#include "log.h"
#include "options.h"
#include "report.h"
#include "selected.h"
#include "transfer.h"

namespace tessera::cli {

namespace {

struct CalcCommand {
    TransferOptions out;
    std::string expression;
    std::vector<std::string> operands;  ///< "a=x.zarr"
    bool in_place = false;
    bool no_undo = false;

    [[nodiscard]] const CalcRecipe& recipe() const { return std::get<CalcRecipe>(out.recipe.make); }
};

NamedIngredients operands_of(const std::vector<std::string>& given) {
    NamedIngredients operands;
    for (const std::string& text : given) {
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        const bool named = equals != std::string::npos && !name.empty() &&
                           std::ranges::all_of(name,
                                               [](char c) {
                                                   return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                                          (c >= '0' && c <= '9') || c == '_';
                                               }) &&
                           !(name[0] >= '0' && name[0] <= '9');
        if (!named) throw invalid_argument("expected an operand such as a=x.zarr, found '{}'", text);
        const bool twice = std::ranges::count(operands, name, &NamedIngredients::value_type::first) > 0;
        if (twice) throw invalid_argument("the operand {} is given twice", name);
        operands.push_back({name, {.path = text.substr(equals + 1)}});
    }
    return operands;
}

void require_in_place_options(const TransferOptions& o) {
    bool other = o.recipe.dtype.has_value();
    visit_options(o.result, [&](const Option& /*option*/, const auto& member) { other = other || is_given(member); });
    if (!other) return;
    throw invalid_argument(
        "--in-place changes only elements, so of these options only --sel and --cast can be combined with it");
}

int calc_in_place(Session& session, const CalcCommand& o) {
    require_in_place_options(o.out);
    Array array = open_to_edit(session, o.out.destination);  // first, which finishes a batch that was recorded there
    std::vector<CalcOperand> operands =
        open_operands({.operands = operands_of(o.operands), .raw = o.recipe().raw},
                      [](const std::string& path) { return about_path(path, [&] { return open_source(path); }); });
    const Cast rule = o.out.recipe.cast ? parse_cast(*o.out.recipe.cast) : Cast::same_kind;
    const Selection selection = o.out.recipe.selection
                                    ? chosen_part(session, o.out.destination, *o.out.recipe.selection, array)
                                    : Selection::all(array.shape());
    std::int64_t changed = 0;
    try {
        changed = calc_in_place(array, o.expression, std::move(operands),
                                {.selection = selection,
                                 .cast = rule,
                                 .keep_old = !o.no_undo,
                                 .decoded = !o.recipe().raw,
                                 .io = session.io()});
    } catch (const Error& e) {
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled("interrupted; {} is as it was before", o.out.destination);
    }
    session.clear_progress();
    const std::int64_t count = element_count(selection.shape());
    Value report_value = Value::object();
    report_value.set("path", path_value(o.out.destination));
    report_value.set("shape", shape_value(selection.shape()));
    report_value.set("elements", count);
    report_value.set("values_changed", changed);
    report(session, report_value,
           fmt::format("calculated {} of {}{}", count_text(count, "element"), o.out.destination,
                       o.no_undo ? "" : "; `tessera undo` takes it back"));
    return exit_done;
}

int calc(Session& session, const CalcCommand& given) {
    if (given.in_place) return calc_in_place(session, given);
    CalcCommand o = given;
    if (o.no_undo) throw invalid_argument("--no-undo: only with --in-place");
    o.out.source = o.expression;
    o.out.recipe.make = CalcRecipe{o.expression, operands_of(o.operands), o.recipe().raw};
    return make_recipe(session, o.out, "calculated");
}

}  // namespace

Run declare_calc(CLI::App& app) {
    auto o = std::make_shared<CalcCommand>();
    app.add_option("OUT", o->out.destination, "a directory, or a .zip or array file by its extension")
        ->required()
        ->option_text(" ");
    app.add_option("EXPRESSION", o->expression, "in NumPy's notation: 'where(a < 0, 0, a * 0.1 + b)'")
        ->required()
        ->option_text(" ");
    app.add_option("OPERANDS", o->operands, "NAME=PATH each: arrays, array files, members and fields")
        ->option_text(" ");
    app.add_flag("--in-place", o->in_place,
                 "change the elements of OUT, which may be an operand, all at once or not at all");
    app.add_flag("--no-undo", o->no_undo, no_undo_text);
    o->out.recipe.make = CalcRecipe();
    declare_transfer(app, o->out, without(only_copies));
    app.get_option("--sel")->description(
        fmt::format("compute with this part alone, with --in-place change only it: {}", selection_forms));
    app.get_option("--cast")->description(
        "safe, same_kind (default), unsafe, round or clip; with --in-place to OUT's dtype");
    return [o](Session& session) { return calc(session, *o); };
}

}  // namespace tessera::cli
