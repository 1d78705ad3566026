#include "grib_index.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <tessera/buffer.h>
#include <tessera/dtype.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>

#include "foreign.h"
#include "helper_process.h"
#include "wire.h"

namespace tessera {

namespace {

Buffer ask_about_grib(HelperWish wish) {
    wish.library = ForeignLibrary::grib;
    wish.file = "/";  // a message is little work
    return ask_helper(wish);
}

/// What the messages of a variable have in common, before it is asked for.
struct GribDraft {
    Value common, shared;
    std::string grid;
    std::int64_t bits = 0;
    std::vector<std::size_t> fields;
};

class GribIndexer {
public:
    explicit GribIndexer(const ByteSource& file) : file_(file) {}

    GribIndex read() {
        visit_grib(file_, [&](GribField field) {
            constexpr std::uint64_t of_field = 512;
            index_.held.add(of_field);
            index_.fields.push_back(std::move(field));
        });
        if (index_.fields.empty()) throw corrupt("it holds no message");
        places_.resize(index_.fields.size());
        read_keys();
        make_variables();
        group_variables();
        return std::move(index_);
    }

private:
    using Place = std::array<std::optional<double>, grib_axes>;

    /// Asks for many headers at once: where each batch begins, and the end.
    [[nodiscard]] std::vector<std::size_t> batches() const {
        constexpr std::size_t most = 64;
        constexpr std::uint64_t most_bytes = 8 << 20;
        std::vector<std::size_t> begins{0};
        std::uint64_t bytes = 0;
        for (std::size_t n = 0; n < index_.fields.size(); ++n) {
            const std::uint64_t size = index_.fields[n].edition == 1 ? index_.fields[n].size() : 0;
            if (n > begins.back() && (n - begins.back() == most || bytes + size > most_bytes)) {
                begins.push_back(n);
                bytes = 0;
            }
            bytes += size;
        }
        begins.push_back(index_.fields.size());
        return begins;
    }

    void read_keys() {
        constexpr std::uint64_t of_keys = 2048;
        const MemoryHold held(index_.fields.size() * of_keys);
        const std::vector<std::size_t> begins = batches();
        std::vector<std::vector<GribKeys>> found(begins.size() - 1);
        parallel_in_memory(std::ssize(found), {}, [&](std::int64_t n) {
            const auto batch = static_cast<std::size_t>(n);
            found[batch] = keys_of(begins[batch], begins[batch + 1]);
        });
        std::size_t field = 0;
        for (const auto& keys : found) {
            for (const GribKeys& of_field : keys) add_field(field++, of_field);
        }
    }

    /// What the headers of some fields say.
    [[nodiscard]] std::vector<GribKeys> keys_of(std::size_t begin, std::size_t end) const {
        GribHeaders headers;
        std::uint64_t bytes = 0;
        for (std::size_t n = begin; n < end; ++n) {
            const Buffer header = grib_header(file_, index_.fields[n]);
            bytes += header.size();
            headers.messages.emplace_back(header.data(), header.data() + header.size());
        }
        const MemoryHold held(bytes);
        std::vector<GribKeys> keys(end - begin);
        const Buffer request = wired(headers);
        const auto read = [&](WireReader in) {
            for (GribKeys& of_field : keys) in(of_field);
        };
        const auto where = [&] {
            return fmt::format("{} to {}", index_.fields[begin].what(), index_.fields[end - 1].what());
        };
        in_context(where,
                   [&] { (void)ask_about_grib({.task = ForeignTask::grib_keys, .request = request, .read = read}); });
        return keys;
    }

    void add_field(std::size_t n, const GribKeys& keys) {
        const GribField& field = index_.fields[n];
        in_context([&] { return field.what(); },
                   [&] {
                       if (keys.error) throw error_of(*keys.error);
                       const auto& at = keys.at.as_array();
                       if (at.size() != grib_axes) throw corrupt("what the helper says of it contradicts itself");
                       for (std::size_t i = 0; i < grib_axes; ++i) {
                           if (!at[i].is_null()) places_[n][i] = at[i].as_double();
                       }
                   });
        const std::string grid = grib_grid(file_, field);
        std::string key = keys.common.dump() + keys.shared.dump();
        for (const auto& at : places_[n]) key += at ? '1' : '0';
        const auto [draft, is_new] = drafts_.try_emplace(key + grid);
        if (is_new)
            draft->second = {.common = keys.common, .shared = keys.shared, .grid = grid, .bits = 0, .fields = {}};
        draft->second.bits = std::max(draft->second.bits, keys.bits);
        draft->second.fields.push_back(n);
    }

    // ---- variables

