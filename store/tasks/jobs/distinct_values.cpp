#include "distinct_values.h"

#include <algorithm>
#include <compare>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include <tessera/array_io.h>
#include <tessera/error.h>
#include <tessera/error_text.h>
#include <tessera/numbers.h>

namespace tessera {

namespace {

constexpr std::size_t first_slots = 64;  // a power of two, as all later ones are

std::strong_ordering order_of_text(const DType& dtype, const std::byte* a, const std::byte* b) {
    const bool wide = dtype.kind() == Kind::text;
    const std::int64_t n = wide ? dtype.size() / 4 : dtype.size();
    for (std::int64_t i = 0; i < n; ++i) {
        const auto x = wide ? load_number<std::uint32_t>(a, i) : load_number<std::uint8_t>(a, i);
        const auto y = wide ? load_number<std::uint32_t>(b, i) : load_number<std::uint8_t>(b, i);
        if (x != y) return x <=> y;
    }
    return std::strong_ordering::equal;
}

template <class T>
bool is_less(const std::byte* a, const std::byte* b) {
    return load_number<T>(a, 0) < load_number<T>(b, 0);
}

}  // namespace

DistinctValues::DistinctValues(DType dtype)
    : dtype_(std::move(dtype)), size_(static_cast<std::size_t>(dtype_.size())), slots_(first_slots) {}

bool DistinctValues::is_missing(const std::byte* element) const {
    const auto zero = [&] {
        return std::all_of(element, element + size_, [](std::byte b) { return b == std::byte{0}; });
    };
    switch (dtype_.kind()) {
        case Kind::real:
        case Kind::bfloat16: {
            double value = 0;
            to_doubles(dtype_)(element, 1, &value);
            return value != value;
        }
        case Kind::datetime:
        case Kind::timedelta:
            return load_number<std::int64_t>(element, 0) == missing_integer;
        case Kind::text:
        case Kind::bytes:
            return zero();
        default:
            return false;
    }
}

std::size_t DistinctValues::slot_of(const std::byte* element) const {
    const std::string_view key(reinterpret_cast<const char*>(element), size_);
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = std::hash<std::string_view>()(key) & mask;
    while (slots_[slot] != 0 && std::memcmp(at(slots_[slot] - 1), element, size_) != 0) slot = (slot + 1) & mask;
    return slot;
}

void DistinctValues::grow() {
    CountedVector<std::uint32_t> larger(slots_.size() * 2);
    slots_.swap(larger);
    for (std::uint32_t i = 0; i < count_; ++i) slots_[slot_of(at(i))] = i + 1;
}

std::optional<std::uint32_t> DistinctValues::number_of(const std::byte* element) {
    if (is_missing(element)) return std::nullopt;
    std::byte zero[16] = {};
    const bool real = dtype_.kind() == Kind::real || dtype_.kind() == Kind::bfloat16;
    if (real && size_ <= sizeof zero) {
        double value = 0;
        to_doubles(dtype_)(element, 1, &value);
        if (value == 0) element = zero;
    }
    for (std::uint32_t near : {last_, last_ + 1}) {
        if (near < count_ && std::memcmp(at(near), element, size_) == 0) return last_ = near;
    }
    const std::size_t slot = slot_of(element);
    if (slots_[slot] != 0) return last_ = slots_[slot] - 1;
    if (count_ == std::numeric_limits<std::uint32_t>::max() - 1) throw unsupported("there are too many values in it");
    values_.insert(values_.end(), element, element + size_);
    slots_[slot] = ++count_;
    if (std::size_t{count_} * 2 > slots_.size()) grow();
    return last_ = count_ - 1;
}

bool DistinctValues::less(std::uint32_t a, std::uint32_t b) const {
    switch (dtype_.kind()) {
        case Kind::integer:
        case Kind::unsigned_integer:
        case Kind::datetime:
        case Kind::timedelta:
            return with_integer(dtype_, [&](auto one) { return is_less<decltype(one)>(at(a), at(b)); });
        case Kind::real:
        case Kind::bfloat16: {
            double x = 0;
            double y = 0;
            to_doubles(dtype_)(at(a), 1, &x);
            to_doubles(dtype_)(at(b), 1, &y);
            return x < y;
        }
        default:
            return std::is_lt(order_of_text(dtype_, at(a), at(b)));
    }
}

bool DistinctValues::ascend_or_descend() const {
    bool up = true;
    bool down = true;
    for (std::uint32_t i = 1; i < count_; ++i) {
        up = up && less(i - 1, i);
        down = down && less(i, i - 1);
    }
    const bool text = dtype_.kind() == Kind::text || dtype_.kind() == Kind::bytes;
    return up || (down && !text);
}

CountedVector<std::uint32_t> DistinctValues::sort() {
    CountedVector<std::uint32_t> order(count_);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::ranges::sort(order, [&](auto a, auto b) { return less(a, b); });
    CountedVector<std::byte> sorted;
    sorted.reserve(values_.size());
    CountedVector<std::uint32_t> places(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
        places[order[i]] = i;
        sorted.insert(sorted.end(), at(order[i]), at(order[i]) + size_);
    }
    values_.swap(sorted);
    std::ranges::fill(slots_, 0);
    for (std::uint32_t i = 0; i < count_; ++i) slots_[slot_of(at(i))] = i + 1;
    return places;
}

NDArray DistinctValues::values() const {
    NDArray all(dtype_, {static_cast<std::int64_t>(count_)});
    std::ranges::copy(values_, all.bytes().data());
    return all;
}

}  // namespace tessera
