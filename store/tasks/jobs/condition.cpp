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
#include <charconv>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace tessera {

namespace {

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

/// Whether the parenthesis that a text begins with is closed at its end.
bool is_enclosed(std::string_view text) {
    if (!text.starts_with('(') || !text.ends_with(')')) return false;
    int depth = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0) return false;
    }
    return true;
}

bool is_plain_number(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && text.front() >= '0' && text.front() <= '9';
}

/// A condition that elements meet only if the least, or the greatest of them meets it.
struct Bound {
    std::string condition;
    bool greatest = false;
};

/// The bounds of "value OP number" or "number OP value"; none of anything else.
std::vector<Bound> bounds_of_comparison(std::string_view text) {
    constexpr std::array<std::string_view, 5> operators{"<=", ">=", "==", "<", ">"};
    for (const std::string_view op : operators) {
        const std::size_t at = text.find(op);
        if (at == text.npos) continue;
        const std::string_view left = trimmed(text.substr(0, at));
        const std::string_view right = trimmed(text.substr(at + op.size()));
        const bool turned = right == condition_operand;
        const std::string_view number = turned ? left : right;
        if ((turned ? right : left) != condition_operand || !is_plain_number(number)) return {};
        if (op == "==") {
            return {{fmt::format("value <= {}", number), false}, {fmt::format("value >= {}", number), true}};
        }
        return {{std::string(text), (op.front() == '>') != turned}};
    }
    return {};
}

/// All bounds of a comparison, or of several that are joined by &. Those that are no such comparisons bound nothing.
std::vector<Bound> bounds_of(std::string_view text) {
    text = trimmed(text);
    while (is_enclosed(text)) text = trimmed(text.substr(1, text.size() - 2));
    if (text.find_first_of("|^~'\"") != text.npos) return {};
    if (text.find('(') == text.npos) {
        return text.find('&') == text.npos ? bounds_of_comparison(text) : std::vector<Bound>();
    }
    // Only parts in parentheses, with & between them: everything else binds in another way than it looks.
    std::vector<Bound> bounds;
    while (!text.empty()) {
        int depth = 0;
        std::size_t end = 0;
        do {
            if (end == text.size()) return {};
            depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
            ++end;
        } while (depth > 0);
        if (!text.starts_with('(')) return {};
        for (Bound& bound : bounds_of(text.substr(0, end))) bounds.push_back(std::move(bound));
        text = trimmed(text.substr(end));
        if (text.empty()) break;
        if (!text.starts_with('&')) return {};
        text = trimmed(text.substr(1));
        if (text.empty()) return {};
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
