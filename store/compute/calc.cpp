#include <tessera/calc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include <tessera/buffer.h>
#include <tessera/cast.h>
#include <tessera/copy_elements.h>
#include <tessera/error.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>

#include "expression.h"
#include "kernels.h"

namespace tessera {

namespace {

constexpr std::int64_t piece = 1024;     ///< elements that pass all steps before the next piece
constexpr std::int64_t most_bytes = 16;  ///< of an element
constexpr std::int64_t row_bytes = piece * most_bytes;

/// The location of a row of elements: an operand's, a constant's, or an intermediate row.
struct Place {
    enum class Type : std::uint8_t { operand, constant, row };
    Type type = Type::row;
    std::size_t index = 0;
    Number number = Number::b1;
};

/// One loop over a row.
struct Step {
    Kernel kernel = nullptr;  ///< nullptr: conversion of in[0]
    std::array<Place, 3> in;
    int arguments = 0;
    Place out;
};

struct Program {
    std::vector<Step> steps;
    std::vector<std::vector<std::byte>> constants;  ///< one row for each
    std::size_t rows = 0;                           ///< intermediate rows needed at the same time
    Place result;
};

/// A part of an expression: a literal, whose dtype depends on the other operands, or a row.
struct Term {
    std::optional<Literal> literal;
    Place place;
};

/// 0 for a bool, 1 for an int, 2 for a float.
int kind_of(const Literal& v) {
    if (std::holds_alternative<bool>(v)) return 0;
    return std::holds_alternative<double>(v) ? 2 : 1;
}

double as_double(const Literal& v) {
    return std::visit([](auto x) { return static_cast<double>(x); }, v);
}

Number own_number(const Literal& v) {
    constexpr std::array<Number, 4> numbers{Number::b1, Number::i8, Number::u8, Number::f8};
    return numbers.at(v.index());
}

int kind_of(Number number) {
    const Kind kind = dtype_of(number).kind();
    if (kind == Kind::boolean) return 0;
    if (kind == Kind::integer || kind == Kind::unsigned_integer) return 1;
    return kind == Kind::complex ? 3 : 2;
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

    Program compile() {
        const auto tree = parse_expression(text_);
        const Term term = compile(*tree);
        program_.result = term.literal ? constant(*tree, *term.literal, own_number(*term.literal)) : term.place;
        for (std::size_t i = 0; i < used_.size(); ++i) {
            if (used_[i]) continue;
            throw invalid_argument(fmt::format("'{}': the operand {} is not used", text_, operands_[i].name));
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
            default:
                return call(node);
        }
    }

    Term name(const Expression& node) {
        for (std::size_t i = 0; i < operands_.size(); ++i) {
            if (operands_[i].name != node.name) continue;
            used_[i] = true;
            const DType dtype = operands_[i].array->info().dtype;
            const auto number = number_of(dtype);
            if (!number) {
                throw error(node, fmt::format("elements of {} are not computed with", dtype.to_string()));
            }
            return {std::nullopt, {Place::Type::operand, i, *number}};
        }
        if (node.name == "True") return {Literal(true), {}};
        if (node.name == "False") return {Literal(false), {}};
        if (node.name == "nan") return {Literal(std::numeric_limits<double>::quiet_NaN()), {}};
        if (node.name == "inf") return {Literal(std::numeric_limits<double>::infinity()), {}};
        if (node.name == "pi") return {Literal(std::numbers::pi), {}};
        if (node.name == "e") return {Literal(std::numbers::e), {}};
        std::string known;
        for (const CalcOperand& operand : operands_)
            known += fmt::format("{}{}", known.empty() ? "" : ", ", operand.name);
        throw error(node, fmt::format("unknown name '{}'; {}", node.name,
                                      known.empty() ? "there are no operands (a=PATH)" : "the operands are " + known));
    }

    Term call(const Expression& node) {
        if (node.name == "clip") return clip(node);
        for (std::size_t i = 0; i < 14; ++i) {
            const auto number = static_cast<Number>(i);
            const bool named = number_name(number) == node.name || (number == Number::b1 && node.name == "bool_");
            if (named) return conversion(node, number);
        }
        const Function* function = find_function(node.name);
        if (function == nullptr) {
            throw error(node,
                        fmt::format("unknown function '{}'; `tessera calc --help` lists those there are", node.name));
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
            } else if (kind_of(*term.literal) > kind_of(*number)) {
                number = kind_of(*term.literal) == 1 ? Number::i8 : Number::f8;
            }
        }
        return *number;
    }

    static bool all_literals(std::span<const Term> terms) {
        return std::ranges::all_of(terms, [](const Term& term) { return term.literal.has_value(); });
    }

