#include "constant_elsewhere.h"

#include <tessera/array.h>
#include <tessera/copy_elements.h>
#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/slices.h>
#include <tessera/value.h>
#include <tessera/view.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "condition.h"
#include "expression.h"

namespace tessera {

namespace {

/// A number, a truth value, nan or inf; null for anything else.
// NOLINTNEXTLINE(misc-no-recursion): the parser limits the depth
Value constant_of(const Expression& tree) {
    if (tree.type == Expression::Type::name) {
        if (tree.name == "True" || tree.name == "False") return tree.name == "True";
        if (tree.name == "nan") return std::numeric_limits<double>::quiet_NaN();
        if (tree.name == "inf") return std::numeric_limits<double>::infinity();
        return {};
    }
    if (tree.type == Expression::Type::literal) {
        return std::visit([](auto literal) { return Value(literal); }, tree.literal);
    }
    if (tree.type != Expression::Type::call || tree.name != "negative" || tree.arguments.size() != 1) return {};
    const Value number = constant_of(*tree.arguments[0]);
    if (number.is_double()) return -number.as_double();
    constexpr double too_large = 9e18;
    return number.is_integer() && number.as_double() < too_large ? Value(-number.as_int64()) : Value();
}

class ConstantElsewhere final : public ArraySource {
public:
    ConstantElsewhere(std::unique_ptr<ArraySource> computed, CandidateChunks chunks, ElementBytes constant)
        : computed_(std::move(computed)), chunks_(std::move(chunks)), constant_(std::move(constant)) {}

    [[nodiscard]] ArrayInfo info() const override { return computed_->info(); }
    [[nodiscard]] const std::string& name() const override { return computed_->name(); }
    [[nodiscard]] Value attribute_values() const override { return computed_->attribute_values(); }
    [[nodiscard]] std::optional<ElementBytes> fill_bytes() const override { return computed_->fill_bytes(); }
    [[nodiscard]] const ArraySource* model() const override { return computed_->model(); }
    [[nodiscard]] const ArraySource* converted_from() const override { return computed_->converted_from(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        if (region.empty()) return;
        const DType dtype = native_dtype(computed_->info().dtype);
        for_each_candidate_run(chunks_, region, [&](const Region& part, bool may) {
            const MutableArrayView to = out.part(within(region, part));
            may ? computed_->read_into(part, to, io) : fill_elements(to, dtype, constant_.data());
        });
    }

private:
    std::unique_ptr<ArraySource> computed_;
    CandidateChunks chunks_;
    ElementBytes constant_;  ///< in host order
};

/// The array that an operand is, or is decoded from; nullptr if it is no stored one.
const Array* stored(const ArraySource& operand) {
    const Array* const array = as_array(operand);
    const ArraySource* const from = operand.converted_from();
    return array != nullptr || from == nullptr ? array : as_array(*from);
}

}  // namespace

std::unique_ptr<ArraySource> constant_elsewhere(std::unique_ptr<ArraySource> computed, std::string_view expression,
                                                const std::vector<CalcOperand>& operands, bool raw,
                                                const IoOptions& io) {
    const auto tree = parse_expression(expression);
    if (tree->type != Expression::Type::call || tree->name != "where" || tree->arguments.size() != 3) return computed;
    std::string name;
    const auto condition = condition_about_operand(*tree->arguments[0], name);
    const Value constant = constant_of(*tree->arguments[2]);
    const bool is_operand = std::ranges::any_of(
        operands, [&](const CalcOperand& operand) { return names_operand(*tree->arguments[2], operand.name); });
    if (!condition || constant.is_null() || is_operand) return computed;
    for (const CalcOperand& operand : operands) {
        const Array* const array = operand.name == name ? stored(*operand.array) : nullptr;
        const Shape shape = computed->info().shape;
        if (array == nullptr || operand.array->info().shape != shape) continue;
        auto chunks =
            candidate_chunks(*array, raw, true, ElementCondition(*operand.array, *condition), Region::whole(shape), io);
        if (!chunks || chunks->left_out == 0) break;
        ElementBytes element = element_from_value(native_dtype(computed->info().dtype), constant, Assign::numpy);
        return std::make_unique<ConstantElsewhere>(std::move(computed), *std::move(chunks), std::move(element));
    }
    return computed;
}

}  // namespace tessera
