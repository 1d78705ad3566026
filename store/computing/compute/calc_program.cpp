#include "calc_program.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/derived_source.h>
#include <tessera/element.h>
#include <tessera/error_text.h>

#include "expression.h"
#include "reduced_array.h"

namespace tessera {

namespace {
/// A part of an expression: a literal, whose dtype depends on the other operands, or a row. NaT is a row of an unknown
/// type, which depends on the other operand.
struct Term {
    std::optional<Literal> literal;
    RowPlace place;
    bool nat = false;
};

/// As NumPy orders them: a literal takes the type of an operand of its class or a later one.
enum class NumberClass : std::uint8_t { boolean, integer, real, complex };

NumberClass number_class(const Literal& v) {
    if (std::holds_alternative<bool>(v)) return NumberClass::boolean;
    return std::holds_alternative<double>(v) ? NumberClass::real : NumberClass::integer;
}

double as_double(const Literal& v) {
    return std::visit([](auto x) { return static_cast<double>(x); }, v);
}

Number own_number(const Literal& v) {
    constexpr std::array<Number, 4> numbers{Number::b1, Number::i8, Number::u8, Number::f8};
    return numbers.at(v.index());
}

NumberClass number_class(Number number) {
    const Kind kind = dtype_of(number).kind();
    if (kind == Kind::boolean) return NumberClass::boolean;
    if (kind == Kind::integer || kind == Kind::unsigned_integer) return NumberClass::integer;
    return kind == Kind::complex ? NumberClass::complex : NumberClass::real;
}

std::string literal_text(const Literal& v) {
    return std::visit([](auto x) { return fmt::format("{}", x); }, v);
}

/// Compiles the tree to steps.
class Compiler {
public:
    Compiler(std::string_view text, std::span<const CalcOperand> operands) : text_(text), operands_(operands) {
        used_.assign(operands.size(), false);
    }

    Program compile_tree(const Expression& tree) {
        const Term term = compile(tree);
        if (term.nat) throw error(tree, "NaT alone has no unit");
        program_.result = term.literal ? constant(tree, *term.literal, own_number(*term.literal)) : term.place;
        for (std::size_t i = 0; i < used_.size(); ++i) {
            if (used_[i]) continue;
            throw invalid_argument("'{}': the operand {} is not used", text_, operands_[i].name);
        }
        return std::move(program_);
    }

private:
    [[nodiscard]] Error error(const Expression& node, std::string_view what) const {
        return expression_error(text_, node.at, what);
    }

    Term compile(const Expression& node) {
        switch (node.type) {
            case Expression::Type::literal:
                return {node.literal, {}};
            case Expression::Type::name:
                return name(node);
            case Expression::Type::text:
                throw error(node,
                            "text stands in datetime64('2020-01-31') and timedelta64(5, 'D'), or beside text: "
                            "station == 'Graz'");
            default:
                return call(node);
        }
    }

    Term name(const Expression& node) {
        for (std::size_t i = 0; i < operands_.size(); ++i) {
            if (operands_[i].name != node.name) continue;
            used_[i] = true;
            const DType dtype = operands_[i].array->info().dtype;
            if (const auto time = time_type_of(dtype)) {
                return {std::nullopt, {RowPlace::Type::operand, i, Number::i8, time}};
            }
            const auto number = number_of(dtype);
            if (!number) {
                throw error(node, fmt::format("elements of {} are not computed with", dtype.to_string()));
            }
            return {std::nullopt, {RowPlace::Type::operand, i, *number}};
        }
        if (node.name == "True") return {Literal(true), {}};
        if (node.name == "False") return {Literal(false), {}};
        if (node.name == "nan") return {Literal(std::numeric_limits<double>::quiet_NaN()), {}};
        if (node.name == "inf") return {Literal(std::numeric_limits<double>::infinity()), {}};
        if (node.name == "pi") return {Literal(std::numbers::pi), {}};
        if (node.name == "e") return {Literal(std::numbers::e), {}};
        if (node.name == "NaT") return {std::nullopt, {}, true};
        std::string known;
        for (const CalcOperand& operand : operands_)
            known += fmt::format("{}{}", known.empty() ? "" : ", ", operand.name);
        throw error(node, fmt::format("unknown name '{}'; {}", node.name,
                                      known.empty() ? "there are no operands (a=PATH)" : "the operands are " + known));
    }

