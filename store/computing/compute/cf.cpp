// Back from what elements stand for to how they are stored.
#include <tessera/conventions.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/calendar.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "converted_source.h"
#include "fill_attribute.h"

namespace tessera {

namespace {

bool is_real(const DType& dtype) {
    return dtype.kind() == Kind::real || dtype.kind() == Kind::bfloat16;
}

/// What a decoded array was.
Meaning encoding_of(const Value& kept, const std::string& name) {
    const Value* const said = kept.find("dtype");
    const std::string text = said != nullptr && said->is_string() ? said->as_string() : std::string();
    const DType dtype = in_context([&] { return name + ": cf_encoding"; }, [&] { return DType::parse(text); });
    if (!is_integral(dtype) && !is_real(dtype)) {
        throw invalid_argument("{}: cf_encoding: expected a dtype of numbers, found '{}'", name, text);
    }
    Value attributes = kept;
    attributes.erase("dtype");
    Meaning meaning = meaning_by(native_dtype(dtype), std::move(attributes));
    if (meaning.packing.scale == 0) throw invalid_argument("{}: cf_encoding: a scale_factor of 0 keeps nothing", name);
    return meaning;
}

/// Of a datetime without one: a count of its own unit since 1970. `marks`: NaT has a count, too.
Meaning plain_encoding(TimeUnit unit, bool marks, const std::string& name) {
    using Base = TimeUnit::Base;
    const char* word = unit.base == Base::h    ? "hours"
                       : unit.base == Base::m  ? "minutes"
                       : unit.base == Base::s  ? "seconds"
                       : unit.base == Base::ms ? "milliseconds"
                       : unit.base == Base::us ? "microseconds"
                       : unit.base == Base::ns ? "nanoseconds"
                                               : "days";
    if (unit.base == Base::generic || unit.base > Base::ns) {
        throw unsupported("{}: the CF conventions have no unit for these times; convert them to datetime64[ns]", name);
    }
    Value attributes = {{"units", fmt::format("{} since 1970-01-01", word)}, {"calendar", "proleptic_gregorian"}};
    if (marks) attributes.set(fill_attribute, missing_integer);
    return meaning_by(DType::of<std::int64_t>(), std::move(attributes));
}

/// Stores elements of numbers, piece by piece.
class Packer {
public:
    explicit Packer(const Meaning& meaning) : meaning_(meaning), size_(meaning.stored.size()) {
        if (!meaning_.missing.empty()) {
            missing_ = meaning_.missing.front();
        } else if (is_real(meaning_.stored)) {
            const double nan = std::numeric_limits<double>::quiet_NaN();
            missing_.emplace(static_cast<std::size_t>(size_));
            (void)cast_packed(DType::of<double>(), reinterpret_cast<const std::byte*>(&nan), meaning_.stored,
                              missing_->data(), 1, Cast::unsafe);
        }
    }

    /// Packs `n` elements of `from`, of which those that `lacks` are missing.
    template <class Lacks>
    void pack(const DType& from, const std::byte* elements, std::byte* to, std::int64_t n, const Lacks& lacks) const {
        const auto bad = cast_packed(from, elements, meaning_.stored, to, n, Cast::round);
        if (bad && !lacks(*bad)) refuse(from, elements + *bad * from.size());
        for (std::int64_t i = 0; i < n; ++i) {
            std::byte* const at = to + i * size_;
            if (lacks(i)) {
                put_missing(at);
            } else if (std::ranges::any_of(meaning_.missing, [&](const ElementBytes& mark) {
                           return std::memcmp(mark.data(), at, static_cast<std::size_t>(size_)) == 0;
                       })) {
                throw invalid_argument(
                    "the value {} would be stored as {}, which stands for a missing element",
                    number(from, elements + i * from.size()) * meaning_.packing.scale + meaning_.packing.offset,
                    element_to_value(meaning_.stored, at).dump());
            }
        }
    }

    /// Numbers that stand for elements; NaN for a missing one. They are changed.
    void pack_numbers(double* numbers, std::byte* to, std::int64_t n) const {
        std::vector<bool> lacking(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i) {
            const bool lacks = numbers[i] != numbers[i];
            lacking[static_cast<std::size_t>(i)] = lacks;
            numbers[i] = lacks ? 0 : (numbers[i] - meaning_.packing.offset) / meaning_.packing.scale;
        }
        pack(DType::of<double>(), reinterpret_cast<const std::byte*>(numbers), to, n,
             [&](std::int64_t i) { return lacking[static_cast<std::size_t>(i)]; });
    }

