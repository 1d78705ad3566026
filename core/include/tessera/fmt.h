// For programs that use the {fmt} library: fmt::print("{}", array.shape()). Not part of tessera.h.
#pragma once

#include <fmt/format.h>

#include <tessera/dtype.h>
#include <tessera/ndarray.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera::detail {

/// Formats a type as its text, with fmt's options for text ("{:>20}").
template <class T, class Text>
struct TextFormatter : fmt::formatter<fmt::string_view> {
    template <class Context>
    auto format(const T& v, Context& context) const {
        const std::string text = Text()(v);
        return fmt::formatter<fmt::string_view>::format(fmt::string_view(text.data(), text.size()), context);
    }
};
struct ToString {
    std::string operator()(const auto& v) const { return v.to_string(); }
};
struct Dump {
    std::string operator()(const Value& v) const { return v.dump(); }
};

}  // namespace tessera::detail

template <>
struct fmt::formatter<tessera::Dims> : tessera::detail::TextFormatter<tessera::Dims, tessera::detail::ToString> {};
template <>
struct fmt::formatter<tessera::Region> : tessera::detail::TextFormatter<tessera::Region, tessera::detail::ToString> {};
template <>
struct fmt::formatter<tessera::DType> : tessera::detail::TextFormatter<tessera::DType, tessera::detail::ToString> {};
template <>
struct fmt::formatter<tessera::ArrayView>
    : tessera::detail::TextFormatter<tessera::ArrayView, tessera::detail::ToString> {};
template <>
struct fmt::formatter<tessera::NDArray> : tessera::detail::TextFormatter<tessera::NDArray, tessera::detail::ToString> {
};
template <>
struct fmt::formatter<tessera::Value> : tessera::detail::TextFormatter<tessera::Value, tessera::detail::Dump> {};
