// Which chunks can match is found out by the condition itself: "value > 40" holds for some element of a chunk only if
// it holds for the greatest, and "value < 50" only if it holds for the least. So each comparison is computed for all
// least or greatest elements, with the rounding and the types that it has for elements. NaN meets no comparison but !=.
// What is not stored is one element over and over, for which the condition is computed once.
#include "condition.h"

#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/calc.h>
#include <tessera/chunk_index.h>
#include <tessera/conventions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "expression.h"

namespace tessera {

namespace {

/// "value OP number".
struct Comparison {
    std::string_view op;
    std::string number;
};

/// The text of a number; empty for anything else.
std::string number_text(const Expression& tree) {
    if (tree.type == Expression::Type::call && tree.name == "negative" && tree.arguments.size() == 1) {
        const std::string number = number_text(*tree.arguments[0]);
        return number.empty() || number.starts_with('-') ? "" : "-" + number;
    }
    if (tree.type != Expression::Type::literal) return "";
    return std::visit(
        [](auto literal) -> std::string {
            if constexpr (std::is_same_v<decltype(literal), bool>) return "";
            if constexpr (std::is_same_v<decltype(literal), double>) return fmt::format("{:.17e}", literal);
            return fmt::format("{}", literal);
        },
        tree.literal);
}

/// Adds the comparisons of one operand with numbers that a tree joins by &; `operand` becomes its name, unless it has
/// one. False if there is anything else, too.
// NOLINTNEXTLINE(misc-no-recursion): the parser limits the depth
bool add_comparisons(const Expression& tree, std::string& operand, std::vector<Comparison>& to) {
    struct Row {
        std::string_view function, op, turned;
    };
    constexpr std::array<Row, 5> rows{{{"less", "<", ">"},
                                       {"greater", ">", "<"},
                                       {"less_equal", "<=", ">="},
                                       {"greater_equal", ">=", "<="},
                                       {"equal", "==", "=="}}};
    if (tree.type != Expression::Type::call || tree.arguments.size() != 2) return false;
    const Expression& left = *tree.arguments[0];
    const Expression& right = *tree.arguments[1];
    if (tree.name == "bitwise_and") {
        const bool whole = add_comparisons(left, operand, to);
        return add_comparisons(right, operand, to) && whole;
    }
    const auto row = std::ranges::find(rows, tree.name, &Row::function);
    const bool turned = right.type == Expression::Type::name;
    const Expression& name = turned ? right : left;
    std::string number = number_text(turned ? left : right);
    if (row == rows.end() || name.type != Expression::Type::name || number.empty()) return false;
    if (operand.empty()) operand = name.name;
    if (operand != name.name) return false;
    to.push_back({turned ? row->turned : row->op, std::move(number)});
    return true;
}

/// A condition that elements meet only if the least, or the greatest of them meets it.
struct Bound {
    std::string condition;
    bool greatest = false;
};

/// The bounds of a comparison, or of several that are joined by &. Those that are no such comparisons bound nothing.
std::vector<Bound> bounds_of(std::string_view text) {
    std::vector<Comparison> comparisons;
    std::string operand(condition_operand);
    (void)add_comparisons(*parse_expression(text), operand, comparisons);
    std::vector<Bound> bounds;
    for (const Comparison& one : comparisons) {
        const bool equal = one.op == "==";
        if (equal || one.op.front() == '<') {
            bounds.push_back({fmt::format("value {} {}", equal ? "<=" : one.op, one.number), false});
        }
        if (equal || one.op.front() == '>') {
            bounds.push_back({fmt::format("value {} {}", equal ? ">=" : one.op, one.number), true});
        }
    }
    return bounds;
}

/// The numbers of units of which an entry of the index says that no element matches, ascending.
CountedVector<std::int64_t> units_without(const ChunkIndex& index, const ElementCondition& condition,
                                          const std::vector<Bound>& bounds, const Region& region, IoOptions io) {
    CountedVector<std::int64_t> numbers;
    CountedVector<std::int64_t> excluded;
    Buffer least;
    Buffer greatest;
    const ChunkGrid units = index.units();
    io.progress = nullptr;
    const auto known = index.for_each_unit(
        {.region = region, .entries = ChunkIndex::Entries::only},
        [&](const Region& unit, std::string_view summary) {
            const std::int64_t number = units.linear(units.overlapping(unit).start);
            const auto extremes = index.extremes(summary);
            if (!extremes) return excluded.push_back(number);
            numbers.push_back(number);
            least.append(extremes->first);
            greatest.append(extremes->second);
        },
        io);
    if (!known) return {};
    std::vector<bool> may(numbers.size(), true);
    for (const Bound& bound : bounds) {
        NDArray extremes(condition.dtype(), Shape{std::ssize(numbers)});
        std::ranges::copy((bound.greatest ? greatest : least).span(), extremes.bytes().begin());
        const NDArray holds = condition.with(bound.condition).holds(extremes, io);
        for (std::size_t i = 0; i < numbers.size(); ++i) may[i] = may[i] && holds.bytes()[i] != std::byte{0};
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (!may[i]) excluded.push_back(numbers[i]);
    }
    std::ranges::sort(excluded);
    return excluded;
}

/// Whether what is not stored is known, and does not match.
bool absent_cannot_match(const ArraySource& array, bool raw, const ElementCondition& condition) {
    const auto absent = array.absent_element();
    if (!absent) return false;
    NDArray one(array.info().dtype, Shape{1});
    std::ranges::copy(*absent, one.bytes().begin());
    std::unique_ptr<ArraySource> source = view_source(std::as_const(one).view(), array.name());
    if (!raw) source = decoded(shared_source(std::move(source), meaning_of(array).attributes));
    if (!(native_dtype(source->info().dtype) == condition.dtype())) return false;
    NDArray element(condition.dtype(), Shape{1});
    source->read_into(Region::whole(Shape{1}), element.view(), {});
    return condition.holds(element).bytes()[0] == std::byte{0};
}

/// Whether a list of all that is stored costs less than to ask for each chunk of a part.
bool is_worth_listing(const ChunkGrid& units, const Region& touched) {
    constexpr std::int64_t many = 1024;
    constexpr std::int64_t share = 16;
    return touched.count() > many || touched.count() * share >= units.chunk_count();
}

/// The numbers of the touched units of which something may be stored, ascending; nullopt if that cannot be told.
std::optional<CountedVector<std::int64_t>> stored_units(const ArraySource& array, const ChunkGrid& units,
                                                        const Region& touched) {
    CountedVector<std::int64_t> numbers;
    const bool known = array.visit_stored([&](const Region& stored) {
        const Region some = intersection(units.overlapping(stored), touched);
        for (std::int64_t n = 0; n < some.count(); ++n) numbers.push_back(units.linear(index_in(some, n)));
    });
    if (!known) return std::nullopt;
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());  // Clang 14 has no ranges' own
    return numbers;
}

CountedVector<std::int64_t> all_units(const ChunkGrid& units, const Region& touched) {
    CountedVector<std::int64_t> numbers;
    for (std::int64_t n = 0; n < touched.count(); ++n) numbers.push_back(units.linear(index_in(touched, n)));
    return numbers;
}

/// The grid of an array's chunks, or inner chunks; nullopt if it has none, or lengths that differ.
std::optional<ChunkGrid> grid_of(const ArraySource& array) {
    const ArrayInfo info = array.info();
    const Array* const stored = as_array(array);
    if (info.chunks.empty() || (stored != nullptr && !stored->metadata().edges.empty())) return std::nullopt;
    return ChunkGrid(info.shape, info.chunks);
}

}  // namespace