    Term call(const Expression& node) {
        for (const auto& argument : node.arguments) {
            if (argument->keyword.empty()) continue;
            throw error(*argument, fmt::format("only reductions have the argument {}=", argument->keyword));
        }
        if (node.name == "clip") return clip(node);
        if (node.name == "datetime64" || node.name == "timedelta64") return time_constant(node);
        for (std::size_t i = 0; i < 14; ++i) {
            const auto number = static_cast<Number>(i);
            const bool named = number_name(number) == node.name || (number == Number::b1 && node.name == "bool_");
            if (named) return conversion(node, number);
        }
        const Function* function = find_function(node.name);
        if (function == nullptr && called_reduction(node.name)) {
            throw error(node,
                        fmt::format("here {} would be that of some elements: compute it by calc before", node.name));
        }
        if (function == nullptr) {
            throw error(node, fmt::format("unknown function '{}'", node.name))
                .advising(Action::calc_functions, "lists those there are");
        }
        require_arguments(node, function->arguments);
        std::vector<Term> terms;
        for (const auto& argument : node.arguments) terms.push_back(compile(*argument));
        return apply(node, *function, terms);
    }

    void require_arguments(const Expression& node, int count) const {
        if (std::cmp_equal(node.arguments.size(), count)) return;
        throw error(node, fmt::format("{} takes {} argument{}, found {}", node.name, count, count == 1 ? "" : "s",
                                      node.arguments.size()));
    }

    /// numpy.clip: minimum(maximum(a, low), high).
    Term clip(const Expression& node) {
        require_arguments(node, 3);
        std::vector<Term> lower{compile(*node.arguments[0]), compile(*node.arguments[1])};
        const Term raised = apply(node, *find_function("maximum"), lower);
        std::vector<Term> upper{raised, compile(*node.arguments[2])};
        return apply(node, *find_function("minimum"), upper);
    }

    Term conversion(const Expression& node, Number to) {
        require_arguments(node, 1);
        const Term term = compile(*node.arguments[0]);
        if (is_time(term)) throw no_meaning(node, number_name(to), {&term, 1});
        if (term.literal) return {std::nullopt, constant(node, *term.literal, to)};
        return {std::nullopt, converted(term.place, to)};
    }

    /// The promoted dtype of an operation's operands. A literal takes the dtype of the arrays, unless its kind is
    /// higher.
    [[nodiscard]] Number common(const Expression& node, std::span<const Term> terms) const {
        std::optional<Number> number;
        for (const Term& term : terms) {
            if (term.literal) continue;
            const auto both = number ? promoted(*number, term.place.number) : term.place.number;
            if (!both) {
                throw error(node,
                            fmt::format("{} and {} have no common integer, and float64 would not be exact: convert "
                                        "one of them, as in int64(b)",
                                        number_name(*number), number_name(term.place.number)));
            }
            number = both;
        }
        for (const Term& term : terms) {
            if (!term.literal) continue;
            if (!number) {
                number = own_number(*term.literal);
            } else if (all_literals(terms)) {
                const auto both = promoted(*number, own_number(*term.literal));
                number = both ? *both : Number::f8;
            } else if (number_class(*term.literal) > number_class(*number)) {
                number = number_class(*term.literal) == NumberClass::integer ? Number::i8 : Number::f8;
            }
        }
        return *number;
    }

    static bool all_literals(std::span<const Term> terms) {
        return std::ranges::all_of(terms, [](const Term& term) { return term.literal.has_value(); });
    }

