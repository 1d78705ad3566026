#include "equal_elements.h"

#include <array>
#include <cstring>
#include <type_traits>

#include <tessera/numbers.h>

namespace tessera {

namespace {

using Pair = std::array<std::uint64_t, 2>;

template <class U>
std::int64_t count_equal_to(const std::byte* elements, std::int64_t n, std::int64_t /*size*/,
                            const std::byte* element) {
    const auto wanted = load_number<U>(element, 0);
    std::conditional_t<sizeof(U) >= 8, std::uint64_t, std::uint32_t> count = 0;  // as wide as the elements
    for (std::int64_t i = 0; i < n; ++i) count += load_number<U>(elements, i) == wanted ? 1 : 0;
    return static_cast<std::int64_t>(count);
}

std::int64_t count_equal_bytes(const std::byte* elements, std::int64_t n, std::int64_t size, const std::byte* element) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        count += std::memcmp(elements + i * size, element, static_cast<std::size_t>(size)) == 0 ? 1 : 0;
    }
    return count;
}

template <class U>
void flag_different_in(const std::byte* a, const std::byte* b, std::int64_t n, std::int64_t /*size*/,
                       std::uint8_t* flags) {
    for (std::int64_t i = 0; i < n; ++i) flags[i] = load_number<U>(a, i) != load_number<U>(b, i) ? 1 : 0;
}

void flag_different_bytes(const std::byte* a, const std::byte* b, std::int64_t n, std::int64_t size,
                          std::uint8_t* flags) {
    for (std::int64_t i = 0; i < n; ++i) {
        flags[i] = std::memcmp(a + i * size, b + i * size, static_cast<std::size_t>(size)) != 0 ? 1 : 0;
    }
}

}  // namespace

CountEqual count_equal(std::int64_t size) {
    switch (size) {
        case 1:
            return count_equal_to<std::uint8_t>;
        case 2:
            return count_equal_to<std::uint16_t>;
        case 4:
            return count_equal_to<std::uint32_t>;
        case 8:
            return count_equal_to<std::uint64_t>;
        case 16:
            return count_equal_to<Pair>;
        default:
            return count_equal_bytes;
    }
}

FlagDifferent flag_different(std::int64_t size) {
    switch (size) {
        case 1:
            return flag_different_in<std::uint8_t>;
        case 2:
            return flag_different_in<std::uint16_t>;
        case 4:
            return flag_different_in<std::uint32_t>;
        case 8:
            return flag_different_in<std::uint64_t>;
        case 16:
            return flag_different_in<Pair>;
        default:
            return flag_different_bytes;
    }
}

}  // namespace tessera
