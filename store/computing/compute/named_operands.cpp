#include "named_operands.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/coordinates.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/numbers.h>
#include <tessera/shared_source.h>
#include <tessera/transposed.h>

namespace tessera {

namespace {

/// What has the coordinates: the array before it was decoded or reduced.
const ArraySource& stored_of(const ArraySource& source) {
    const ArraySource* at = &source;
    while (at->converted_from() != nullptr) at = at->converted_from();
    return *at;
}

/// The group that a source lies in, by its name.
std::string_view group_of(const ArraySource& source) {
    const std::string_view name = stored_of(source).name();
    const std::size_t end = name.find_last_of("/:");
    return name.substr(0, end == std::string_view::npos ? 0 : end);
}

/// The names of dimensions, if all of them have one and no two the same.
std::optional<DimensionNames> all_names(const ArraySource& source) {
    DimensionNames names = dimension_names_of(source);
    if (std::cmp_not_equal(names.size(), source.info().shape.rank())) return std::nullopt;
    DimensionNames sorted = names;
    std::ranges::sort(sorted);
    const bool whole = std::ranges::all_of(names, [](const auto& name) { return name && !name->empty(); });
    if (!whole || std::ranges::adjacent_find(sorted) != sorted.end()) return std::nullopt;
    return names;
}

template <class Key>
std::vector<std::optional<Key>> keys_of(const Coordinate& coordinate) {
    std::vector<std::optional<Key>> keys;
    coordinate.for_each<Key>(0, coordinate.length(), [&](const std::optional<Key>& key) { keys.push_back(key); });
    return keys;
}

/// Numbers of two precisions are the same where they differ by less than a thousandth of a step.
bool are_equal(const Coordinate& a, const Coordinate& b) {
    if (a.kind() != b.kind()) return false;
    if (a.kind() == Coordinate::Kind::texts) return keys_of<std::string>(a) == keys_of<std::string>(b);
    if (a.kind() == Coordinate::Kind::times) return keys_of<Int128>(a) == keys_of<Int128>(b);
    const auto one = keys_of<long double>(a), other = keys_of<long double>(b);
    const bool spans = one.size() > 1 && one.front() && one.back();
    const long double step = spans ? std::fabs(*one.back() - *one.front()) / static_cast<long double>(one.size() - 1)
                                   : std::fabs(one.front().value_or(0)) / 1000;
    return std::ranges::equal(one, other, [&](const auto& x, const auto& y) {
        return x == y || (x && y && std::fabs(*x - *y) <= step / 1000);
    });
}

std::optional<Coordinate> coordinate_of(const ArraySource& array, const std::string& dimension, std::int64_t length) {
    try {
        return Coordinate::find(stored_of(array), dimension, length);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::invalid_argument) throw;
        return std::nullopt;  // it is no coordinate of this array
    }
}

class Placing {
public:
    Placing(std::string_view text, std::vector<CalcOperand> operands, std::vector<Note>* notes)
        : text_(text), operands_(std::move(operands)), notes_(notes) {}

    NamedOperands place() {
        if (!names_all()) return {.operands = std::move(operands_)};
        const auto most = std::ranges::max_element(own_, {}, &DimensionNames::size);
        DimensionNames order = *most;
        for (const DimensionNames& own : own_) {
            for (const auto& name : own) {
                if (std::ranges::count(order, name) == 0) order.push_back(name);
            }
        }
        for (const auto& name : order) require_same(*name);
        for (std::size_t i = 0; i < own_.size(); ++i) {
            const DimensionNames& own = own_[i];
            const bool in_place = std::equal(own.rbegin(), own.rend(), order.rbegin());
            if (!in_place) operands_[i].array = transposed_source(shared_source(operands_[i].array), order);
        }
        return {.operands = std::move(operands_), .names = std::move(order)};
    }

private:
    /// Whether there is more than one array with dimensions, and each has names for them.
    bool names_all() {
        int arrays = 0;
        for (const CalcOperand& operand : operands_) {
            auto names = all_names(*operand.array);
            if (!names) return false;
            arrays += names->empty() ? 0 : 1;
            own_.push_back(*std::move(names));
        }
        return arrays > 1;
    }

    void require_same(const std::string& name) const {
        const CalcOperand* first = nullptr;
        for (std::size_t i = 0; i < own_.size(); ++i) {
            if (length(i, name) <= 1) continue;
            if (first == nullptr) {
                first = &operands_[i];
            } else {
                require_same(name, *first, length(static_cast<std::size_t>(first - operands_.data()), name),
                             operands_[i], length(i, name));
            }
        }
    }

    void require_same(const std::string& name, const CalcOperand& a, std::int64_t length_of_a, const CalcOperand& b,
                      std::int64_t length_of_b) const {
        if (length_of_a != length_of_b) {
            throw invalid_argument("'{}': {} has the length {} in {} and {} in {}: `sel` takes parts that lie together",
                                   text_, name, length_of_a, a.name, length_of_b, b.name);
        }
        if (group_of(*a.array) == group_of(*b.array)) return;
        const auto one = coordinate_of(*a.array, name, length_of_a), other = coordinate_of(*b.array, name, length_of_b);
        if (!one || !other || are_equal(*one, *other)) return;
        if (one->kind() == Coordinate::Kind::times && other->kind() == Coordinate::Kind::times) {
            if (notes_ != nullptr) {
                notes_->emplace_back(fmt::format(
                    "'{}': the times of {} and {} differ, and are matched one after the other", text_, a.name, b.name));
            }
            return;
        }
        throw invalid_argument(
            "'{}': {} of {} has other values than {}, so that elements at one index lie at two "
            "places; regrid, or take parts that lie together",
            text_, one->name(), a.name, other->name());
    }

    /// 0: it has no such dimension.
    [[nodiscard]] std::int64_t length(std::size_t i, const std::string& name) const {
        const auto at = std::ranges::find(own_[i], name) - own_[i].begin();
        return at == std::ssize(own_[i]) ? 0 : operands_[i].array->info().shape[static_cast<int>(at)];
    }

    std::string_view text_;
    std::vector<CalcOperand> operands_;
    std::vector<Note>* notes_;
    std::vector<DimensionNames> own_ = {};
};

}  // namespace

NamedOperands by_names(std::string_view text, std::vector<CalcOperand> operands,
                       const std::shared_ptr<const ArraySource>& into, std::vector<Note>* notes) {
    if (into == nullptr) return Placing(text, std::move(operands), notes).place();
    operands.insert(operands.begin(), {into->name(), into});
    NamedOperands placed = Placing(text, std::move(operands), notes).place();
    if (!placed.names.empty() && placed.names != dimension_names_of(*into)) {
        throw invalid_argument("'{}': it has dimensions that {} does not have: {}", text, into->name(),
                               dimension_names_json(placed.names).dump());
    }
    placed.operands.erase(placed.operands.begin());
    return placed;
}

}  // namespace tessera
