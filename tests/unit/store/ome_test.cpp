// The metadata of OME-Zarr against the test documents of the specification.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include <tessera/ome_problems.h>

namespace tessera {
namespace {

std::string text_of(const std::vector<ConventionProblem>& problems) {
    std::string text;
    for (const ConventionProblem& p : problems)
        text += std::string(rule_name(Convention::ome, p.rule)) + " " + p.at + ": " + p.text + "\n";
    return text;
}

bool has(const std::vector<ConventionProblem>& problems, std::initializer_list<ConventionRule> rules) {
    return std::ranges::any_of(
        problems, [&](const ConventionProblem& p) { return std::ranges::find(rules, p.rule) != rules.end(); });
}

std::map<std::string, Value> documents(const std::string& folder) {
    std::ifstream file(std::string(TESSERA_GOLDEN) + "/ome/ngff-spec.jsonl");
    std::map<std::string, Value> found;
    int twins = 0;
    for (std::string line; std::getline(file, line);) {
        const Value entry = Value::parse(line);
        std::string name = entry.at("name").as_string();
        if (!name.starts_with(folder)) continue;
        if (found.contains(name)) name += std::to_string(++twins);
        found[name] = entry.at("document");
    }
    return found;
}

/// Whether a document is judged as its name says, by what the JSON schemas check.
void expect_judged(const std::string& name, const Value& document) {
    const std::vector<ConventionProblem> problems = ome_problems(document);
    const bool strict = name.find("/strict/") != std::string::npos;
    const bool found = has(problems, {ConventionRule::schema, ConventionRule::version}) ||
                       (strict && has(problems, {ConventionRule::advice}));
    EXPECT_EQ(!found, name.find("/valid/") != std::string::npos) << name << '\n' << text_of(problems);
}

TEST(Ome, EveryDocumentOfTheSpecificationIsJudgedRight) {
    const auto all = documents("0.6rc0/attributes/");
    EXPECT_EQ(all.size(), 143);
    for (const auto& [name, document] : all) expect_judged(name, document);
}

TEST(Ome, EveryDocumentOfEarlierVersionsIsJudgedRight) {
    int count = 0;
    for (const std::string folder : {"0.4/", "0.5/"}) {
        for (const auto& [name, document] : documents(folder)) {
            ++count;
            if (name.ends_with("well_path_has_column_before_row")) {  // no schema can say that
                EXPECT_TRUE(has(ome_problems(document), {ConventionRule::text})) << name;
            } else {
                expect_judged(name, document);
            }
        }
    }
    EXPECT_EQ(count, 178);
}

/// A valid image of 0.5 with another member in it.
Value image_0_5(std::string_view member, Value value) {
    Value image = Value::parse(R"({"name": "n", "type": "mean", "metadata": {},
        "axes": [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
        "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 0.5, 0.5]}]}]})");
    if (!member.empty()) image.set(member, std::move(value));
    return Value{{"ome", Value{{"version", "0.5"}, {"multiscales", Value(Value::Array{image})}}}};
}

TEST(Ome, ProblemsNameTheirPlaceWhatIsExpectedAndWhatWasFound) {
    EXPECT_EQ(text_of(ome_problems(image_0_5("", {}))), "");
    const auto levels = [](std::string_view text) { return image_0_5("datasets", Value::parse(text)); };
    EXPECT_EQ(text_of(ome_problems(levels(R"([{"path": 3, "coordinateTransformations": [{"type": "turn"}]}])"))),
              "ome/schema ome.multiscales[0].datasets[0].path: expected a string, found 3\n"
              "ome/schema ome.multiscales[0].datasets[0].coordinateTransformations[0].type: expected \"scale\" or "
              "\"translation\", found \"turn\"\n"
              "ome/schema ome.multiscales[0].datasets[0].coordinateTransformations: expected one scale, found 0\n");
    EXPECT_EQ(text_of(ome_problems(levels(R"([{"path": "0", "coordinateTransformations": [
                  {"type": "scale", "scale": [1, 1]}]}])"))),
              "ome/text ome.multiscales[0].datasets[0].coordinateTransformations[0].scale: expected 3 items, as there "
              "are axes, found 2\n");
    EXPECT_EQ(text_of(ome_problems(image_0_5("axes", Value::parse(R"([{"name": "y", "type": "space"},
                  {"name": "t", "type": "time"}, {"name": "y", "type": "space"}])")))),
              "ome/schema ome.multiscales[0].axes: two of its items are equal\n"
              "ome/text ome.multiscales[0].axes[1]: axes are at most one of time, then at most one of channels or "
              "another type, then those of space\n"
              "ome/text ome.multiscales[0].axes[2].name: \"y\" is that of ome.multiscales[0].axes[0], too\n");
}

TEST(Ome, OtherVersionsAreNamedAndOtherConventionsAreLeftAlone) {
    const auto problems = [](std::string_view text) { return text_of(ome_problems(Value::parse(text))); };
    EXPECT_EQ(problems(R"({"multiscales": [{"version": "0.2"}]})"),
              "ome/version multiscales[0].version: expected \"0.4\", found \"0.2\"\n");
    EXPECT_EQ(problems(R"({"ome": {"version": "0.9", "multiscales": 1}})"),
              "ome/version ome.version: expected \"0.5\" or \"0.6rc0\", found \"0.9\"\n");
    EXPECT_EQ(problems(R"({"ome": 5})"), "ome/schema ome: expected an object, found 5\n");
    // GeoZarr's member of this name is an object.
    EXPECT_EQ(ome_members_of(Value::parse(R"({"multiscales": {"layout": []}, "plate": "A"})")), nullptr);
    EXPECT_NE(ome_members_of(Value::parse(R"({"plate": {}})")), nullptr);
}

/// Calls look() for the value with each part of it, one at a time, replaced by one of another kind or left out.
void change_each(const Value& value, const std::function<void(const Value&)>& look) {
    for (const Value& other : {Value(), Value(-1e300), Value("x"), Value(Value::Array{Value()}), Value::object()}) {
        look(other);
    }
    if (value.is_object()) {
        for (const auto& member : value.as_object()) {
            Value changed = value;
            changed.erase(member.first);
            look(changed);
            change_each(member.second, [&](const Value& child) {
                changed.set(member.first, child);
                look(changed);
            });
        }
    } else if (value.is_array()) {
        for (std::size_t n = 0; n < value.as_array().size(); ++n) {
            Value changed = value;
            change_each(value.as_array()[n], [&](const Value& item) {
                changed.as_array()[n] = item;
                look(changed);
            });
        }
    }
}

TEST(Ome, WhateverADocumentHoldsIsNoError) {
    int count = 0;
    for (const auto& [name, document] : documents("0.6rc0/attributes/spec/valid/")) {
        change_each(document, [&](const Value& changed) {
            if (changed.is_object()) (void)ome_problems(changed);
            ++count;
        });
    }
    EXPECT_GT(count, 5000);
}

}  // namespace
}  // namespace tessera
