#include <tessera/shape.h>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <algorithm>
#include <charconv>
#include <ostream>

namespace tessera {

namespace {

void require_rank(std::size_t rank) {
    if (rank > max_rank) {
        throw unsupported("{} dimensions: Tessera handles at most {}", rank, max_rank);
    }
}

}  // namespace

Dims::Dims(std::span<const std::int64_t> v) {
    require_rank(v.size());
    rank_ = static_cast<int>(v.size());
    std::copy(v.begin(), v.end(), v_);
}

Dims Dims::filled(int rank, std::int64_t value) {
    require_rank(static_cast<std::size_t>(rank));
    Dims d;
    d.rank_ = rank;
    std::fill_n(d.v_, rank, value);
    return d;
}

void Dims::push_back(std::int64_t v) {
    require_rank(size() + 1);
    v_[rank_++] = v;
}

bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::ostream& operator<<(std::ostream& out, const Dims& v) {
    return out << v.to_string();
}

std::string Dims::to_string() const {
    std::string s = "(";
    for (int i = 0; i < rank_; ++i) {
        if (i > 0) s += ", ";
        s += std::to_string(v_[i]);
    }
    return s + (rank_ == 1 ? ",)" : ")");
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t b, const char* what) {
    std::int64_t r = 0;
    if (__builtin_mul_overflow(a, b, &r)) {
        throw invalid_argument("{}: {} times {} is more than 64 bits hold", what, a, b);
    }
    return r;
}

void throw_zero_length() {
    throw invalid_argument("a division by a length of 0: a mistake in Tessera; please report it");
}

std::int64_t checked_add(std::int64_t a, std::int64_t b, const char* what) {
    std::int64_t r = 0;
    if (__builtin_add_overflow(a, b, &r)) {
        throw invalid_argument("{}: {} plus {} is more than 64 bits hold", what, a, b);
    }
    return r;
}

std::int64_t element_count(const Shape& shape) {
    // A zero anywhere makes the count zero, but the other lengths must still be sane.
    std::int64_t count = 1;
    bool zero = false;
    for (const std::int64_t n : shape) {
        if (n < 0) throw invalid_argument("shape {} has a negative length", shape.to_string());
        if (n == 0) {
            zero = true;
        } else if (__builtin_mul_overflow(count, n, &count)) {
            throw invalid_argument("shape {} has more elements than 64 bits count", shape.to_string());
        }
    }
    return zero ? 0 : count;
}

std::int64_t byte_count(const Shape& shape, std::int64_t item_size) {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(element_count(shape), item_size, &bytes)) {
        throw invalid_argument("shape {} of {}-byte elements is more bytes than 64 bits count", shape.to_string(),
                               item_size);
    }
    return bytes;
}

Strides contiguous_strides(const Shape& shape, std::int64_t item_size, Order order) {
    Strides strides = Strides::filled(shape.rank(), item_size);
    std::int64_t step = item_size;
    for (int k = 0; k < shape.rank(); ++k) {
        const int d = order == Order::C ? shape.rank() - 1 - k : k;
        strides[d] = step;
        step = checked_multiply(step, std::max<std::int64_t>(shape[d], 1), "strides");
    }
    return strides;
}

Shape parse_shape(std::string_view text) {
    const auto bad = [&](std::string_view why) {
        return invalid_argument("\"{}\" is not a shape: {}; write lengths with commas, such as 1000,200", text, why);
    };
    std::string_view s = text;
    const auto trim = [](std::string_view t) {
        while (!t.empty() && (t.front() == ' ' || t.front() == '\t')) t.remove_prefix(1);
        while (!t.empty() && (t.back() == ' ' || t.back() == '\t')) t.remove_suffix(1);
        return t;
    };
    s = trim(s);
    if (s.size() >= 2 && ((s.front() == '(' && s.back() == ')') || (s.front() == '[' && s.back() == ']'))) {
        s = trim(s.substr(1, s.size() - 2));
    }
    Shape shape;
    while (!s.empty()) {
        const std::size_t comma = s.find(',');
        const std::string_view item = trim(s.substr(0, comma));
        std::int64_t n = 0;
        const auto [end, ec] = std::from_chars(item.data(), item.data() + item.size(), n);
        if (ec == std::errc::result_out_of_range) throw bad(fmt::format("{} is more than 64 bits hold", item));
        if (ec != std::errc() || end != item.data() + item.size()) throw bad(fmt::format("\"{}\" is no number", item));
        if (n < 0) throw bad(fmt::format("{} is negative", item));
        shape.push_back(n);
        // One trailing comma is allowed, as in (3,).
        s = comma == std::string_view::npos ? std::string_view() : trim(s.substr(comma + 1));
    }
    return shape;
}

Region::Region(const Index& s, const Shape& e) : start(s), extent(e) {
    if (s.rank() != e.rank()) {
        throw invalid_argument("a region's start {} and extent {} have different ranks", s.to_string(), e.to_string());
    }
}

Region Region::whole(const Shape& shape) {
    return {Index::filled(shape.rank(), 0), shape};
}

Region Region::between(const Index& start, const Index& end) {
    Region region(start, end);
    for (int d = 0; d < start.rank(); ++d) {
        if (end[d] < start[d]) {
            throw invalid_argument("a region from {} to {} ends before it begins", start.to_string(), end.to_string());
        }
        region.extent[d] = checked_add(end[d], -start[d], "extent of the region");
    }
    return region;
}

bool Region::empty() const {
    return std::any_of(extent.begin(), extent.end(), [](std::int64_t n) { return n == 0; });
}

std::ostream& operator<<(std::ostream& out, const Region& v) {
    return out << v.to_string();
}

std::string Region::to_string() const {
    std::string s = "[";
    for (int i = 0; i < rank(); ++i) {
        if (i > 0) s += ", ";
        std::int64_t stop = 0;  // regions are printed in errors, so this may overflow
        const bool sane = !__builtin_add_overflow(start[i], extent[i], &stop);
        s += sane ? fmt::format("{}:{}", start[i], stop) : fmt::format("{}:{}+{}", start[i], start[i], extent[i]);
    }
    return s + "]";
}

void require_inside(const Region& region, const Shape& shape) {
    if (region.rank() != shape.rank()) {
        throw out_of_bounds("region {} has {} dimensions, the array's shape {} has {}", region.to_string(),
                            region.rank(), shape.to_string(), shape.rank());
    }
    for (int d = 0; d < shape.rank(); ++d) {
        if (region.start[d] < 0 || region.extent[d] < 0 || region.start[d] > shape[d] ||
            region.extent[d] > shape[d] - region.start[d]) {
            throw out_of_bounds("region {} is not inside the array's shape {} (dimension {})", region.to_string(),
                                shape.to_string(), d);
        }
    }
}

Region intersection(const Region& a, const Region& b) {
    Region r = a;
    for (int d = 0; d < a.rank(); ++d) {
        const std::int64_t from = std::max(a.start[d], b.start[d]);
        const std::int64_t to = std::min(a.start[d] + a.extent[d], b.start[d] + b.extent[d]);
        r.start[d] = from;
        r.extent[d] = std::max<std::int64_t>(to - from, 0);
    }
    return r;
}

}  // namespace tessera
