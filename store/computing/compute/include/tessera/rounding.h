// Lossy compression with a stated bound: numbers that are rounded as they are read, so that codecs find zeros.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

/// How numbers are rounded: one of the three.
struct Rounding {
    /// Bits of a float's fraction that stay, from 0. The relative error is at most 2^-(bits + 1).
    std::optional<int> keep_bits = std::nullopt;
    /// As many bits as hold 99 % of the information that elements share with their neighbours along a dimension
    /// (Klöwer and others, Nature Computational Science 1, 2021), found in up to a million elements.
    bool keep_information = false;
    /// The most by which a number may change. Numbers become multiples of the largest power of 2 that allows it.
    std::optional<double> max_error = std::nullopt;
    /// Fill values of the destination, as in HierarchyOptions: they stay, and no number becomes one of them.
    std::vector<Value> fills = {};
    /// Whether the destination takes its fill, which is the source's without `fills`, for missing elements.
    bool fill_is_missing = false;

    /// Sets these two for a copy to a path.
    void copied_to(const std::string& destination, const struct HierarchyOptions& options);
    /// From text: bits or "auto", and an error; an empty text is not given. nullopt if neither is. Throws
    /// invalid_argument for both, and for any other text.
    [[nodiscard]] static std::optional<Rounding> parse(std::string_view keep_bits, std::string_view max_error);
};

/// The attribute of a rounded array: a list of what was done to it, the first first. Each is an object with
/// "max_error", or with "keep_bits" and "max_relative_error".
inline constexpr const char* rounding_attribute = "rounded";

/// The array with rounded numbers, and the bound in rounding_attribute; every number that is read is held against the
/// bound. NaN, infinities, floats below the smallest normal one, the fill value, that of the destination and what
/// `_FillValue` and `missing_value` name stay as they are. So does a number that would leave its dtype, or become one
/// of those; only a fill of 0 that stands for nothing missing may come from rounding. Of complex numbers both parts are
/// rounded.
///
/// An array that cannot be rounded is returned as it is, and `why` becomes a sentence about it. That is one of text,
/// times or Booleans, one of integers for keep_bits, and a coordinate: its one dimension has its name, or its `units`,
/// `standard_name` or `axis` say that it is one, as the CF conventions have it. With
/// keep_information, `why` tells how many bits were found; up to eight pieces of a megabyte are read for that.
[[nodiscard]] std::unique_ptr<ArraySource> rounded(std::unique_ptr<ArraySource> array, const Rounding& rounding,
                                                   std::string* why = nullptr, const IoOptions& io = {});

}  // namespace tessera
