#include "text_comparison.h"

#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>

#include <algorithm>
#include <array>
#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

namespace {

struct TextOrder {
    std::string_view function, mirrored;
    bool less, equal, greater;  ///< whether it holds then
};
constexpr std::array<TextOrder, 6> text_comparisons{{{"equal", "equal", false, true, false},
                                                     {"not_equal", "not_equal", true, false, true},
                                                     {"less", "greater", true, false, false},
                                                     {"less_equal", "greater_equal", true, true, false},
                                                     {"greater", "less", false, false, true},
                                                     {"greater_equal", "less_equal", false, true, true}}};

const TextOrder* text_order_of(std::string_view function) {
    const auto* const found = std::ranges::find(text_comparisons, function, &TextOrder::function);
    return found == text_comparisons.end() ? nullptr : found;
}

bool is_compared_text(const DType& dtype) {
    return dtype.kind() == Kind::text || dtype.kind() == Kind::bytes || dtype.kind() == Kind::variable_text;
}

/// Whether elements of text compare so with one text: by code points, which UTF-8 keeps in order.
class ComparedText final : public ArraySource {
public:
    ComparedText(CalcOperand operand, const TextOrder& comparison, std::string text)
        : from_(operand.array->info()),
          dtype_(native_dtype(from_.dtype)),
          array_(std::move(operand.array)),
          comparison_(comparison),
          text_(std::move(text)),
          name_(std::move(operand.name)) {}

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info{.dtype = DType::scalar(Kind::boolean, 1, ByteOrder::none), .shape = from_.shape, .chunks = {}};
        info.chunks = from_.chunks;
        info.working = from_.working + slice_memory(from_, from_.dtype.size());
        info.access = from_.access;
        return info;
    }
    [[nodiscard]] const std::string& name() const override { return name_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, from_.shape);
        if (region.empty()) return;
        for_each_slice(from_, from_.dtype.size(), region, io.stop, [&](const Region& slice) {
            NDArray elements(dtype_, slice.extent);
            array_->read_into(slice, elements.view(), io);
            NDArray holds(out.dtype, slice.extent);
            const std::byte* p = elements.bytes().data();
            for (std::byte& one : holds.bytes()) {
                one = static_cast<std::byte>(compare(p) ? 1 : 0);
                p += dtype_.size();
            }
            Region part = slice;
            for (int d = 0; d < part.rank(); ++d) part.start[d] -= region.start[d];
            copy_elements(holds.view(), out.part(part));
        });
    }

private:
    [[nodiscard]] bool compare(const std::byte* element) const {
        const auto order = dtype_.is_variable()
                               ? reinterpret_cast<const VariableSlot*>(element)->view() <=> std::string_view(text_)
                               : element_to_value(dtype_, element).as_string() <=> text_;
        return std::is_lt(order) ? comparison_.less : std::is_gt(order) ? comparison_.greater : comparison_.equal;
    }

    ArrayInfo from_;
    DType dtype_;
    std::shared_ptr<const ArraySource> array_;
    TextOrder comparison_;
    std::string text_, name_;
};

class Replacing {
public:
    explicit Replacing(std::vector<CalcOperand>& operands) : operands_(operands), compared_(operands.size(), false) {}

    void replace(Expression& node) {
        if (!replaced(node)) {
            for (const auto& argument : node.arguments) replace(*argument);
        }
    }

    /// Leaves out what is text, and stands nowhere but in comparisons.
    void drop(const Expression& tree) {
        for (std::size_t i = compared_.size(); i-- > 0;) {
            if (compared_[i] && !names_operand(tree, operands_[i].name)) {
                operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }

private:
    bool replaced(Expression& node) {
        const TextOrder* comparison =
            node.type == Expression::Type::call && node.arguments.size() == 2 ? text_order_of(node.name) : nullptr;
        if (comparison == nullptr) return false;
        const Expression* operand = node.arguments[0].get();
        const Expression* text = node.arguments[1].get();
        if (operand->type == Expression::Type::text) {
            std::swap(operand, text);
            comparison = text_order_of(comparison->mirrored);
        }
        if (operand->type != Expression::Type::name || text->type != Expression::Type::text) return false;
        const auto found = std::ranges::find(operands_, operand->name, &CalcOperand::name);
        if (found == operands_.end() || !is_compared_text(found->array->info().dtype)) return false;
        compared_[static_cast<std::size_t>(found - operands_.begin())] = true;
        // No name that an expression can have.
        std::string name = fmt::format("{} {} '{}' {}", found->name, comparison->function, text->name, node.at);
        CalcOperand holds{name, std::make_shared<ComparedText>(*found, *comparison, text->name)};
        operands_.push_back(std::move(holds));
        node.type = Expression::Type::name;
        node.name = std::move(name);
        node.arguments.clear();
        return true;
    }

    std::vector<CalcOperand>& operands_;
    std::vector<bool> compared_;
};

}  // namespace

void replace_text_comparisons(Expression& tree, std::vector<CalcOperand>& operands) {
    Replacing replacing(operands);
    replacing.replace(tree);
    replacing.drop(tree);
}

}  // namespace tessera
