// Requests about messages of GRIB, which ecCodes decodes. The names are those that cfgrib gives.
#include <eccodes.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/unicode.h>
#include <tessera/value.h>

#include "server.h"

namespace tessera {

namespace {

struct DeleteHandle {
    void operator()(codes_handle* handle) const { codes_handle_delete(handle); }
};

/// A message that is open. Its bytes stay the caller's.
class GribHandle {
public:
    explicit GribHandle(ByteSpan message)
        : handle_(codes_handle_new_from_message(nullptr, message.data(), message.size())) {
        if (handle_ == nullptr) throw corrupt("ecCodes cannot open the message");
    }

    [[nodiscard]] codes_handle* get() const { return handle_.get(); }

    [[nodiscard]] std::optional<std::int64_t> number(const char* key) const {
        long n = 0;
        if (codes_get_long(get(), key, &n) != 0) return std::nullopt;
        return n;
    }
    [[nodiscard]] bool flag(const char* key) const { return number(key).value_or(0) != 0; }
    [[nodiscard]] std::optional<double> real(const char* key) const {
        double x = 0;
        if (codes_get_double(get(), key, &x) != 0 || !std::isfinite(x)) return std::nullopt;
        return x;
    }
    /// Empty if the key is not known, or its value is not.
    [[nodiscard]] std::string text(const char* key) const {
        std::array<char, 1024> bytes{};
        std::size_t size = bytes.size();
        if (codes_get_string(get(), key, bytes.data(), &size) != 0) return {};
        std::string text(bytes.data(), ::strnlen(bytes.data(), bytes.size()));
        if (text == "undef" || text == "unknown") return {};
        return count_utf8(text) ? text : latin1_to_utf8(text);
    }
    /// Whatever it is; null if it is not known.
    [[nodiscard]] Value value(const char* key) const;
    [[nodiscard]] std::vector<double> numbers(const char* key, std::size_t expected) const;

