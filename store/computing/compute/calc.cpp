#include <tessera/calc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <tessera/buffer.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>

#include "calc_program.h"
#include "calc_reductions.h"
#include "converted_source.h"
#include "expression.h"
#include "named_operands.h"
#include "text_comparison.h"

namespace tessera {

namespace {

constexpr std::int64_t usual_reducing = std::int64_t{64} << 20;  // as of calc_source()

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
            throw invalid_argument("'{}': shapes do not broadcast{}: {}", text,
                                   wanted ? fmt::format(" to {}", wanted->to_string()) : "", shapes());
        }
        shape = both;
    }
    return shape;
}

class CalcSource final : public ArraySource {
public:
    CalcSource(std::string_view text, const Expression& tree, NamedOperands operands, const std::optional<Shape>& shape)
        : operands_(std::move(operands.operands)),
          names_(std::move(operands.names)),
          program_(compile_tree(text, tree, operands_)),
          name_(text) {
        info_.dtype = program_.result.dtype();
        info_.shape = broadcast(text, operands_, shape);
        item_ = info_.dtype.size();
        for (const CalcOperand& operand : operands_) {
            const ArrayInfo from = operand.array->info();
            // Elements that are broadcast or made wider are held in both forms.
            const std::int64_t size = from.dtype.kind() == Kind::bfloat16 ? 6 : from.dtype.size();
            item_ += from.shape == info_.shape ? size : 2 * size;
            // Blocks follow the chunks of the first operand that is not broadcast.
            const bool chunked = from.chunks.rank() == from.shape.rank() && !from.chunks.empty();
            if (from.shape == info_.shape && chunked && info_.chunks.empty()) info_.chunks = from.chunks;
            info_.working = std::max(info_.working, reading_memory(from));
        }
        info_.working += slice_memory(info_, item_) + static_cast<std::int64_t>(program_.rows) * row_bytes;
        // A copy counts a chunk of this source twice, of which there is none.
        if (!info_.chunks.empty()) info_.working -= 2 * byte_count(info_.chunks, info_.dtype.size());
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    /// Where the result lies, as its first operand of this shape does, and what its missing elements are.
    [[nodiscard]] Value attribute_values() const override {
        Value attributes = Value::object();
        if (!names_.empty()) attributes.set(dimensions_attribute, dimension_names_json(names_));
        bool placed = false, marked = false;
        for (const CalcOperand& operand : operands_) {
            const Value own = operand.array->attribute_values();
            marked |= operand.array->converted_from() != nullptr && own.find(fill_attribute) != nullptr;
            if (placed || operand.array->info().shape != info_.shape) continue;
            placed = true;
            if (const auto place = geo_reference_in(own)) set_geo_reference(attributes, *place);
            for (const char* name : {"grid_mapping", "coordinates"}) {
                if (const Value* value = own.find(name)) attributes.set(name, *value);
            }
        }
        if (marked && info_.dtype.kind() == Kind::real) {
            attributes.set(fill_attribute, std::numeric_limits<double>::quiet_NaN());
        }
        return attributes;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        std::vector<NDArray> values(operands_.size());
        NDArray made;
        for_each_slice(info_, item_, region, io.stop, [&](const Region& slice) {
            for (std::size_t i = 0; i < values.size(); ++i) read_operand(*operands_[i].array, slice, io, values[i]);
            make_room(made, info_.dtype, slice.extent);
            run(values, made);
            copy_elements(made.view(), out.part(within(region, slice)));
        });
    }

private:
    /// An operand's part of a slice, broadcast and packed, in its dtype for computation.
    static void read_operand(const ArraySource& array, const Region& slice, const IoOptions& io, NDArray& elements) {
        const ArrayInfo info = array.info();
        const int missing = slice.rank() - info.shape.rank();
        Region own = Region::whole(info.shape);
        for (int d = 0; d < own.rank(); ++d) {
            if (info.shape[d] == 1) continue;
            own.start[d] = slice.start[d + missing];
            own.extent[d] = slice.extent[d + missing];
        }
        make_room(elements, native_dtype(info.dtype), own.extent);
        array.read_into(own, elements.view(), io);
        if (info.dtype.kind() == Kind::bfloat16) {
            NDArray wide(DType::of<float>(), own.extent);
            (void)cast_packed(elements.dtype(), elements.bytes().data(), wide.dtype(), wide.bytes().data(),
                              elements.count(), Cast::unsafe);
            elements = std::move(wide);
        }
        if (own.extent == slice.extent) return;
        ArrayView view = elements.view();
        const Strides strides = view.strides;
        view.shape = slice.extent;
        view.strides = Strides::filled(slice.rank(), 0);
        for (int d = 0; d < own.rank(); ++d) {
            if (own.extent[d] != 1) view.strides[d + missing] = strides[d];
        }
        NDArray whole(elements.dtype(), slice.extent);
        copy_elements(view, whole.view());
        elements = std::move(whole);
    }

    void run(const std::vector<NDArray>& values, NDArray& made) const {
        Buffer memory(program_.rows * static_cast<std::size_t>(row_bytes));
        const std::int64_t count = made.count();
        for (std::int64_t first = 0; first < count; first += row_length) {
            const std::int64_t n = std::min(row_length, count - first);
            const auto at = [&](const RowPlace& place) -> const std::byte* {
                switch (place.type) {
                    case RowPlace::Type::operand:
                        return values[place.index].bytes().data() + first * values[place.index].dtype().size();
                    case RowPlace::Type::constant:
                        return program_.constants[place.index].data();
                    default:
                        return memory.data() + place.index * static_cast<std::size_t>(row_bytes);
                }
            };
            for (const Step& step : program_.steps) {
                std::byte* out = memory.data() + step.out.index * static_cast<std::size_t>(row_bytes);
                if (step.kernel == nullptr && step.out.time) {
                    convert_times(*step.in[0].time, step.out.time->unit, at(step.in[0]), out, n);
                    continue;
                }
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
    DimensionNames names_;  ///< empty: those of operands, by position
    Program program_;
    std::string name_;
    ArrayInfo info_;
    std::int64_t item_ = 0;  ///< bytes of an element during computation
};

}  // namespace

std::unique_ptr<ArraySource> source_of_tree(std::string_view text, const Expression& tree,
                                            std::vector<CalcOperand> operands, const std::optional<Shape>& shape,
                                            std::vector<Note>* notes) {
    NamedOperands placed =
        shape ? NamedOperands{.operands = std::move(operands)} : by_names(text, std::move(operands), nullptr, notes);
    return std::make_unique<CalcSource>(text, tree, std::move(placed), shape);
}

std::unique_ptr<ArraySource> calc_source(std::string_view expression, std::vector<CalcOperand> operands,
                                         const std::optional<Shape>& shape, std::int64_t reducing) {
    std::vector<Note> notes;
    const auto tree = parse_expression(expression);
    replace_text_comparisons(*tree, operands);
    if (reducing > 0) replace_reductions(expression, *tree, operands, reducing, notes);
    return source_of_tree(expression, *tree, std::move(operands), shape);
}

std::unique_ptr<ArraySource> calc_source_into(std::string_view expression, std::vector<CalcOperand> operands,
                                              const std::shared_ptr<const ArraySource>& into) {
    std::vector<Note> notes;
    const auto tree = parse_expression(expression);
    replace_text_comparisons(*tree, operands);
    replace_reductions(expression, *tree, operands, usual_reducing, notes);
    return std::make_unique<CalcSource>(expression, *tree, by_names(expression, std::move(operands), into),
                                        into->info().shape);
}

std::unique_ptr<ArraySource> noted_calc_source(std::string_view expression, std::vector<CalcOperand> operands,
                                               std::int64_t reducing, std::vector<Note>& notes) {
    const auto tree = parse_expression(expression);
    replace_text_comparisons(*tree, operands);
    replace_reductions(expression, *tree, operands, reducing, notes);
    return source_of_tree(expression, *tree, std::move(operands), std::nullopt, &notes);
}

std::vector<std::string_view> calc_functions() {
    std::vector<std::string_view> names;
    for (const Function& function : functions()) names.push_back(function.name);
    names.emplace_back("clip");
    return names;
}

}  // namespace tessera
