// What the elements of an array stand for, by its attributes and its format: the one place that reads this.
// The rules are those of CF 1.11 (2.5.1, 4.4, 8.1), as xarray applies them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/calendar.h>
#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/ndarray.h>
#include <tessera/packing.h>
#include <tessera/reduce.h>
#include <tessera/value.h>

namespace tessera {

struct Meaning {
    /// As stored, in host order, and with the sign that `_Unsigned` gives it.
    DType stored;
    DType held = stored;  ///< without that sign: the array's dtype in host order
    /// The elements that stand for missing ones, beside NaN and NaT: of `stored`.
    std::vector<ElementBytes> missing = {};
    /// Reals within this part of one of them are missing, too: of GDAL's nodata, written with few digits.
    double tolerance = 0;
    /// Whether NaN is said to stand for missing ones.
    bool marks_nan = false;
    Packing packing = {};
    std::optional<CfTime> time = std::nullopt;
    std::string units = {};
    /// A sentence about what stays a code; empty: nothing.
    std::string why = {};
    /// The attributes, with names of dimensions in `_ARRAY_DIMENSIONS`, and the mark of Zarr v2's fill in _FillValue.
    Value attributes = Value::object();

    /// Of decoded elements; times stay counts. Marked integers of 8 bytes stay integers: see ArrayInfo::marks_missing.
    [[nodiscard]] DType decoded() const;
    [[nodiscard]] bool marks_missing() const;
    /// Whether datetime64 has the calendar.
    [[nodiscard]] bool has_datetimes() const;
    /// Whether numbers of the array's dtype stand for others, or some of them for missing ones; times count as numbers.
    [[nodiscard]] bool is_encoded(const DType& dtype) const;
    /// The same, or that they stand for times.
    [[nodiscard]] bool says_more(const DType& dtype) const { return time || marks_nan || is_encoded(dtype); }
};

/// Of numbers that are no complex ones; of other elements, what they are.
[[nodiscard]] Meaning meaning_of(const ArraySource& source);
/// Of elements with these attributes. `dtype` is in host order.
[[nodiscard]] Meaning meaning_by(const DType& dtype, Value attributes);

enum class Times : std::uint8_t {
    counts,  ///< numbers that keep their units: their means and extremes are counts, too
    dates,   ///< datetime64, where it has the calendar
};

/// The array as its meaning says, computed as it is read; as it is where it has none. Attributes that described codes
/// are gone. Where elements may be missing, `_FillValue` is what they read as.
[[nodiscard]] std::unique_ptr<ArraySource> decoded_source(std::unique_ptr<ArraySource> array,
                                                          Times times = Times::counts);

/// Counts of time as datetime64. Those of the calendar `into` are moments since its own day 0, whatever calendar it is:
/// encoded_source() counts them anew, and nothing else is to be done with them.
[[nodiscard]] std::unique_ptr<ArraySource> moments_source(std::unique_ptr<ArraySource> array, Calendar into);

/// The reverse: values as elements of `meaning.held`, halves rounded to even; with these attributes. `values` are
/// numbers or datetimes. Reading throws invalid_argument for a value that does not fit, that lies between two counts of
/// time, or that would be stored as a marker, and for a missing one without a marker.
[[nodiscard]] std::unique_ptr<ArraySource> encoded_source(std::unique_ptr<ArraySource> values, const Meaning& meaning,
                                                          Value attributes);

enum class UnitsKept : std::uint8_t {
    all,
    as_difference,  ///< of times without their start: days
    squared,
    none,
};
struct ResultMeaning {
    std::string_view method;  ///< of CF's cell_methods; empty: it has no word
    UnitsKept units = UnitsKept::all;
};
/// The attributes of what is computed from `of` along some axes: without those of codes, with the units that it still
/// has, and with `cell_methods` where the axes have names. `_FillValue` is NaN, or that of marked integers, where `of`
/// has one.
[[nodiscard]] Value attributes_of_result(const ArraySource& of, const ArrayInfo& result, const ResultMeaning& meaning,
                                         const std::vector<int>& axes);

/// Marked integers of 64 bits as float64, so that they are computed with; any other source as it is. Reading throws
/// invalid_argument for one that has more digits, unless `lossy`.
[[nodiscard]] std::unique_ptr<ArraySource> marks_as_nan(std::unique_ptr<ArraySource> array, bool lossy);

/// coarsen_source() of what elements stand for, packed as the array's are; missing ones are left out.
[[nodiscard]] std::unique_ptr<ArraySource> coarsened_as_stored(std::unique_ptr<ArraySource> array, const Shape& by,
                                                               Coarsening with, bool skip_missing);

/// Elements of an array that has a meaning, as they were read.
struct DecodedElements {
    NDArray values;             ///< times as decoded(): datetime64, or counts in other calendars
    std::vector<bool> missing;  ///< which are marked as missing: NaN that is no mark is not; empty: none is
    std::optional<CfTime> time = std::nullopt;  ///< of counts
    [[nodiscard]] bool lacks(std::int64_t i) const { return !missing.empty() && missing[static_cast<std::size_t>(i)]; }
    /// Of a count: the time in ISO 8601.
    [[nodiscard]] std::optional<std::string> date(std::int64_t i) const;
};
[[nodiscard]] DecodedElements decoded_elements(const Meaning& meaning, NDArray codes);

/// The dtype of its values.
[[nodiscard]] DType decoded_dtype(const Meaning& meaning);

/// One value as text becomes a code: of `decoded_dtype`, a time in ISO 8601, or null, NaN, NaT or -- for a missing one.
/// Throws as encoded_source().
[[nodiscard]] ElementBytes code_from_text(const Meaning& meaning, std::string_view text);

/// Whether several codes stand for one value: marks, or floats and wide integers where unpacking rounds.
[[nodiscard]] bool several_codes(const Meaning& meaning);
/// Gives back to `codes` that are to replace those present, and stand for the same, the codes that are there.
void keep_codes(const Meaning& meaning, NDArray present, NDArray& codes);

/// For files of text: what elements stand for, missing ones as no text, and times in ISO 8601; as it is where its
/// elements are no more than their codes.
[[nodiscard]] std::unique_ptr<ArraySource> text_source(std::unique_ptr<ArraySource> array);

/// Takes the attributes away that describe codes.
void erase_code_attributes(Value& attributes);

}  // namespace tessera
