#include <tessera/ro_crate.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/action.h>
#include <tessera/array.h>
#include <tessera/byte_io.h>
#include <tessera/edit.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/meaning.h>
#include <tessera/measure.h>
#include <tessera/percent.h>
#include <tessera/store_kind.h>
#include <tessera/value.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "citation.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// The first of these members that is a text with something in it, or a number.
std::string said_in(const Value& object, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
        const Value* value = object.is_object() ? object.find(name) : nullptr;
        if (value != nullptr && value->is_array() && !value->as_array().empty()) value = &value->as_array().front();
        if (value == nullptr) continue;
        if (value->is_string() && !value->as_string().empty()) return value->as_string();
        if (value->is_number()) return value->dump();
    }
    return {};
}

/// The parts of a text between separators, without blanks.
std::vector<std::string> split_text(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        const std::string_view part = text.substr(begin, end - begin);
        const std::size_t first = part.find_first_not_of(" \r");
        if (first != part.npos) parts.emplace_back(part.substr(first, part.find_last_not_of(" \r") + 1 - first));
        begin = end + 1;
    }
    return parts;
}

bool is_url(std::string_view text) {
    return text.starts_with("https://") || text.starts_with("http://");
}

Value reference(const std::string& id) {
    return Value{{"@id", id}};
}

/// The entities of a crate, each by its identifier once.
class Crate {
public:
    /// Returns a reference to the entity.
    Value add(const std::string& id, std::string_view type, Value::Object members) {
        if (!ids_.insert(id).second) return reference(id);
        std::erase_if(members, [](const auto& member) {
            return member.second.is_null() || (member.second.is_string() && member.second.as_string().empty()) ||
                   (member.second.is_array() && member.second.as_array().empty());
        });
        Value::Object entity{{"@id", id}, {"@type", type}};
        std::ranges::move(members, std::back_inserter(entity));
        graph_.emplace_back(std::move(entity));
        return reference(id);
    }

    [[nodiscard]] std::string text() && {
        const Value document{{"@context", "https://w3id.org/ro/crate/1.2/context"},
                             {"@graph", Value(std::move(graph_))}};
        return document.dump({.indent = 2}) + "\n";
    }

private:
    std::set<std::string> ids_;
    Value::Array graph_;
};

class CrateBuilder {
public:
    CrateBuilder(const Place& place, const CrateOptions& options)
        : place_(place), options_(options), folder_(place.name()) {}

