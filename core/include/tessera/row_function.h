// RowFunction: a function in the row of a table (CodecRow, StoreKind).
#pragma once

#include <concepts>
#include <cstddef>

namespace tessera {

template <class Signature>
class RowFunction;

/// A plain function, or one that gets a context as its first argument, so that one function serves many rows. Does not
/// own the context, which has to live as long as the row. Thread rule: a value type.
template <class R, class... A>
class RowFunction<R(A...)> {
public:
    using Plain = R (*)(A...);
    using InContext = R (*)(const void* context, A...);

    constexpr RowFunction(std::nullptr_t = nullptr) {}
    template <std::convertible_to<Plain> F>
    constexpr RowFunction(F plain) : plain_(plain) {}
    constexpr RowFunction(InContext function, const void* context) : in_context_(function), context_(context) {}

    explicit constexpr operator bool() const { return plain_ != nullptr || in_context_ != nullptr; }
    R operator()(A... arguments) const {
        return plain_ != nullptr ? plain_(static_cast<A>(arguments)...)
                                 : in_context_(context_, static_cast<A>(arguments)...);
    }

    friend constexpr bool operator==(const RowFunction& f, std::nullptr_t) { return !f; }

private:
    Plain plain_ = nullptr;
    InContext in_context_ = nullptr;
    const void* context_ = nullptr;
};

}  // namespace tessera