    void make_variables() {
        std::vector<const GribDraft*> drafts;
        for (const auto& [key, draft] : drafts_) drafts.push_back(&draft);
        const auto order = [&](const GribDraft* draft) {
            const Value* const id = draft->common.find("GRIB_paramId");
            return std::pair(id != nullptr && id->is_integer() ? id->as_int64() : 0, draft->fields.front());
        };
        std::ranges::sort(drafts, {}, order);
        variables_.resize(drafts.size());
        std::set<std::string> grids;
        std::vector<bool> asks;  // of each grid once
        for (const GribDraft* draft : drafts) asks.push_back(grids.insert(draft->grid).second);
        parallel_in_memory(std::ssize(drafts), {}, [&](std::int64_t n) {
            const auto i = static_cast<std::size_t>(n);
            variables_[i] = variable_of(*drafts[i], asks[i]);
        });
        std::map<std::string, bool> positions;
        for (const auto& v : variables_) positions[v.variable.grid.key] |= v.variable.grid.positions;
        for (auto& v : variables_) v.variable.grid.positions = positions[v.variable.grid.key];
    }

    struct Made {
        GribVariable variable;
        Value shared;
    };

    Made variable_of(const GribDraft& draft, bool asks_positions) const {
        const GribField& field = index_.fields[draft.fields.front()];
        return in_context([&] { return field.what(); },
                          [&] {
                              Made made{.variable = {}, .shared = draft.shared};
                              GribVariable& v = made.variable;
                              v.first = draft.fields.front();
                              v.grid.key = draft.grid;
                              const GribAbout about = ask_for_variable(field, asks_positions);
                              describe(v, draft, about);
                              place_fields(v, draft);
                              return made;
                          });
    }

    GribAbout ask_for_variable(const GribField& field, bool asks_positions) const {
        GribAbout about;
        const Buffer request = wired(field.size(), asks_positions);
        (void)ask_about_grib({.task = ForeignTask::grib_about,
                              .request = request,
                              .space = static_cast<std::size_t>(field.size()),
                              .give = [&](MutableByteSpan space) { grib_message(file_, field, space); },
                              .read = [&](WireReader in) { in(about); }});
        return about;
    }

    static std::string text_of(const Value& attributes, const char* key) {
        const Value* const found = attributes.find(key);
        return found != nullptr && found->is_string() ? found->as_string() : std::string();
    }

    /// A name as one part of a path that means nothing else.
    static std::string plain_name(std::string name) {
        for (char& c : name) {
            if (c == '/' || c == ':' || std::iscntrl(static_cast<unsigned char>(c)) != 0) c = '_';
        }
        return name.empty() || name.starts_with('.') ? "_" + name : name;
    }

    static void describe(GribVariable& v, const GribDraft& draft, const GribAbout& about) {
        v.level_name = plain_name(text_of(draft.common, "GRIB_typeOfLevel"));
        if (v.level_name == "_") v.level_name = "level";
        v.name = plain_name(about.name);
        constexpr std::array<std::string_view, 8> coordinates{
            "number", "time", "step", "latitude", "longitude", "valid_time", "directionNumber", "frequencyNumber"};
        if (std::ranges::count(coordinates, v.name) > 0 || v.name == v.level_name) v.name += '_';
        constexpr std::int64_t bits_of_float = 24;
        v.wide = draft.bits > bits_of_float;
        v.attributes = draft.common;
        if (v.attributes.find("GRIB_stepType") != nullptr) v.attributes.set("GRIB_stepUnits", 1);  // steps are in hours
        for (const auto& [key, value] : about.attributes.as_object()) v.attributes.set(key, value);
        const Value* const points = draft.common.find("GRIB_numberOfPoints");
        describe_grid(v, text_of(draft.common, "GRIB_gridType"), about,
                      points != nullptr && points->is_integer() ? points->as_int64() : 0);
    }

    static void describe_grid(GribVariable& v, const std::string& type, const GribAbout& about, std::int64_t points) {
        constexpr std::array<std::string_view, 2> regular{"regular_ll", "regular_gg"};
        constexpr std::array<std::string_view, 6> curved{
            "rotated_ll", "rotated_gg", "lambert", "lambert_azimuthal_equal_area", "albers", "polar_stereographic"};
        GribGrid& grid = v.grid;
        const bool is_regular = std::ranges::count(regular, type) > 0;
        const bool is_plane = is_regular || std::ranges::count(curved, type) > 0;
        grid.dims = is_regular ? std::vector<std::string>{"latitude", "longitude"}
                    : is_plane ? std::vector<std::string>{"y", "x"}
                               : std::vector<std::string>{"values"};
        grid.rows = is_plane ? about.rows : 1;
        grid.columns = is_plane ? about.columns : points;
        grid.by_columns = about.by_columns && is_regular;
        grid.zigzag = about.zigzag && is_regular;
        grid.positions = about.positions;
        if (type.ends_with("sh") || type.ends_with("_bf")) {
            v.error = unsupported("spectral coefficients ({}) are no values at points; cdo sp2gpl makes a grid", type);
        } else if (!is_regular &&
                   (about.by_columns || about.zigzag || about.backwards || (!is_plane && about.upwards))) {
            v.error = unsupported("a grid {} with points in an unusual order (its scanning mode)", type);
        } else if (points < 1 || grid.rows < 1 || grid.columns < 1 || grid.columns > points / grid.rows ||
                   grid.rows * grid.columns != points) {
            v.error = corrupt("its grid has {} rows of {}, and {} points", grid.rows, grid.columns, points);
        }
    }