    void require(int error, const char* what) const {
        if (error != 0) throw corrupt("ecCodes says of {}: {}", what, codes_get_error_message(error));
    }

private:
    std::unique_ptr<codes_handle, DeleteHandle> handle_;
};

Value GribHandle::value(const char* key) const {
    int type = 0, error = 0;
    std::size_t size = 0;
    constexpr std::size_t most = 1 << 16;
    if (codes_get_native_type(get(), key, &type) != 0 || codes_get_size(get(), key, &size) != 0) return {};
    if (size == 0 || size > most || (size == 1 && codes_is_missing(get(), key, &error) != 0)) return {};
    if (type == CODES_TYPE_STRING) {
        std::string found = text(key);
        return found.empty() ? Value() : Value(std::move(found));
    }
    Value list = Value::array();
    if (type == CODES_TYPE_LONG) {
        std::vector<long> all(size);
        if (codes_get_long_array(get(), key, all.data(), &size) != 0) return {};
        for (const long n : all) list.push_back(n);
    } else if (type == CODES_TYPE_DOUBLE) {
        std::vector<double> all(size);
        if (codes_get_double_array(get(), key, all.data(), &size) != 0) return {};
        for (const double x : all) list.push_back(x);
    } else {
        return {};
    }
    return list.as_array().size() == 1 ? list.as_array()[0] : list;
}

std::vector<double> GribHandle::numbers(const char* key, std::size_t expected) const {
    std::size_t size = 0;
    require(codes_get_size(get(), key, &size), key);
    if (size != expected) throw corrupt("it has {} {}, where its grid has {} points", size, key, expected);
    std::vector<double> all(size);
    require(codes_get_double_array(get(), key, all.data(), &size), key);
    if (size != expected) throw corrupt("{} {} were decoded, where its grid has {} points", size, key, expected);
    return all;
}

// ---- what a message says

void set_known(Value& attributes, const char* key, Value value) {
    if (!value.is_null()) attributes.set(std::string("GRIB_") + key, std::move(value));
}

/// In seconds since 1970; nullopt if the message has no date.
std::optional<std::int64_t> time_of(const GribHandle& message) {
    const auto date = message.number("dataDate"), time = message.number("dataTime");
    if (!date || !time) return std::nullopt;
    const std::int64_t month = *date / 100 % 100, day = *date % 100;
    const std::int64_t hour = *time / 100, minute = *time % 100;
    const std::int64_t second = message.number("second").value_or(0);
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 24 || minute > 59) return std::nullopt;
    // Days of the proleptic Gregorian calendar, in years that begin in March.
    const std::int64_t year = *date / 10000 - (month <= 2 ? 1 : 0);
    const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    const std::int64_t days = 365 * year + year / 4 - year / 100 + year / 400 + of_year - 719468;
    return days * 86400 + hour * 3600 + minute * 60 + (second >= 0 && second < 60 ? second : 0);
}

/// In hours; nullopt if its unit has no length, as months.
std::optional<double> step_of(const GribHandle& message) {
    // Seconds that codes of table 4.4 stand for.
    constexpr std::array<int, 16> seconds{60, 3600, 86400, 0, 0, 0, 0, 0, 0, 0, 10800, 21600, 43200, 1, 900, 1800};
    // Reading a step may change the unit, where the step is no whole number of hours.
    auto step = message.number("endStep");
    auto unit = message.number("stepUnits");
    constexpr long minutes = 0;
    if (unit && !step && codes_set_long(message.get(), "stepUnits", minutes) == 0) {
        step = message.number("endStep");
        unit = message.number("stepUnits");
    }
    if (!unit || !step || *unit < 0 || *unit >= std::ssize(seconds)) return std::nullopt;
    const int length = seconds[static_cast<std::size_t>(*unit)];
    if (length == 0) return std::nullopt;
    return static_cast<double>(*step) * length / 3600.0;
}

/// What tells variables apart. A parameter that ecCodes does not know is told by its numbers.
Value common_of(const GribHandle& message) {
    Value common = Value::object();
    for (const char* const key :
         {"paramId", "dataType", "numberOfPoints", "typeOfLevel", "stepType", "gridType", "uvRelativeToGrid"}) {
        set_known(common, key, message.value(key));
    }
    if (message.number("paramId").value_or(0) == 0) {
        for (const char* const key :
             {"discipline", "parameterCategory", "parameterNumber", "table2Version", "indicatorOfParameter"}) {
            set_known(common, key, message.value(key));
        }
    }
    return common;
}

/// How many bits of a number matter.
std::int64_t bits_of(const GribHandle& message) {
    if (message.text("packingType") != "grid_ieee") return message.number("bitsPerValue").value_or(0);
    constexpr std::int64_t float32 = 1, of_float32 = 24, of_float64 = 53;
    return message.number("precision") == float32 ? of_float32 : of_float64;
}

GribKeys keys_of(ByteSpan bytes) {
    const GribHandle message(bytes);
    GribKeys keys{.error = {}, .common = common_of(message), .shared = Value::object(), .at = Value::array()};
    for (const char* const key : {"edition", "centre", "centreDescription", "subCentre"}) {
        set_known(keys.shared, key, message.value(key));
    }
    const auto time = time_of(message), number = message.number("number");
    const auto step = step_of(message), level = message.real("level");
    const auto direction = message.number("directionNumber"), frequency = message.number("frequencyNumber");
    const auto add = [&](const auto& n) { keys.at.push_back(n ? Value(*n) : Value()); };
    add(number);
    add(time);
    add(step);
    add(level);
    add(direction);
    add(frequency);
    keys.bits = bits_of(message);
    return keys;
}

void put_keys(ForeignCall& call) {
    const auto headers = call.request.next<GribHeaders>();
    for (const std::vector<std::byte>& header : headers.messages) {
        try {
            call.answer(keys_of(header));
        } catch (const Error& e) {
            call.answer(GribKeys{.error = foreign_error(e), .common = {}, .shared = {}, .at = {}});
        }
    }
}

/// The name as cfgrib chooses it.
std::string name_of(const GribHandle& message) {
    for (const char* const key : {"cfVarName", "shortName"}) {
        const std::string name = message.text(key);
        if (!name.empty() && name != "~") return name;
    }
    const auto id = message.number("paramId").value_or(0);
    if (id != 0) return fmt::format("paramId_{}", id);
    if (const auto number = message.number("parameterNumber")) {
        return fmt::format("parameter_{}_{}_{}", message.number("discipline").value_or(0),
                           message.number("parameterCategory").value_or(0), *number);
    }
    return fmt::format("parameter_{}_{}", message.number("table2Version").value_or(0),
                       message.number("indicatorOfParameter").value_or(0));
}

/// Keys of a grid that become attributes, by its type. cfgrib's table.
std::vector<const char*> grid_keys(std::string_view type) {
    if (type == "reduced_gg") return {"N", "pl"};
    std::vector<const char*> keys{"jPointsAreConsecutive", "jScansPositively", "latitudeOfFirstGridPointInDegrees"};
    const auto add = [&](std::initializer_list<const char*> more) { keys.insert(keys.end(), more); };
    constexpr auto last = "latitudeOfLastGridPointInDegrees";
    if (type == "reduced_ll") {
        add({"Ny", "jDirectionIncrementInDegrees", last});
        return keys;
    }
    add({"iScansNegatively", "longitudeOfFirstGridPointInDegrees"});
    if (type == "lambert") {
        add({"LaDInDegrees", "LoVInDegrees", "latitudeOfSouthernPoleInDegrees", "longitudeOfSouthernPoleInDegrees",
             "DyInMetres", "DxInMetres", "Latin2InDegrees", "Latin1InDegrees", "Ny", "Nx"});
        return keys;
    }
    add({"iDirectionIncrementInDegrees", last, "longitudeOfLastGridPointInDegrees"});
    if (type == "regular_gg") {
        add({"N", "Ni", "Nj"});
        return keys;
    }
    if (type == "regular_ll" || type == "rotated_ll") add({"Nx", "Ny", "jDirectionIncrementInDegrees"});
    if (type == "rotated_gg") add({"Nx", "Ny", "N"});
    if (type == "rotated_ll" || type == "rotated_gg") {
        add({"angleOfRotationInDegrees", "latitudeOfSouthernPoleInDegrees", "longitudeOfSouthernPoleInDegrees"});
        return keys;
    }
    return type == "regular_ll" ? keys : std::vector<const char*>{};
}

Value attributes_of(const GribHandle& message) {
    Value attributes = Value::object();
    std::vector<const char*> keys{"shortName",
                                  "units",
                                  "name",
                                  "cfName",
                                  "cfVarName",
                                  "totalNumber",
                                  "numberOfDirections",
                                  "numberOfFrequencies",
                                  "NV",
                                  "gridDefinitionDescription"};
    const std::vector<const char*> more = grid_keys(message.text("gridType"));
    keys.insert(keys.end(), more.begin(), more.end());
    std::ranges::sort(keys, [](std::string_view a, std::string_view b) { return a < b; });
    for (const char* const key : keys) set_known(attributes, key, message.value(key));
    const std::string name = message.text("name"), units = message.text("units"), standard = message.text("cfName");
    attributes.set("long_name", name.empty()
                                    ? fmt::format("original GRIB paramId: {}", message.number("paramId").value_or(0))
                                    : name);
    attributes.set("units", units.empty() ? "1" : units);
    if (!standard.empty()) attributes.set("standard_name", standard);
    return attributes;
}

/// Whether the positions can be had: some grids have none, and ecCodes does not know all.
bool knows_positions(const GribHandle& message) {
    try {
        std::size_t size = 0;
        if (codes_get_size(message.get(), "latitudes", &size) != 0) return false;
        const MemoryHold held(size * sizeof(double));
        (void)message.numbers("latitudes", size);
        return true;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
        return false;
    }
}

void put_about(ForeignCall& call) {
    const auto size = call.request.next<std::uint64_t>();
    const bool positions = call.request.next<bool>();
    const GribHandle message(call.space.first(static_cast<std::size_t>(size)));
    call.answer(GribAbout{.name = name_of(message),
                          .attributes = attributes_of(message),
                          .rows = message.number("Ny").value_or(0),
                          .columns = message.number("Nx").value_or(0),
                          .by_columns = message.flag("jPointsAreConsecutive"),
                          .zigzag = message.flag("alternativeRowScanning"),
                          .backwards = message.flag("iScansNegatively"),
                          .upwards = message.flag("jScansPositively"),
                          .positions = positions && knows_positions(message)});
}

// ---- numbers

/// Calls put(n, x) with each number and its place in C order of the grid.
template <class Put>
void for_each_in_order(const std::vector<double>& numbers, const GribWanted& wanted, const Put& put) {
    const auto rows = static_cast<std::size_t>(wanted.rows), columns = static_cast<std::size_t>(wanted.columns);
    const std::size_t lines = wanted.by_columns ? columns : rows, length = wanted.by_columns ? rows : columns;
    for (std::size_t line = 0, n = 0; line < lines; ++line) {
        const bool turned = wanted.zigzag && line % 2 == 1;
        for (std::size_t i = 0; i < length; ++i, ++n) {
            const std::size_t at = turned ? length - 1 - i : i;
            put(wanted.by_columns ? at * columns + line : line * columns + at, numbers[n]);
        }
    }
}

/// The message of a request, and room for its numbers.
struct WantedNumbers {
    GribWanted wanted;
    std::size_t count = 0;
    MemoryHold held = MemoryHold();
};
WantedNumbers wanted_numbers(ForeignCall& call, std::size_t item) {
    WantedNumbers w{.wanted = call.request.next<GribWanted>()};
    w.count = static_cast<std::size_t>(w.wanted.rows * w.wanted.columns);
    const std::size_t bytes = w.wanted.wide || item == sizeof(double) ? sizeof(double) : sizeof(float);
    if (w.wanted.message > call.space.size() || w.count > call.space.size() / bytes) {
        throw corrupt("a request contradicts itself");
    }
    w.held.add(w.count * sizeof(double));
    return w;
}

template <class T>
void put_numbers(MutableByteSpan space, const std::vector<double>& numbers, const GribWanted& wanted, double missing) {
    for_each_in_order(numbers, wanted, [&](std::size_t at, double x) {
        const T element = x == missing ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(x);
        std::memcpy(space.data() + at * sizeof element, &element, sizeof element);
    });
}

void put_values(ForeignCall& call) {
    const WantedNumbers w = wanted_numbers(call, sizeof(float));
    // What no packing makes: the usual ones, such as 9999, may be values.
    constexpr double missing = std::numeric_limits<double>::lowest();
    const std::vector<double> values = [&] {
        const GribHandle message(call.space.first(static_cast<std::size_t>(w.wanted.message)));
        message.require(codes_set_double(message.get(), "missingValue", missing), "missingValue");
        return message.numbers("values", w.count);
    }();
    w.wanted.wide ? put_numbers<double>(call.space, values, w.wanted, missing)
                  : put_numbers<float>(call.space, values, w.wanted, missing);
}

void put_positions(ForeignCall& call) {
    WantedNumbers w = wanted_numbers(call, sizeof(double));
    w.wanted.zigzag = false;  // ecCodes has them in the order without it
    const std::vector<double> positions = [&] {
        const GribHandle message(call.space.first(static_cast<std::size_t>(w.wanted.message)));
        return message.numbers(w.wanted.key.c_str(), w.count);
    }();
    put_numbers<double>(call.space, positions, w.wanted, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

std::span<const ForeignRow> grib_tasks() {
    static constexpr std::array rows{
        ForeignRow{ForeignTask::grib_keys, put_keys}, ForeignRow{ForeignTask::grib_about, put_about},
        ForeignRow{ForeignTask::grib_positions, put_positions}, ForeignRow{ForeignTask::grib_values, put_values}};
    return rows;
}

}  // namespace tessera
