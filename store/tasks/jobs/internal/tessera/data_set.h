// Data sets: arrays of one group or file that share dimensions and coordinates, and recipes that are made of all of
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/copy.h>
#include <tessera/dimensions.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/parallel.h>

namespace tessera {

/// What lies at a path that holds several arrays. Thread rule: one thread at a time.
class DataSet {
public:
    /// A group, a folder with arrays or a file of several arrays; nullopt for anything else.
    [[nodiscard]] static std::optional<DataSet> at(const std::string& path);
    [[nodiscard]] static std::optional<DataSet> of(const Located& at);

    struct Member {
        DimensionNames dimensions;
        DType dtype;
        Shape shape;
        Value attributes;
        [[nodiscard]] std::optional<int> axis(std::string_view dimension) const;
        [[nodiscard]] bool has(std::string_view dimension) const { return axis(dimension).has_value(); }
    };

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
    [[nodiscard]] bool has(const std::string& name) const;
    /// What an array is. It is opened the first time.
    [[nodiscard]] const Member& member(const std::string& name) const;
    [[nodiscard]] std::unique_ptr<ArraySource> open(const std::string& name) const;
    /// As open_source() takes it.
    [[nodiscard]] std::string path_of(const std::string& name) const;
    /// With their attributes; "" is the whole.
    [[nodiscard]] std::vector<ArrayFileGroup> groups() const;
    /// Of its groups; null for a file.
    [[nodiscard]] const Dialect* dialect() const;
    [[nodiscard]] bool is_consolidated() const;

    /// Whether it is no coordinate, and nothing that another array's attributes name as its own (CF: coordinates,
    /// bounds, climatology, grid_mapping, cell_measures).
    [[nodiscard]] bool is_data(const std::string& name) const;
    /// Whether it has one dimension, of its own name.
    [[nodiscard]] bool is_coordinate(const std::string& name) const;
    /// The name of one that the attribute of another leads to: in its group or in one around it; nullopt: there is
    /// none.
    [[nodiscard]] std::optional<std::string> beside(const std::string& of, std::string_view name) const;
    /// These, and the coordinates and other arrays that belong to them.
    [[nodiscard]] std::set<std::string> with_belongings(const std::vector<std::string>& names) const;
    /// The names of all dimensions.
    [[nodiscard]] std::set<std::string> dimensions() const;

private:
    DataSet() = default;
    std::string path_;
    Located at_;
    std::optional<Group> group_;
    std::vector<std::string> names_;
    mutable std::map<std::string, Member> members_;
    mutable std::optional<std::set<std::string>> belongings_;  ///< arrays that belong to others
};

/// What stands after the last '/' of the path of an array in a data set: the name by which attributes call it.
[[nodiscard]] std::string last_of(std::string_view path);
/// The names that attributes of CF say belong to an array, as they stand there.
[[nodiscard]] std::vector<std::string> belongings_in(const Value& attributes);
/// The words of such an attribute, without the colons that some end in.
[[nodiscard]] std::vector<std::string> words_in(const std::string& text);
/// Whether a text is a whole number.
[[nodiscard]] bool is_number_text(std::string_view text);

/// The attributes of an array with the names of its dimensions, as they are the same in every format: a marker of
/// missing elements is a number, and NaN is none.
[[nodiscard]] Value comparable_attributes(const ArraySource& array);

}  // namespace tessera