ElementCondition::ElementCondition(const ArraySource& elements, std::string_view text)
    : text_(text),
      dtype_(native_dtype(elements.info().dtype)),
      marks_(elements.info().marks_missing),
      name_(elements.name()) {
    (void)holds(NDArray(dtype_, Shape{0}));
}

ElementCondition ElementCondition::with(std::string_view text) const {
    ElementCondition other = *this;
    other.text_ = text;
    return other;
}

NDArray ElementCondition::holds(const NDArray& elements, const IoOptions& io) const {
    std::unique_ptr<ArraySource> values = view_source(elements.view(), name_);
    // As calc takes them.
    if (marks_)
        values = marks_as_nan(decoded_source(shared_source(std::move(values), Value{{"_FillValue", missing_integer}})),
                              false);
    const auto mask = calc_source(text_, {{std::string(condition_operand), std::move(values)}}, elements.shape(), 0);
    if (mask->info().dtype.kind() != Kind::boolean) {
        throw invalid_argument("the condition '{}' is {}, but has to be true or false for each element", text_,
                               mask->info().dtype.to_string());
    }
    NDArray found(mask->info().dtype, elements.shape());
    try {
        mask->read_into(Region::whole(elements.shape()), found.view(), io);
    } catch (const Error& e) {
        if (!marks_ || e.code() != ErrorCode::invalid_argument) throw;
        throw unsupported("{}; the stored codes can be looked for (raw)", e.what());
    }
    return found;
}