    [[nodiscard]] static Number computed_with(Function::Operands rule, Number number) {
        const bool whole = number_class(number) <= NumberClass::integer;
        switch (rule) {
            case Function::Operands::integers:
                return number == Number::b1 ? Number::i1 : number;
            case Function::Operands::divide:
                return whole ? Number::f8 : number;
            case Function::Operands::inexact:
                if (!whole) return number;
                return dtype_of(number).size() == 1   ? Number::f2
                       : dtype_of(number).size() == 2 ? Number::f4
                                                      : Number::f8;
            default:
                return number;
        }
    }

    static bool is_time(const Term& term) { return term.nat || term.place.time.has_value(); }

    [[nodiscard]] Error no_meaning(const Expression& node, std::string_view function,
                                   std::span<const Term> terms) const {
        std::string types;
        for (const Term& term : terms) {
            const std::string type = term.nat          ? "NaT"
                                     : term.literal    ? "a number"
                                     : term.place.time ? term.place.time->name()
                                                       : std::string(number_name(term.place.number));
            types += fmt::format("{}{}", types.empty() ? "" : " and ", type);
        }
        return error(node, fmt::format("{} has no meaning for {}", function, types));
    }

    /// datetime64('2020-01-31T12:00'), with a unit after it or as fine as the text; timedelta64(5, 'D').
    Term time_constant(const Expression& node) {
        const bool point = node.name == "datetime64";
        const std::string_view form =
            point ? "datetime64('2020-01-31') or datetime64('2020-01-31', 's')" : "timedelta64(5, 'D')";
        const auto refused = [&] { return error(node, fmt::format("{} was expected", form)); };
        const std::size_t count = node.arguments.size();
        if (count == 0 || count > 2 || (count == 1 && !point)) throw refused();
        // A sign is a call of its own.
        const Expression* value = node.arguments[0].get();
        const bool negative = !point && value->type == Expression::Type::call && value->name == "negative";
        if (negative) value = value->arguments[0].get();
        const bool fits = point ? value->type == Expression::Type::text : value->type == Expression::Type::literal;
        const Expression* unit = count == 2 ? node.arguments[1].get() : nullptr;
        if (!fits || (!point && number_class(value->literal) != NumberClass::integer) ||
            (unit && unit->type != Expression::Type::text)) {
            throw refused();
        }
        const auto made = [&](const auto& make) {
            try {
                return make();
            } catch (const Error& e) {
                throw error(node, e.what());
            }
        };
        const DType dtype = made([&] {
            return unit ? DType::parse(fmt::format("{}8[{}]", point ? 'M' : 'm', unit->name))
                        : DType::time(Kind::datetime, unit_of_text(value->name));
        });
        if (dtype.time_unit().base == TimeUnit::Base::generic) throw refused();
        const ElementBytes element = made([&] {
            if (point) return element_from_value(dtype, Value(value->name), Assign::exact);
            return element_from_text(dtype, (negative ? "-" : "") + literal_text(value->literal));
        });
        return {std::nullopt, repeated(element.data(), {RowPlace::Type::constant, 0, Number::i8, time_type_of(dtype)})};
    }

    /// A term's place in another unit. NaT gets the type that it stands for.
    RowPlace in_unit(const Term& term, const TimeType& type) {
        constexpr std::int64_t nat = std::numeric_limits<std::int64_t>::min();
        const RowPlace wanted{RowPlace::Type::constant, 0, Number::i8, type};
        if (term.nat) return repeated(reinterpret_cast<const std::byte*>(&nat), wanted);
        if (term.place.time->unit == type.unit) return term.place;
        Step step{.kernel = nullptr,
                  .in = {term.place},
                  .arguments = 1,
                  .out = {RowPlace::Type::row, take_row(), Number::i8, TimeType{term.place.time->kind, type.unit}}};
        release(term.place);
        program_.steps.push_back(step);
        return step.out;
    }