    /// Sets the values along axes, and where each field stands.
    void place_fields(GribVariable& v, const GribDraft& draft) const {
        for (std::size_t axis = 0; axis < grib_axes; ++axis) {
            std::vector<double>& values = v.axes[axis];
            for (const std::size_t n : draft.fields) {
                if (places_[n][axis]) values.push_back(*places_[n][axis]);
            }
            std::ranges::sort(values);
            values.erase(std::unique(values.begin(), values.end()), values.end());
            const bool falls = v.level_name == "isobaricInhPa" || v.level_name == "isobaricInPa";
            if (axis == static_cast<std::size_t>(GribAxis::level) && falls) std::ranges::reverse(values);
        }
        try {
            const DType dtype = v.wide ? DType::of<double>() : DType::of<float>();
            (void)byte_count(v.shape(), dtype.size());
        } catch (const Error& e) {
            v.error = e;
            return;
        }
        for (const std::size_t n : draft.fields) {
            const auto [known, is_new] = v.fields.try_emplace(place_of(v, n), n);
            if (is_new || v.error || are_equal(known->second, n)) continue;
            v.error = unsupported(
                "{} and {} say the same of parameter, level, time, step and member; what tells them apart is not known "
                "here, and grib_copy can write each into a file of its own",
                index_.fields[known->second].what(), index_.fields[n].what());
        }
    }

    [[nodiscard]] std::int64_t place_of(const GribVariable& v, std::size_t n) const {
        std::int64_t place = 0;
        for (std::size_t axis = 0; axis < grib_axes; ++axis) {
            const std::vector<double>& values = v.axes[axis];
            if (values.empty()) continue;
            const double at = *places_[n][axis];
            const bool falls = values.front() > values.back();
            const auto found = falls ? std::ranges::lower_bound(values, at, std::ranges::greater())
                                     : std::ranges::lower_bound(values, at);
            place = place * std::ssize(values) + (found - values.begin());
        }
        return place;
    }

    /// Whether a message is there twice.
    [[nodiscard]] bool are_equal(std::size_t a, std::size_t b) const {
        const auto bytes = [&](std::size_t n) {
            const GribField& field = index_.fields[n];
            Buffer message(static_cast<std::size_t>(field.size()));
            grib_message(file_, field, message.span());
            return message;
        };
        return index_.fields[a].size() == index_.fields[b].size() &&
               std::ranges::equal(bytes(a).span(), bytes(b).span());
    }

    // ---- groups

    /// A group, and what fits into it.
    struct Fitting {
        GribGroup group;
        Value shared;
        std::string grid;
        std::map<std::string, std::vector<double>> axes;

        [[nodiscard]] bool fits(const Made& made) const {
            const GribVariable& v = made.variable;
            const bool named = std::ranges::any_of(group.variables, [&](const auto& w) { return w.name == v.name; });
            if (named || v.grid.key != grid || made.shared.dump() != shared.dump()) return false;
            for (std::size_t i = 0; i < grib_axes; ++i) {
                const auto known = axes.find(v.axis_name(i));
                if (known != axes.end() && !v.axes[i].empty() && known->second != v.axes[i]) return false;
            }
            return true;
        }
        void add(Made made) {
            for (std::size_t i = 0; i < grib_axes; ++i) {
                if (!made.variable.axes[i].empty()) axes.emplace(made.variable.axis_name(i), made.variable.axes[i]);
            }
            grid = made.variable.grid.key;
            shared = made.shared;
            group.variables.push_back(std::move(made.variable));
        }
    };

