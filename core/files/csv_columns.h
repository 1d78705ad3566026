// The columns of a table as text, and single elements in them. Private to core/files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/counted.h>
#include <tessera/dtype.h>

namespace tessera {

/// A number, text or time in an element.
struct CsvColumn {
    std::string name;  ///< "" if elements are no structures
    DType dtype;
    std::int64_t offset = 0;  ///< in the element
};

/// The columns for an element: one for itself, or one for each leaf of a structure. Throws unsupported, naming a
/// kind without a text form.
[[nodiscard]] CountedVector<CsvColumn> csv_columns(const DType& dtype);

/// Appends the element at `p`, quoted if necessary. `alone`: it is the only one of its row.
void append_csv(std::string& out, const DType& dtype, const std::byte* p, bool alone);
/// The reverse, for every dtype of fixed length. `missing`: the number for an empty field; nullptr: NaN, if the dtype
/// has it. Throws invalid_argument, saying what was expected.
void parse_csv(const DType& dtype, std::string_view text, std::byte* p, const std::string* missing = nullptr);
/// Whether a field among numbers says that there is none: it is empty, or "NA", as R writes it, or another such word.
[[nodiscard]] bool is_missing_csv(std::string_view text);

/// The kind and type that the fields of one column have in common.
class CsvKind {
public:
    /// Throws invalid_argument for a number that fits no type.
    void add(std::string_view text);
    void add(const CsvKind& other);
    [[nodiscard]] bool empty() const { return fields_ == 0; }
    [[nodiscard]] bool has_missing() const { return missing_ > 0; }
    /// Whether every field is missing: it is a column of text then.
    [[nodiscard]] bool is_missing() const { return missing_ == fields_; }
    [[nodiscard]] bool is_text() const;
    /// Dates of ISO 8601, "NaT" and missing ones, which are NaT.
    [[nodiscard]] bool is_time() const;
    /// Numbers, Booleans, times and texts are different kinds.
    [[nodiscard]] bool same_kind(const CsvKind& other) const;
    /// Throws invalid_argument if no type holds all of the numbers with their digits.
    [[nodiscard]] DType dtype() const;
    /// Whether one field is neither a number nor a Boolean nor a date.
    [[nodiscard]] static bool is_word(std::string_view text);

private:
    bool add_plain_number(std::string_view text);
    void note_wide(std::string_view text);

    std::int64_t fields_ = 0, missing_ = 0, integers_ = 0, large_ = 0, negative_ = 0, reals_ = 0, booleans_ = 0;
    std::int64_t wide_ = 0;  ///< integers that no float64 is equal to
    std::int64_t times_ = 0, far_times_ = 0, no_times_ = 0;
    int finest_ = 0;            ///< TimeUnit::Base of the times
    std::int64_t longest_ = 1;  ///< characters
};

}  // namespace tessera