    void put_missing(std::byte* at) const {
        if (!missing_) {
            throw invalid_argument("a missing element needs the attribute _FillValue, because {} has no NaN",
                                   meaning_.stored.to_string());
        }
        std::copy(missing_->begin(), missing_->end(), at);
    }

private:
    static double number(const DType& from, const std::byte* element) {
        double made = 0;
        to_doubles(from)(element, 1, &made);
        return made;
    }
    [[noreturn]] void refuse(const DType& from, const std::byte* element) const {
        const double packed = number(from, element);
        throw invalid_argument("the value {} is {} when it is packed, which {} does not hold",
                               packed * meaning_.packing.scale + meaning_.packing.offset, packed,
                               meaning_.stored.to_string());
    }

    Meaning meaning_;
    std::int64_t size_;
    std::optional<ElementBytes> missing_;
};

ConvertedSource::Convert packing_numbers(const DType& from, bool marks, const Meaning& meaning) {
    if (is_integral(from) && !meaning.packing.scaled) {
        return [=, packer = Packer(meaning)](const std::byte* elements, std::byte* to, std::int64_t n) {
            packer.pack(from, elements, to, n, [&](std::int64_t i) {
                return marks && load_number<std::int64_t>(elements, i) == missing_integer;
            });
        };
    }
    // Marked integers are converted as times are, so that the mark becomes NaN.
    const ToDoubles widen = to_doubles(marks ? DType::time(Kind::timedelta, {}) : from);
    return [=, packer = Packer(meaning)](const std::byte* elements, std::byte* to, std::int64_t n) {
        std::vector<double> numbers(static_cast<std::size_t>(std::min(n, numbers_at_once)));
        for (std::int64_t first = 0; first < n; first += numbers_at_once) {
            const std::int64_t count = std::min(numbers_at_once, n - first);
            widen(elements + first * from.size(), count, numbers.data());
            packer.pack_numbers(numbers.data(), to + first * meaning.stored.size(), count);
        }
    };
}

ConvertedSource::Convert packing_times(TimeUnit unit, const Meaning& meaning) {
    const bool whole = is_integral(meaning.stored) && meaning.packing.scale == 1 && meaning.packing.offset == 0;
    return [=, packer = Packer(meaning), size = meaning.stored.size()](const std::byte* from, std::byte* to,
                                                                       std::int64_t n) {
        const auto present = [](std::int64_t /*i*/) { return false; };
        for (std::int64_t i = 0; i < n; ++i) {
            const auto time = time_of_datetime(load_number<std::int64_t>(from, i), unit);
            if (!time) {
                packer.put_missing(to + i * size);
                continue;
            }
            const Int128 distance = *time - meaning.time->start;
            if (whole && distance % meaning.time->unit != 0) {
                throw invalid_argument("the time {} lies between two counts of '{}'",
                                       time_text(meaning.time->calendar, *time), meaning.units);
            }
            const Int128 count = distance / meaning.time->unit;
            if (whole && count >= INT64_MIN && count <= INT64_MAX) {  // exactly, beyond what doubles hold
                const auto exact = static_cast<std::int64_t>(count);
                packer.pack(DType::of<std::int64_t>(), reinterpret_cast<const std::byte*>(&exact), to + i * size, 1,
                            present);
                continue;
            }
            auto number =
                static_cast<double>(static_cast<long double>(distance) / static_cast<long double>(meaning.time->unit));
            packer.pack_numbers(&number, to + i * size, 1);
        }
    };
}

}  // namespace

std::unique_ptr<ArraySource> encoded_source(std::unique_ptr<ArraySource> values, const Meaning& meaning,
                                            Value attributes) {
    const DType from = native_dtype(values->info().dtype);
    const bool marks = values->info().marks_missing;
    if (from.kind() == Kind::datetime && !meaning.time) {
        throw invalid_argument("{}: datetimes need units such as 'days since 1970-01-01'", values->name());
    }
    auto convert = from.kind() == Kind::datetime ? packing_times(from.time_unit(), meaning)
                                                 : packing_numbers(from, marks, meaning);
    return std::make_unique<ConvertedSource>(std::move(values), meaning.held, std::move(attributes),
                                             std::move(convert));
}

std::unique_ptr<ArraySource> encode_cf(std::unique_ptr<ArraySource> array) {
    const DType dtype = native_dtype(array->info().dtype);
    Value attributes = meaning_of(*array).attributes;
    const Value* const found = attributes.find(cf_encoding_attribute);
    const bool kept = found != nullptr && found->is_object();
    const bool times = dtype.kind() == Kind::datetime;
    if (!times && (!kept || !is_number(dtype))) return array;
    const Meaning meaning =
        kept ? encoding_of(*found, array->name())
             : plain_encoding(dtype.time_unit(), attributes.find(fill_attribute) != nullptr, array->name());
    attributes.erase(cf_encoding_attribute);
    attributes.erase(fill_attribute);  // of the decoded array
    for (const auto& [name, value] : meaning.attributes.as_object()) attributes.set(name, value);
    return encoded_source(std::move(array), meaning, std::move(attributes));
}

}  // namespace tessera