    /// A function of times: those that NumPy has for them and that are exact.
    Term apply_to_times(const Expression& node, const Function& function, std::span<const Term> terms) {
        const bool where = function.operands == Function::Operands::where;
        const std::span<const Term> values = where ? terms.subspan(1) : terms;
        Step step{.kernel = nullptr, .in = {}, .arguments = static_cast<int>(terms.size()), .out = {}};
        const bool all = std::ranges::all_of(values, is_time) &&
                         !std::ranges::all_of(values, [](const Term& term) { return term.nat; });
        if (!all || (where && (is_time(terms[0]) || term_class(terms[0]) != NumberClass::boolean))) {
            throw no_meaning(node, function.name, terms);
        }
        std::optional<TimeType> result;
        if (values.size() == 1) {
            step.kernel = time_test(function.name);
            step.in[0] = values[0].place;
        } else {
            // NaT stands for a time of the other's type.
            const TimeType a = *(values[0].nat ? values[1] : values[0]).place.time;
            const TimeType b = *(values[1].nat ? values[0] : values[1]).place.time;
            const auto operation = time_operation(function.name, a, b);
            if (!operation) throw no_meaning(node, function.name, terms);
            step.kernel = operation->kernel;
            if (operation->result) result = TimeType{*operation->result, operation->unit};
            const std::size_t first = where ? 1 : 0;
            if (where) step.in[0] = placed(node, terms[0], Number::b1);
            step.in.at(first) = in_unit(values[0], {a.kind, operation->unit});
            step.in.at(first + 1) = in_unit(values[1], {b.kind, operation->unit});
        }
        if (step.kernel == nullptr) throw no_meaning(node, function.name, terms);
        step.out = {RowPlace::Type::row, take_row(), result ? Number::i8 : Number::b1, result};
        for (std::size_t i = 0; i < terms.size(); ++i) release(step.in.at(i));
        program_.steps.push_back(step);
        return {std::nullopt, step.out};
    }

    Term apply(const Expression& node, const Function& given, std::span<Term> terms) {
        if (std::ranges::any_of(terms, is_time)) return apply_to_times(node, given, terms);
        const bool where = given.operands == Function::Operands::where;
        Number number = computed_with(given.operands, common(node, where ? terms.subspan(1) : terms));
        if (all_literals(terms)) number = python_number(given, terms, number);
        const Function* function = &given;
        if (given.name == "power" && terms[1].literal && number_class(number) == NumberClass::real) {
            // As NumPy does for these powers, because it is more exact.
            const double power = as_double(*terms[1].literal);
            const std::string_view exact = power == 2 ? "square" : power == 0.5 ? "sqrt" : power == 1 ? "positive" : "";
            if (!exact.empty()) {
                function = find_function(exact);
                terms = terms.first(1);
            }
        }
        const Kernel kernel = function->find(number);
        if (kernel == nullptr) {
            throw error(node, fmt::format("{} has no meaning for {}{}", given.name, number_name(number),
                                          given.name == "bitwise_xor" ? "; the power is **, as in Python" : ""));
        }
        Step step{.kernel = kernel, .in = {}, .arguments = static_cast<int>(terms.size()), .out = {}};
        for (std::size_t i = 0; i < terms.size(); ++i) {
            const bool mask = where && i == 0;
            if (mask && term_class(terms[i]) != NumberClass::boolean) {
                throw error(node, "the condition of where must be bool, as `a != 0` is");
            }
            step.in.at(i) = placed(node, terms[i], mask ? Number::b1 : number);
        }
        Number result = number;
        if (function->result == Function::Result::boolean) result = Number::b1;
        if (function->result == Function::Result::real && number == Number::c8) result = Number::f4;
        if (function->result == Function::Result::real && number == Number::c16) result = Number::f8;
        if (all_literals(terms)) return {folded(step, result), {}};
        step.out = {RowPlace::Type::row, take_row(), result};
        for (std::size_t i = 0; i < terms.size(); ++i) release(step.in.at(i));
        program_.steps.push_back(step);
        return {std::nullopt, step.out};
    }