    [[nodiscard]] static Number computed_with(Function::Operands rule, Number number) {
        const bool whole = kind_of(number) <= 1;
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

    Term apply(const Expression& node, const Function& given, std::span<Term> terms) {
        const bool where = given.operands == Function::Operands::where;
        Number number = computed_with(given.operands, common(node, where ? terms.subspan(1) : terms));
        if (all_literals(terms)) number = python_number(given, terms, number);
        const Function* function = &given;
        if (given.name == "power" && terms[1].literal && kind_of(number) == 2) {
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
            throw error(node, fmt::format("{} has no meaning for {}", given.name, number_name(number)));
        }
        Step step{.kernel = kernel, .in = {}, .arguments = static_cast<int>(terms.size()), .out = {}};
        for (std::size_t i = 0; i < terms.size(); ++i) {
            const bool mask = where && i == 0;
            if (mask && kind_of_term(terms[i]) != 0) {
                throw error(node, "the condition of where must be bool, as `a != 0` is");
            }
            step.in.at(i) = placed(node, terms[i], mask ? Number::b1 : number);
        }
        Number result = number;
        if (function->result == Function::Result::boolean) result = Number::b1;
        if (function->result == Function::Result::real && number == Number::c8) result = Number::f4;
        if (function->result == Function::Result::real && number == Number::c16) result = Number::f8;
        if (all_literals(terms)) return {folded(step, result), {}};
        step.out = {Place::Type::row, take_row(), result};
        for (std::size_t i = 0; i < terms.size(); ++i) release(step.in.at(i));
        program_.steps.push_back(step);
        return {std::nullopt, step.out};
    }

    /// Literals alone are computed as in Python, within 64 bits: 1 / 2 and 2 ** -1 are 0.5, and True + True is 2.
    [[nodiscard]] static Number python_number(const Function& function, std::span<const Term> terms, Number number) {
        const bool bits = function.name.starts_with("bitwise") || function.name == "invert";
        if (function.result == Function::Result::boolean || kind_of(number) > 1) return number;
        if (function.operands == Function::Operands::inexact) return Number::f8;
        if (function.name == "power" && as_double(*terms[1].literal) < 0) return Number::f8;
        return number == Number::u8 || (bits && number == Number::b1) || function.name == "where" ? number : Number::i8;
    }

    [[nodiscard]] static int kind_of_term(const Term& term) {
        return term.literal ? kind_of(*term.literal) : kind_of(term.place.number);
    }

    Place placed(const Expression& node, const Term& term, Number number) {
        return term.literal ? constant(node, *term.literal, number) : converted(term.place, number);
    }

    Place converted(const Place& place, Number number) {
        if (place.number == number) return place;
        Step step{.kernel = nullptr, .in = {place}, .arguments = 1, .out = {Place::Type::row, take_row(), number}};
        release(place);
        program_.steps.push_back(step);
        return step.out;
    }

    Place constant(const Expression& node, const Literal& v, Number number) {
        std::array<std::byte, most_bytes> element{};
        const DType from = dtype_of(own_number(v));
        const DType to = dtype_of(number);
        std::visit([&](auto x) { std::memcpy(element.data(), &x, sizeof x); }, v);
        std::array<std::byte, most_bytes> made{};
        const bool fits = kind_of(v) <= kind_of(number) &&
                          !cast_packed(from, element.data(), to, made.data(), 1, Cast::round).has_value();
        if (!fits) {
            throw error(node, fmt::format("{} does not fit {}: convert an operand, as in int64(a)", literal_text(v),
                                          number_name(number)));
        }
        const auto size = static_cast<std::size_t>(to.size());
        std::vector<std::byte> whole(static_cast<std::size_t>(piece) * size);
        for (std::size_t i = 0; i < static_cast<std::size_t>(piece); ++i) {
            std::memcpy(whole.data() + i * size, made.data(), size);
        }
        program_.constants.push_back(std::move(whole));
        return {Place::Type::constant, program_.constants.size() - 1, number};
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
    void release(const Place& place) {
        if (place.type == Place::Type::row) free_.push_back(place.index);
    }

    std::string_view text_;
    std::span<const CalcOperand> operands_;
    std::vector<bool> used_;
    Program program_;
    std::vector<std::size_t> free_;
};

/// The broadcast shape of the operands.
Shape broadcast(std::string_view text, std::span<const CalcOperand> operands, const std::optional<Shape>& wanted) {
    Shape shape = wanted.value_or(Shape());
    const auto shapes = [&] {
        std::string list;
        for (const CalcOperand& operand : operands) {
            list +=
                fmt::format("{}{} {}", list.empty() ? "" : ", ", operand.name, operand.array->info().shape.to_string());
        }
        return list;
    };
    for (const CalcOperand& operand : operands) {
        const Shape own = operand.array->info().shape;
        const int rank = wanted ? shape.rank() : std::max(shape.rank(), own.rank());
        Shape both = Shape::filled(rank, 1);
        bool fits = own.rank() <= rank;
        for (int k = 1; fits && k <= rank; ++k) {
            const std::int64_t a = k <= shape.rank() ? shape[shape.rank() - k] : 1;
            const std::int64_t b = k <= own.rank() ? own[own.rank() - k] : 1;
            fits = a == b || b == 1 || (a == 1 && !wanted);
            both[rank - k] = a == 1 && !wanted ? b : a;
        }
        if (!fits) {
            throw invalid_argument(fmt::format("'{}': shapes do not broadcast{}: {}", text,
                                               wanted ? fmt::format(" to {}", wanted->to_string()) : "", shapes()));
        }
        shape = both;
    }
    return shape;
}

class CalcSource final : public ArraySource {
public:
    CalcSource(std::string_view text, std::vector<CalcOperand> operands, const std::optional<Shape>& shape)
        : operands_(std::move(operands)), program_(Compiler(text, operands_).compile()), name_(text) {
        info_.dtype = dtype_of(program_.result.number);
        info_.shape = broadcast(text, operands_, shape);
        item_ = info_.dtype.size();
        for (const CalcOperand& operand : operands_) {
            const ArrayInfo from = operand.array->info();
            item_ += 2 * from.dtype.size();
            // Blocks follow the chunks of the first operand that is not broadcast.
            const bool chunked = from.chunks.rank() == from.shape.rank() && !from.chunks.empty();
            if (from.shape == info_.shape && chunked && info_.chunks.empty()) info_.chunks = from.chunks;
        }
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        for_each_slice(info_, item_, region, io.stop, [&](const Region& slice) {
            std::vector<NDArray> values;
            for (const CalcOperand& operand : operands_) values.push_back(read_operand(*operand.array, slice, io));
            NDArray made(info_.dtype, slice.extent);
            run(values, made);
            copy_elements(made.view(), out.part(within(region, slice)));
        });
    }

private:
    /// An operand's part of a slice, broadcast and packed, in its dtype for computation.
    [[nodiscard]] static NDArray read_operand(const ArraySource& array, const Region& slice, const IoOptions& io) {
        const ArrayInfo info = array.info();
        const int missing = slice.rank() - info.shape.rank();
        Region own = Region::whole(info.shape);
        for (int d = 0; d < own.rank(); ++d) {
            if (info.shape[d] == 1) continue;
            own.start[d] = slice.start[d + missing];
            own.extent[d] = slice.extent[d + missing];
        }
        NDArray elements(native_dtype(info.dtype), own.extent);
        array.read_into(own, elements.view(), io);
        if (info.dtype.kind() == Kind::bfloat16) {
            NDArray wide(DType::of<float>(), own.extent);
            (void)cast_packed(elements.dtype(), elements.bytes().data(), wide.dtype(), wide.bytes().data(),
                              elements.count(), Cast::unsafe);
            elements = std::move(wide);
        }
        if (own.extent == slice.extent) return elements;
        ArrayView view = elements.view();
        const Strides strides = view.strides;
        view.shape = slice.extent;
        view.strides = Strides::filled(slice.rank(), 0);
        for (int d = 0; d < own.rank(); ++d) {
            if (own.extent[d] != 1) view.strides[d + missing] = strides[d];
        }
        NDArray whole(elements.dtype(), slice.extent);
        copy_elements(view, whole.view());
        return whole;
    }

    void run(const std::vector<NDArray>& values, NDArray& made) const {
        Buffer memory(program_.rows * static_cast<std::size_t>(row_bytes));
        const std::int64_t count = made.count();
        for (std::int64_t first = 0; first < count; first += piece) {
            const std::int64_t n = std::min(piece, count - first);
            const auto at = [&](const Place& place) -> const std::byte* {
                switch (place.type) {
                    case Place::Type::operand:
                        return values[place.index].bytes().data() + first * values[place.index].dtype().size();
                    case Place::Type::constant:
                        return program_.constants[place.index].data();
                    default:
                        return memory.data() + place.index * static_cast<std::size_t>(row_bytes);
                }
            };
            for (const Step& step : program_.steps) {
                std::byte* out = memory.data() + step.out.index * static_cast<std::size_t>(row_bytes);
                if (step.kernel == nullptr) {
                    (void)cast_packed(dtype_of(step.in[0].number), at(step.in[0]), dtype_of(step.out.number), out, n,
                                      Cast::unsafe);
                    continue;
                }
                std::array<const std::byte*, 3> in{};
                for (std::size_t i = 0; std::cmp_less(i, step.arguments); ++i) in.at(i) = at(step.in.at(i));
                step.kernel(in.data(), out, n);
            }
            std::memcpy(made.bytes().data() + first * info_.dtype.size(), at(program_.result),
                        static_cast<std::size_t>(n * info_.dtype.size()));
        }
    }

    std::vector<CalcOperand> operands_;
    Program program_;
    std::string name_;
    ArrayInfo info_;
    std::int64_t item_ = 0;  ///< bytes of an element during computation
};

}  // namespace

std::unique_ptr<ArraySource> calc_source(std::string_view expression, std::vector<CalcOperand> operands,
                                         const std::optional<Shape>& shape) {
    return std::make_unique<CalcSource>(expression, std::move(operands), shape);
}

std::vector<std::string_view> calc_functions() {
    std::vector<std::string_view> names;
    for (const Function& function : functions()) names.push_back(function.name);
    names.emplace_back("clip");
    return names;
}

}  // namespace tessera