    std::string build() {
        read_citation();
        const auto node = probe_node(place_);
        if (!node) throw absence(place_, "array or group");
        is_array_ = node->kind == NodeKind::array;
        attributes_ = is_array_ ? Array::open(place_).attributes().all() : Group::open(place_).attributes().all();
        crate_.add(std::string(ro_crate_name), "CreativeWork",
                   {{"conformsTo", reference("https://w3id.org/ro/crate/1.2")}, {"about", reference("./")}});
        add_arrays();
        add_root();
        return std::move(crate_).text();
    }

private:
    void read_citation() {
        const bool is_given = !options_.citation.empty();
        const fs::path path = is_given ? fs::path(options_.citation) : folder_ / "CITATION.cff";
        constexpr std::uint64_t most = std::uint64_t{1} << 20;
        in_context([&] { return path.string(); },
                   [&] {
                       // The store follows no link out of the folder.
                       const auto file = is_given ? open_file(path) : place_.store->open(place_.key("CITATION.cff"));
                       if (file == nullptr) return;
                       if (file->size() > most) throw invalid_argument("more than 1 MiB");
                       const Buffer bytes = read_all(*file);
                       citation_ = parse_citation({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
                   });
    }

    [[nodiscard]] std::string title() const {
        const std::string given = said_in(attributes_, {"title", "name"});
        if (!given.empty()) return given;
        const Value* const ome = attributes_.find("ome");
        const Value* const scales = (ome != nullptr && ome->is_object() ? *ome : attributes_).find("multiscales");
        if (scales != nullptr && scales->is_array() && !scales->as_array().empty()) {
            const std::string name = said_in(scales->as_array().front(), {"name"});
            if (!name.empty()) return name;
        }
        const std::string cited = said_in(citation_, {"title"});
        if (!cited.empty()) return cited;
        const std::string about = said_in(attributes_, {"long_name", "standard_name"});
        return about.empty() ? folder_.filename().string() : about;
    }

    [[nodiscard]] std::string description() const {
        const std::string given = said_in(attributes_, {"summary", "description", "comment"});
        if (!given.empty()) return given;
        const std::string cited = said_in(citation_, {"abstract"});
        if (!cited.empty()) return cited;
        return is_array_ ? facts_ : fmt::format("{} arrays: {}", names_.size(), fmt::join(names_, ", "));
    }

    Value licence() {
        std::string given = said_in(attributes_, {"license", "licence"});
        if (given.empty()) given = said_in(citation_, {"license", "license-url"});
        if (given.empty()) {
            throw invalid_argument(
                "{}: no licence is given, which an RO-Crate has to have: in the attribute license, or "
                "in a CITATION.cff",
                place_.name());
        }
        if (is_url(given)) return crate_.add(given, "CreativeWork", {{"name", given}});
        const bool spdx = given.find_first_not_of(
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+") == std::string::npos;
        return crate_.add(spdx ? "https://spdx.org/licenses/" + given : "#licence", "CreativeWork",
                          {{"name", spdx ? given : "Licence"}, {"description", spdx ? "" : given}});
    }

    Value organization(const std::string& name, const std::string& url = {}) {
        if (name.empty()) return {};
        return crate_.add(is_url(url) ? url : "#organization-" + percent_encoded(name), "Organization",
                          {{"name", name}});
    }

    Value authors() {
        Value::Array found;
        const Value* const cited = citation_.find("authors");
        if (cited != nullptr && cited->is_array()) {
            for (const Value& author : cited->as_array()) {
                std::string name = said_in(author, {"name"});
                if (!name.empty()) {
                    found.push_back(organization(name, said_in(author, {"website"})));
                    continue;
                }
                const std::string family = said_in(author, {"family-names"});
                const std::string given = said_in(author, {"given-names"});
                name = given.empty() ? family : fmt::format("{} {}", given, family);
                if (!name.empty())
                    found.push_back(person(name, said_in(author, {"orcid"}), said_in(author, {"affiliation"})));
            }
            return Value(std::move(found));
        }
        const auto names = split_text(said_in(attributes_, {"creator_name", "author"}), ',');
        for (const std::string& name : names) {
            const std::string url = names.size() == 1 ? said_in(attributes_, {"creator_url"}) : "";
            found.push_back(person(name, url, said_in(attributes_, {"creator_institution", "institution"})));
        }
        return Value(std::move(found));
    }

    Value person(const std::string& name, const std::string& url, const std::string& affiliation) {
        return crate_.add(is_url(url) ? url : "#person-" + percent_encoded(name), "Person",
                          {{"name", name}, {"affiliation", organization(affiliation)}});
    }

    // ---- arrays

    void add_arrays() {
        for (const Node& node : all_nodes(place_)) {
            if (node.kind != NodeKind::array) continue;
            const std::string path = place_.prefix.empty()
                                         ? node.path
                                         : node.path.substr(std::min(node.path.size(), place_.prefix.size() + 1));
            add_array(path, Array::open(Place{place_.store, node.path}));
        }
    }

    void add_array(const std::string& path, const Array& array) {
        const ArrayInfo info = array.info();
        const Value attributes = array.attributes().all();
        std::vector<std::string> lengths;
        for (int i = 0; i < info.shape.rank(); ++i) lengths.push_back(std::to_string(info.shape[i]));
        const std::string facts =
            fmt::format("{} elements of {}", lengths.empty() ? "1" : fmt::format("{}", fmt::join(lengths, "×")),
                        info.dtype.to_string());
        const std::string name = path.empty() ? folder_.filename().string() : path;
        const std::string standard = said_in(attributes, {"standard_name"});
        const Value variable = crate_.add(
            "#variable-" + percent_encoded(name), "PropertyValue",
            {{"name", name},
             {"description", said_in(attributes, {"long_name", "description"})},
             {"propertyID", standard.empty() ? "" : "https://vocab.nerc.ac.uk/standard_name/" + standard + "/"},
             {"unitText", said_in(attributes, {"units"})}});
        variables_.push_back(variable);
        names_.push_back(name);
        facts_ = facts;
        if (!path.empty()) {
            parts_.push_back(crate_.add(percent_encoded(path, true) + "/", "Dataset",
                                        {{"name", name}, {"description", facts}, {"variableMeasured", variable}}));
        }
        measure(array, attributes);
    }

    /// Notes the extent of a coordinate.
    void measure(const Array& array, const Value& attributes) {
        const std::string units = said_in(attributes, {"units"});
        const std::string standard = said_in(attributes, {"standard_name"});
        const bool lat = standard == "latitude" || units == "degrees_north";
        const bool lon = standard == "longitude" || units == "degrees_east";
        const bool time =
            standard == "time" || (units.find(" since ") != std::string::npos && array.shape().rank() == 1);
        constexpr std::int64_t most = std::int64_t{1} << 24;
        if ((!lat && !lon && !time) || element_count(array.shape()) > most || array.shape().rank() > 2) return;
        const auto source = decoded_source(std::make_unique<Array>(array), Times::dates);
        const auto found = statistics(*source, source->fill_bytes(), 0, options_.io);
        if (found.size() != 1 || !found[0].min) return;
        auto& range = lat ? latitudes_ : lon ? longitudes_ : times_;
        if (!range) range = std::pair(*found[0].min, *found[0].max);
    }

    // ---- the whole

    Value spatial() {
        const std::array<std::pair<std::string, std::string>, 2> given{
            {{said_in(attributes_, {"geospatial_lat_min"}), said_in(attributes_, {"geospatial_lat_max"})},
             {said_in(attributes_, {"geospatial_lon_min"}), said_in(attributes_, {"geospatial_lon_max"})}}};
        const auto lat = given[0].first.empty() || given[0].second.empty() ? latitudes_ : std::optional(given[0]);
        const auto lon = given[1].first.empty() || given[1].second.empty() ? longitudes_ : std::optional(given[1]);
        if (!lat || !lon) return {};
        const Value box =
            crate_.add("#extent-box", "GeoShape",
                       {{"box", fmt::format("{} {} {} {}", lat->first, lon->first, lat->second, lon->second)}});
        return crate_.add("#extent", "Place", {{"name", "The extent of the grid"}, {"geo", box}});
    }

    [[nodiscard]] std::string temporal() const {
        const std::string begin = said_in(attributes_, {"time_coverage_start"});
        const std::string end = said_in(attributes_, {"time_coverage_end"});
        if (!begin.empty() && !end.empty()) return begin + "/" + end;
        return times_ ? times_->first + "/" + times_->second : "";
    }

    /// The log of commands, and CF's history.
    Value changes() {
        Value::Array found;
        const Value program =
            crate_.add("#tessera", "SoftwareApplication", {{"name", "Tessera"}, {"softwareVersion", options_.version}});
        for (const std::string& line : split_text(said_in(attributes_, {"history"}), '\n')) {
            found.push_back(crate_.add(fmt::format("#change-{}", found.size() + 1), "CreateAction",
                                       {{"name", line}, {"result", reference("./")}}));
        }
        for (const LogLine& line : read_log(folder_)) {
            if (line.change.starts_with("tessera seal ")) continue;  // which changes no data
            const Value who = crate_.add("#agent-" + percent_encoded(line.who), "Person", {{"name", line.who}});
            found.push_back(crate_.add(fmt::format("#change-{}", found.size() + 1), "UpdateAction",
                                       {{"name", line.change},
                                        {"endTime", line.time},
                                        {"agent", who},
                                        {"instrument", program},
                                        {"object", reference("./")}}));
        }
        return Value(std::move(found));
    }

    Value keywords() {
        const Value* const cited = citation_.find("keywords");
        if (cited != nullptr && cited->is_array()) return *cited;
        Value::Array found;
        for (std::string& word : split_text(said_in(attributes_, {"keywords"}), ','))
            found.emplace_back(std::move(word));
        return Value(std::move(found));
    }

    [[nodiscard]] std::string published() const {
        std::string date = said_in(citation_, {"date-released"});
        if (date.empty()) date = said_in(attributes_, {"date_issued", "date_modified", "date_created"});
        return date.empty() ? log_line({}).time.substr(0, std::string_view("2026-11-29").size()) : date;
    }
    [[nodiscard]] std::string identifier() const {
        const std::string doi = said_in(citation_, {"doi"});
        return doi.empty() ? said_in(attributes_, {"id", "doi"}) : "https://doi.org/" + doi;
    }

    void add_root() {
        if (place_.store->contains(place_.key("CITATION.cff"))) {
            parts_.push_back(
                crate_.add("CITATION.cff", "File", {{"name", "How to cite"}, {"encodingFormat", "text/yaml"}}));
        }
        crate_.add("./", "Dataset",
                   {{"name", title()},
                    {"description", description()},
                    {"datePublished", published()},
                    {"license", licence()},
                    {"identifier", identifier()},
                    {"author", authors()},
                    {"publisher", organization(said_in(attributes_, {"publisher_name", "publisher_institution"}),
                                               said_in(attributes_, {"publisher_url"}))},
                    {"version", said_in(attributes_, {"product_version"})},
                    {"keywords", keywords()},
                    {"spatialCoverage", spatial()},
                    {"temporalCoverage", temporal()},
                    {"variableMeasured", Value(std::move(variables_))},
                    {"hasPart", Value(std::move(parts_))},
                    {"mentions", changes()}});
    }

    using Range = std::optional<std::pair<std::string, std::string>>;
    const Place& place_;
    const CrateOptions& options_;
    fs::path folder_;
    Crate crate_;
    Value citation_ = Value::object();
    Value attributes_ = Value::object();
    bool is_array_ = false;
    Value::Array variables_, parts_;
    std::vector<std::string> names_;
    std::string facts_;  ///< of the last array
    Range latitudes_, longitudes_, times_;
};

}  // namespace

std::string ro_crate_text(const Place& place, const CrateOptions& options) {
    require_local(place.name(), "an RO-Crate");
    const std::string key = place.key(ro_crate_name);
    if (const auto old = place.store->open(key)) {
        const Buffer bytes = read_all(*old);
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        if (text.find("\"#tessera\"") == text.npos) {
            throw already_exists("{}: another program wrote it, and knows more; remove it first",
                                 place.store->name_of(key));
        }
    }
    return CrateBuilder(place, options).build();
}

}  // namespace tessera