    /// One group, if all fit into it, as cfgrib.open_dataset(); otherwise some for each type of level, as
    /// cfgrib.open_datasets().
    void group_variables() {
        std::vector<Fitting> all = grouped(variables_);
        if (all.size() > 1) {
            std::map<std::string, std::vector<Made>> by_level;
            for (Made& made : variables_) by_level[made.variable.level_name].push_back(std::move(made));
            all.clear();
            for (auto& [level, some] : by_level) {
                std::vector<Fitting> of_level = grouped(some);
                for (std::size_t n = 0; n < of_level.size(); ++n) {
                    of_level[n].group.name = n == 0 ? level : fmt::format("{}_{}", level, n + 1);
                }
                std::ranges::move(of_level, std::back_inserter(all));
            }
        }
        for (Fitting& fitting : all) {
            GribGroup& group = index_.groups.emplace_back(std::move(fitting.group));
            group.attributes = fitting.shared;
            group.attributes.set("Conventions", "CF-1.7");
            const std::string centre = text_of(fitting.shared, "GRIB_centreDescription");
            if (!centre.empty()) group.attributes.set("institution", centre);
        }
    }

    static std::vector<Fitting> grouped(const std::vector<Made>& variables) {
        std::vector<Fitting> all;
        for (const Made& made : variables) {
            auto fitting = std::ranges::find_if(all, [&](const Fitting& f) { return f.fits(made); });
            if (fitting == all.end()) fitting = all.insert(all.end(), Fitting());
            fitting->add(made);
        }
        return all;
    }

    const ByteSource& file_;
    GribIndex index_;
    std::vector<Place> places_;
    std::map<std::string, GribDraft> drafts_;
    std::vector<Made> variables_;
};

GribWanted wanted_of(const GribField& field, const GribGrid& grid) {
    return {.message = field.size(),
            .rows = grid.rows,
            .columns = grid.columns,
            .by_columns = grid.by_columns,
            .zigzag = grid.zigzag,
            .wide = false,
            .key = {}};
}

/// Asks for numbers of a field.
NDArray ask_for_numbers(ForeignTask task, const ByteSource& file, const GribField& field, const GribWanted& wanted,
                        const DType& dtype) {
    NDArray numbers(dtype, {wanted.rows, wanted.columns});
    const MutableByteSpan bytes = numbers.bytes();
    const Buffer request = wired(wanted);
    const MemoryHold granted(bytes.size() * 2);
    (void)ask_about_grib({.task = task,
                          .request = request,
                          .space = std::max(bytes.size(), static_cast<std::size_t>(field.size())),
                          .give = [&](MutableByteSpan space) { grib_message(file, field, space); },
                          .take = [&](ByteSpan space) { std::ranges::copy(space.first(bytes.size()), bytes.begin()); },
                          .granted = bytes.size() * 2});
    return numbers;
}

}  // namespace

Shape GribGrid::shape() const {
    return dims.size() == 1 ? Shape{columns} : Shape{rows, columns};
}

std::string GribVariable::axis_name(std::size_t axis) const {
    constexpr std::array<std::string_view, grib_axes> names{"number",          "time",           "step", "",
                                                            "directionNumber", "frequencyNumber"};
    return names[axis].empty() ? level_name : std::string(names[axis]);
}

Shape GribVariable::shape() const {
    Shape shape;
    for (const auto& values : axes) {
        if (values.size() > 1) shape.push_back(std::ssize(values));
    }
    for (const std::int64_t n : grid.shape()) shape.push_back(n);
    return shape;
}

std::vector<std::string> GribVariable::dims() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < grib_axes; ++i) {
        if (axes[i].size() > 1) names.push_back(axis_name(i));
    }
    names.insert(names.end(), grid.dims.begin(), grid.dims.end());
    return names;
}

GribIndex read_grib_index(const ByteSource& file) {
    return in_context([&] { return file.name(); }, [&] { return GribIndexer(file).read(); });
}

NDArray grib_positions(const ByteSource& file, const GribIndex& index, const GribVariable& variable, bool latitude) {
    const GribField& field = index.fields[variable.first];
    GribWanted wanted = wanted_of(field, variable.grid);
    wanted.key = latitude ? "latitudes" : "longitudes";
    NDArray all = ask_for_numbers(ForeignTask::grib_positions, file, field, wanted, DType::of<double>());
    if (!variable.grid.is_regular()) return std::move(all).reshaped(variable.grid.shape());
    const auto* const numbers = reinterpret_cast<const double*>(std::as_const(all).bytes().data());
    std::vector<double> line;
    const std::int64_t count = latitude ? wanted.rows : wanted.columns;
    for (std::int64_t i = 0; i < count; ++i) line.push_back(numbers[latitude ? i * wanted.columns : i]);
    return NDArray(line);
}

NDArray grib_values(const ByteSource& file, const GribField& field, const GribVariable& variable) {
    GribWanted wanted = wanted_of(field, variable.grid);
    wanted.wide = variable.wide;
    const DType dtype = variable.wide ? DType::of<double>() : DType::of<float>();
    NDArray all = in_context([&] { return field.what(); },
                             [&] { return ask_for_numbers(ForeignTask::grib_values, file, field, wanted, dtype); });
    return std::move(all).reshaped(variable.grid.shape());
}

}  // namespace tessera
