// Copies to an array file, of one array or of several as its members.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/action.h>
#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/codec.h>
#include <tessera/copy.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/file_attributes.h>
#include <tessera/place.h>
#include <tessera/temporary_folder.h>
#include <tessera/zip_name.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "discarding_sink.h"
#include "fill_attribute.h"
#include "hierarchy_plan.h"

namespace tessera {

namespace fs = std::filesystem;

Value attributes_with_names(const ArraySource& source) {
    Value values = source.attribute_values();
    const auto* array = as_array(model_of(source));
    if (array == nullptr) return values;
    const ArrayMetadata metadata = array->metadata();
    if (!metadata.dimension_names.empty() && values.find(dimensions_attribute) == nullptr) {
        values.set(dimensions_attribute, dimension_names_json(metadata.dimension_names));
    }
    if (values.find(fill_attribute) == nullptr) {
        if (auto fill = missing_by_fill(metadata, array->dialect(), values))
            values.set(fill_attribute, *std::move(fill));
    }
    values.erase(null_fill_attribute);
    fill_attribute_as_number(metadata.dtype, values);
    return values;
}

namespace {

CopiedArray made_in(const HierarchyCopy& o, const std::string& name, const ArrayInfo& info) {
    return {fmt::format("{}::{}", o.destination, name), info.dtype, info.shape, {}, 0, {}};
}

/// "1 array", "1,200 arrays"
std::string counted_arrays(std::size_t n) {
    std::string digits = std::to_string(n);
    for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
    return fmt::format("{} array{}", digits, n == 1 ? "" : "s");
}

/// ".npz or .mldf": the extensions of files of several arrays.
std::string extensions_of_bundles() {
    std::vector<std::string_view> names;
    for (const ArrayFileFormat& format : array_file_formats()) {
        if (format.holds_several() && format.is_written()) names.push_back(format.extension);
    }
    return fmt::format("{}", fmt::join(names, " or "));
}

/// The groups of the source and their attributes.
std::vector<ArrayFileGroup> groups_of(const HierarchyCopy& o) {
    if (const std::optional<Group> root = o.at ? group_at(*o.at) : std::nullopt) {
        std::vector<ArrayFileGroup> groups{{"", root->attributes().all()}};
        for (const Node& node : hierarchy_below(*o.at->place).nodes) {
            if (node.kind == NodeKind::array || is_excluded(o, node.path)) continue;
            groups.push_back({node.path, root->open_group(node.path).attributes().all()});
        }
        return groups;
    }
    std::vector<ArrayFileGroup> groups = member_groups(o);
    std::erase_if(groups, [&](const ArrayFileGroup& group) { return is_excluded(o, group.name); });
    return groups;
}

/// With which of its dimensions are to be unlimited.
Value attributes_for_file(const HierarchyCopy& o, const ArraySource& source) {
    Value values = attributes_with_names(source);
    const Value* const names = values.find(dimensions_attribute);
    if (o.unlimited.empty() || names == nullptr || !names->is_array()) return values;
    Value own = Value::array();
    for (const std::string& name : o.unlimited) {
        if (std::ranges::count(names->as_array(), Value(name)) > 0) own.push_back(name);
    }
    if (!own.as_array().empty()) values.set(unlimited_attribute, std::move(own));
    return values;
}

Error one_array_only(const HierarchyCopy& o, std::size_t count) {
    const ArrayFileFormat* const format = named_array_file_format(o.destination);
    if (format != nullptr && !format->is_written()) {
        return unsupported("{}: such files are only read; one that ends in {} can hold {}", o.destination,
                           extensions_of_bundles(), counted_arrays(count));
    }
    return invalid_argument("{} holds {}, but {} can hold only one: name one of them{}, or a file that ends in {}",
                            o.source, counted_arrays(count), o.destination, o.list_hint, extensions_of_bundles());
}

/// What is selected of an array of several.
std::unique_ptr<ArraySource> open_part(const HierarchyCopy& o, const std::string& name) {
    std::unique_ptr<ArraySource> source = open_copied(o, part_path(o, name));
    const std::optional<Selection> selection = selection_of(o, *source);
    const Value whole = attributes_with_names(*source);
    if (!selection) {
        Value placed = o.places->of_array(name, whole);
        if (placed == whole) return source;
        const Selection all = Selection::all(source->info().shape);
        return selected_source(std::move(source), all, std::move(placed));
    }
    Value attributes = o.places->of_array(name, attributes_of_part(whole, *selection));
    return selected_source(std::move(source), *selection, std::move(attributes));
}

/// Before anything is written: that each name of the selection is that of a dimension.
void require_selected(const HierarchyCopy& o, const std::vector<std::string>& names) {
    if (!o.shared) return;
    for (const std::string& name : names) {
        try {
            const auto source = open_copied(o, part_path(o, name));
            o.places->add(name, *source, selection_of(o, *source, true));
        } catch (const Error& e) {
            if (!is_unreadable(e)) throw;  // reported as others are
        }
    }
    in_context([&] { return o.source; }, [&] { o.shared->require_found(); });
}

/// Throws invalid_argument if the format holds only one array. On any error, also if an array cannot be read, an
/// existing destination is unchanged.
std::vector<CopiedArray> write_bundle(const HierarchyCopy& o, const std::vector<std::string>& names) {
    const ArrayPath path = split_array_path(o.destination);
    const ArrayFileFormat* format = named_array_file_format(o.destination);
    if (path.member || format == nullptr || format->bundle == nullptr) throw one_array_only(o, names.size());
    const ArrayFileOptions options{.deflate_level = o.deflate_level,
                                   .durable = o.store.durability != Durability::none,
                                   .object_strings = o.object_strings};
    std::vector<CopiedArray> made;
    std::vector<ArrayFileGroup> groups = groups_of(o);
    for (ArrayFileGroup& group : groups) group.attributes = o.places->of_group(group.name, std::move(group.attributes));
    const ArrayBundle bundle{
        .names = names,
        .open = [&](const std::string& name) { return open_part(o, name); },
        .copy = [&](const ArraySource& from, ArraySink& to) { copy_array(from, to, {.io = o.io, .selection = {}}); },
        .made = [&](const std::string& name, const ArrayInfo& info) { made.push_back(made_in(o, name, info)); },
        .order = o.arrays.order,
        .groups = std::move(groups),
        .attributes = [&](const ArraySource& from) { return attributes_for_file(o, from); },
    };
    format->bundle(path.path, bundle, options, o.io);
    return made;
}

/// Throws what creating an array file of this kind would: it is created in a folder for temporary files, and dropped.
void require_creatable(const fs::path& path, const DType& dtype, const Shape& shape, const ArrayFileOptions& options) {
    const TemporaryFolder folder(fs::temp_directory_path());
    (void)create_array_file({.path = folder.path() / ("x" + path.extension().string())}, dtype, shape, options);
}

/// What a file of several arrays would hold.
CopiedHierarchy planned_bundle(const HierarchyCopy& o, const std::vector<std::string>& names) {
    const ArrayFileFormat* const format = named_array_file_format(o.destination);
    if (split_array_path(o.destination).member || format == nullptr || format->bundle == nullptr) {
        throw one_array_only(o, names.size());
    }
    CopiedHierarchy result{.path = o.destination};
    for (const std::string& name : names) {
        try {
            result.made.push_back(made_in(o, name, open_part(o, name)->info()));
        } catch (const Error& e) {
            if (!is_unreadable(e)) throw;
            result.left_out.push_back({name, part_path(o, name), e.what()});
        }
    }
    return result;
}

/// Notes that a replaced .ra passed trailing data on to the new file, which may not describe the new elements.
void note_trailing(const HierarchyCopy& o, const fs::path& path) {
    if (path.extension() != ".ra") return;
    const Value trailing = find_array_file_format(path)->describe({path}).at("trailing_bytes");
    if (trailing == Value(0)) return;
    o.tell(fmt::format("{}: the {} bytes behind the data of the old file are kept", path.string(), trailing.dump()));
}

/// The name of a source that is a member or field; nullopt for any other.
std::optional<std::string> member_name(const Located& source) {
    if (source.file.member || source.kind != PathKind::array_file) return source.file.member;
    const std::vector<std::string> members = array_members(*source.format, source.file);
    return members.size() == 1 ? std::optional(members.front()) : std::nullopt;
}

}  // namespace

std::vector<std::string> arrays_below(const HierarchyCopy& o, std::vector<PassedFolder>& passed) {
    std::vector<std::string> names;
    if (o.at->kind != PathKind::group && o.at->kind != PathKind::folder) return names;
    Hierarchy hierarchy = hierarchy_below(*o.at->place);
    for (const Node& node : hierarchy.nodes) {
        if (node.kind == NodeKind::array && !is_excluded(o, node.path)) names.push_back(node.path);
    }
    passed = std::move(hierarchy.passed);
    return names;
}

std::optional<std::string> why_unreadable(const HierarchyCopy& o, const std::string& source) {
    try {
        const std::unique_ptr<ArraySource> opened = open_copied(o, source);
        DiscardingSink sink(opened->info(), opened->name());  // finds undecodable ones
        copy_array(*opened, sink, {.io = o.io, .ample = passing_block});
        return std::nullopt;
    } catch (const Error& e) {
        if (!is_unreadable(e)) throw;
        return e.what();
    }
}

std::string incomplete_name(const std::string& destination, const StoreOptions& options) {
    const fs::path path =
        fs::path(destination).has_filename() ? fs::path(destination) : fs::path(destination).parent_path();
    const bool file = is_zip_name(path) || named_array_file_format(destination) != nullptr;
    for (int n = 1;; ++n) {
        fs::path beside = path;
        beside += n == 1 ? ".incomplete" : fmt::format(".incomplete-{}", n);
        if (file) beside += path.extension();
        const bool there = is_local(beside) ? fs::exists(fs::symlink_status(beside)) : is_anything_at(beside, options);
        if (!there) return beside.string();
    }
}

namespace {

std::set<std::string> all_dimensions(const ArraySource& source) {
    std::set<std::string> names;
    for (const auto& name : dimension_names_of(source)) names.insert(name.value_or(""));
    return names;
}

/// Names for a file are those that its dimensions have, in the order in which they are wanted.
void require_order(const HierarchyCopy& o, const ArraySource& source) {
    if (!o.arrays.dimension_names || dimension_names_of(source) == *o.arrays.dimension_names) return;
    throw invalid_argument("dims: of an array file, the dimensions of {} in another order; {}", o.source,
                           names_there(all_dimensions(source)));
}

/// Throws for a dimension that is to be unlimited and is not there.
void require_unlimited(const HierarchyCopy& o, const std::set<std::string>& there) {
    for (const std::string& name : o.unlimited) {
        if (there.contains(name)) continue;
        throw invalid_argument("unlimited: {} has no dimension '{}'; {}", o.source, name, names_there(there));
    }
}

}  // namespace

CopiedHierarchy copy_to_file(const HierarchyCopy& o) {
    if (o.set) throw one_array_only(o, o.members.size());
    ArrayPath path = split_array_path(o.destination);
    const ArrayFileFormat* format = named_array_file_format(o.destination);
    if (!path.member && format != nullptr && format->holds_several() && o.at) path.member = member_name(*o.at);
    const std::unique_ptr<ArraySource> stored = open_copied(o, o.source);
    require_order(o, *stored);
    if (!o.unlimited.empty()) require_unlimited(o, all_dimensions(*stored));
    // As object strings they are Python's bytes.
    const auto* const array = o.object_strings ? nullptr : as_array(*stored);
    if (const auto items = array == nullptr ? std::nullopt : sequence_items(array->metadata().codecs)) {
        throw unsupported("{}: its elements are sequences of {}, which a {} file does not hold", o.source,
                          items->to_string(), format == nullptr ? "array" : format->extension);
    }
    const bool keeps_attributes = format != nullptr && (format->groups != nullptr || format->keeps_attributes);
    ArrayFileOptions options{.order = stored->info().order,
                             .deflate_level = o.deflate_level,
                             .reverse_dims = o.reverse_dims,
                             .durable = o.store.durability != Durability::none,
                             .object_strings = o.object_strings,
                             .attributes = keeps_attributes ? attributes_for_file(o, *stored) : Value::object()};
    const auto converted = convert_for_array_file(path, *stored, options, o.io);
    const ArraySource* source = converted ? converted.get() : stored.get();
    const std::optional<Selection> selection = selection_of(o, *stored, true);
    if (selection) options.attributes = attributes_of_part(std::move(options.attributes), *selection);
    options.order = o.arrays.order.value_or(options.order);

    const Shape shape = selection ? selection->shape() : source->info().shape;
    if (o.dry_run) {
        require_creatable(path.path, source->info().dtype, shape, options);
        return {.path = o.destination, .made = {{o.destination, source->info().dtype, shape, {}, 0, {}}}};
    }
    const auto sink = create_array_file(path, source->info().dtype, shape, options);
    copy_array(*source, *sink, {.io = o.io, .selection = selection});
    note_trailing(o, path.path);
    const std::uint64_t bytes = fs::file_size(path.path);
    return {.path = o.destination, .made = {{o.destination, sink->info().dtype, shape, {}, 0, bytes}}, .bytes = bytes};
}

CopiedHierarchy copy_to_bundle(const HierarchyCopy& o, std::vector<std::string> names) {
    require_selected(o, names);
    std::set<std::string> there;
    for (const std::string& name : o.unlimited.empty() ? std::vector<std::string>() : names) {
        there.merge(all_dimensions(*open_part(o, name)));
    }
    require_unlimited(o, there);
    if (o.dry_run) return planned_bundle(o, names);
    CopiedHierarchy result{.path = o.destination, .one_file = true};
    HierarchyCopy own = o;
    DestinationLock building_beside;
    try {
        result.made = write_bundle(own, names);
    } catch (const Error& e) {
        if (!is_unreadable(e) || o.set) throw;
        for (const std::string& name : names) {
            if (auto why = why_unreadable(o, part_path(o, name))) {
                result.left_out.push_back({name, part_path(o, name), *std::move(why)});
            }
        }
        // The error did not concern an array, or no array is left to write.
        if (result.left_out.empty() || result.left_out.size() == names.size()) throw;
    }
    if (!result.left_out.empty()) {
        std::erase_if(names, [&](const std::string& name) {
            return std::ranges::find(result.left_out, name, &LeftOut::node) != result.left_out.end();
        });
        if (o.overwrite && fs::exists(o.destination) && !o.skip_unreadable) {
            own.destination = result.path = incomplete_name(o.destination, o.store);
            building_beside = DestinationLock(own.destination, o.store);
        }
        result.made = write_bundle(own, names);
    }
    result.bytes = fs::file_size(result.path);
    return result;
}

}  // namespace tessera