    /// Literals alone are computed as in Python, within 64 bits: 1 / 2 and 2 ** -1 are 0.5, and True + True is 2.
    [[nodiscard]] static Number python_number(const Function& function, std::span<const Term> terms, Number number) {
        const bool bits = function.name.starts_with("bitwise") || function.name == "invert";
        if (function.result == Function::Result::boolean || number_class(number) > NumberClass::integer) return number;
        if (function.operands == Function::Operands::inexact) return Number::f8;
        if (function.name == "power" && as_double(*terms[1].literal) < 0) return Number::f8;
        return number == Number::u8 || (bits && number == Number::b1) || function.name == "where" ? number : Number::i8;
    }

    [[nodiscard]] static NumberClass term_class(const Term& term) {
        return term.literal ? number_class(*term.literal) : number_class(term.place.number);
    }

    RowPlace placed(const Expression& node, const Term& term, Number number) {
        return term.literal ? constant(node, *term.literal, number) : converted(term.place, number);
    }

    RowPlace converted(const RowPlace& place, Number number) {
        if (place.number == number) return place;
        Step step{.kernel = nullptr, .in = {place}, .arguments = 1, .out = {RowPlace::Type::row, take_row(), number}};
        release(place);
        program_.steps.push_back(step);
        return step.out;
    }

    RowPlace constant(const Expression& node, const Literal& v, Number number) {
        std::array<std::byte, most_bytes> element{};
        const DType from = dtype_of(own_number(v));
        const DType to = dtype_of(number);
        std::visit([&](auto x) { std::memcpy(element.data(), &x, sizeof x); }, v);
        std::array<std::byte, most_bytes> made{};
        const bool fits = number_class(v) <= number_class(number) &&
                          !cast_packed(from, element.data(), to, made.data(), 1, Cast::round).has_value();
        if (!fits) {
            throw error(node, fmt::format("{} does not fit {}: convert an operand, as in int64(a)", literal_text(v),
                                          number_name(number)));
        }
        return repeated(made.data(), {RowPlace::Type::constant, 0, number});
    }

    /// A row of one element. `place` says its type.
    RowPlace repeated(const std::byte* element, RowPlace place) {
        const auto size = static_cast<std::size_t>(place.dtype().size());
        std::vector<std::byte> whole(static_cast<std::size_t>(row_length) * size);
        for (std::size_t i = 0; i < static_cast<std::size_t>(row_length); ++i) {
            std::memcpy(whole.data() + i * size, element, size);
        }
        program_.constants.push_back(std::move(whole));
        place.index = program_.constants.size() - 1;
        return place;
    }

    /// The value of a step on literals alone.
    Literal folded(const Step& step, Number result) {
        std::array<const std::byte*, 3> in{};
        for (int i = 0; i < step.arguments; ++i) {
            in.at(static_cast<std::size_t>(i)) =
                program_.constants[step.in.at(static_cast<std::size_t>(i)).index].data();
        }
        alignas(16) std::array<std::byte, most_bytes> element{};
        step.kernel(in.data(), element.data(), 1);
        program_.constants.resize(program_.constants.size() - static_cast<std::size_t>(step.arguments));
        const auto value = [&](auto x) -> Literal {
            std::memcpy(&x, element.data(), sizeof x);
            return x;
        };
        if (result == Number::b1) return element[0] != std::byte{0};
        if (result == Number::f8) return value(double{});
        return result == Number::u8 ? value(std::uint64_t{}) : value(std::int64_t{});
    }

    /// A row that no later step reads.
    std::size_t take_row() {
        if (free_.empty()) return program_.rows++;
        const std::size_t taken = free_.back();
        free_.pop_back();
        return taken;
    }

    /// Call after take_row() for the last step that reads it, so that no step writes a row that it reads.
    void release(const RowPlace& place) {
        if (place.type == RowPlace::Type::row) free_.push_back(place.index);
    }

    std::string_view text_;
    std::span<const CalcOperand> operands_;
    std::vector<bool> used_;
    Program program_;
    std::vector<std::size_t> free_;
};

}  // namespace

Program compile_tree(std::string_view text, const Expression& tree, const std::vector<CalcOperand>& operands) {
    return Compiler(text, operands).compile_tree(tree);
}

}  // namespace tessera