std::optional<std::string> condition_about_operand(const Expression& tree, std::string& operand) {
    std::vector<Comparison> comparisons;
    if (!add_comparisons(tree, operand, comparisons)) return std::nullopt;
    std::string text;
    for (const Comparison& one : comparisons) {
        text += fmt::format("{}({} {} {})", text.empty() ? "" : " & ", condition_operand, one.op, one.number);
    }
    return text;
}

void for_each_candidate_run(const CandidateChunks& chunks, const Region& region,
                            const std::function<void(const Region& part, bool may)>& each) {
    const auto is_candidate = [&](const Index& unit) {
        return std::ranges::binary_search(chunks.numbers, chunks.units.linear(unit));
    };
    const Region touched = chunks.units.overlapping(region);
    const std::int64_t row = region.rank() == 0 ? 1 : touched.extent[touched.rank() - 1];
    for (std::int64_t n = 0; n < touched.count();) {
        const bool may = is_candidate(index_in(touched, n));
        std::int64_t last = n;
        while ((last + 1) % row != 0 && is_candidate(index_in(touched, last + 1)) == may) ++last;
        Region box = chunks.units.chunk_region(index_in(touched, n));
        const Region end = chunks.units.chunk_region(index_in(touched, last));
        for (int d = 0; d < box.rank(); ++d) box.extent[d] = end.start[d] + end.extent[d] - box.start[d];
        each(intersection(box, region), may);
        n = last + 1;
    }
}

std::optional<CandidateChunks> candidate_chunks(const ArraySource& array, bool raw, bool by_index,
                                                const ElementCondition& condition, const Region& region,
                                                const IoOptions& io) {
    if (region.empty() || region.rank() == 0) return std::nullopt;
    const auto bounds = by_index && !condition.marks() ? bounds_of(condition.text()) : std::vector<Bound>();
    const auto index = bounds.empty() ? nullptr : ChunkIndex::there(array, raw);
    const auto units = index != nullptr ? std::optional(index->units()) : grid_of(array);
    if (!units) return std::nullopt;
    const Region touched = units->overlapping(region);
    std::optional<CountedVector<std::int64_t>> some;
    if (is_worth_listing(*units, touched) && absent_cannot_match(array, raw, condition)) {
        some = stored_units(array, *units, touched);
    }
    if (index == nullptr && !some) return std::nullopt;
    if (!some) some = all_units(*units, touched);
    if (index != nullptr) {
        const CountedVector<std::int64_t> excluded = units_without(*index, condition, bounds, region, io);
        std::erase_if(*some, [&](std::int64_t number) { return std::ranges::binary_search(excluded, number); });
    }
    const std::int64_t left_out = touched.count() - std::ssize(*some);
    return CandidateChunks{.units = *units, .numbers = *std::move(some), .left_out = left_out};
}

}  // namespace tessera
