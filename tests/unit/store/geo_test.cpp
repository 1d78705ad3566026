// GeoZarr: georeferences, and the examples of the conventions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include <tessera/error.h>
#include <tessera/geo_problems.h>
#include <tessera/geo_reference.h>

namespace tessera {
namespace {

std::string text_of(const std::vector<ConventionProblem>& problems) {
    std::string text;
    for (const ConventionProblem& p : problems) {
        text += std::string(rule_name(Convention::geo, p.rule)) + " " + p.at + ": " + p.text + "\n";
    }
    return text;
}

TEST(Geo, ExamplesOfTheConventionsAreRight) {
    std::ifstream file(std::string(TESSERA_GOLDEN) + "/geozarr/examples.jsonl");
    int count = 0;
    for (std::string line; std::getline(file, line); ++count) {
        const Value example = Value::parse(line);
        const Value& document = example.at("document");
        const bool of_array = document.at("node_type") == Value("array");
        const std::vector<ConventionProblem> problems = geo_problems(document.at("attributes"), of_array);
        if (example.at("name").as_string().starts_with("spatial/")) {
            EXPECT_EQ(text_of(problems), "") << line;
        } else {  // of the version before
            EXPECT_FALSE(problems.empty()) << line;
            EXPECT_TRUE(std::ranges::all_of(
                problems, [](const ConventionProblem& p) { return p.rule == ConventionRule::advice; }))
                << line << text_of(problems);
        }
    }
    EXPECT_EQ(count, 8);
}

TEST(Geo, BlocksLieWhereTheirElementsLay) {
    const GeoReference turned{.transform = std::array{3.0, 4.0, 100.0, -4.0, 3.0, 200.0},
                              .shape = std::array<std::int64_t, 2>{10, 20}};
    // Corners: (100, 200), + 20·(3, -4), + 10·(4, 3).
    EXPECT_EQ(turned.bounds(), (std::array{100.0, 120.0, 200.0, 230.0}));
    for (const bool nodes : {false, true}) {
        for (const bool of_first : {false, true}) {
            GeoReference fine = turned;
            fine.nodes = nodes;
            const GeoReference coarse = coarsened(fine, {2, 5}, {5, 4}, of_first);
            // The place of an index: of elements' corners, or of their centres with nodes.
            const auto place = [](const GeoReference& r, double column, double row) {
                const auto& t = *r.transform;
                return std::array{t[0] * column + t[1] * row + t[2], t[3] * column + t[4] * row + t[5]};
            };
            const bool middle = nodes && !of_first;
            EXPECT_EQ(place(coarse, 3, 2), place(fine, 15 + (middle ? 2 : 0), 4 + (middle ? 0.5 : 0)));
            EXPECT_EQ(coarse.shape, (std::array<std::int64_t, 2>{5, 4}));
        }
    }
}

TEST(Geo, WhatIsSetIsReadAndOtherAttributesStay) {
    Value attributes = Value::parse(R"({"title": "t", "proj:wkt2": "old", "spatial:bbox": [0, 0, 1, 1],
        "zarr_conventions": [{"uuid": "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4", "name": "spatial:"}, {"uuid": "another"}]})");
    GeoReference reference{.dimensions = {"lat", "lon"},
                           .transform = std::array{0.5, 0.0, -180.0, 0.0, -0.5, 90.0},
                           .shape = std::array<std::int64_t, 2>{360, 720}};
    reference.crs = parse_crs("EPSG:4326");
    set_geo_reference(attributes, reference);
    EXPECT_EQ(text_of(geo_problems(attributes, true)), "");
    EXPECT_EQ(attributes.at("title"), Value("t"));
    EXPECT_EQ(attributes.find("proj:wkt2"), nullptr);
    EXPECT_EQ(attributes.at("spatial:bbox"), Value::parse("[-180.0, -90.0, 180.0, 90.0]"));
    EXPECT_EQ(attributes.at("zarr_conventions").as_array().size(), 3);
    const GeoReference read = geo_reference_in(attributes).value();
    EXPECT_EQ(read.dimensions, reference.dimensions);
    EXPECT_EQ(read.transform, reference.transform);
    EXPECT_EQ(read.shape, reference.shape);
    EXPECT_EQ(read.crs_name(), "EPSG:4326");
    EXPECT_FALSE(geo_reference_in(Value::parse(R"({"spatial:transform": [1, 2]})")).has_value());
    EXPECT_THROW((void)parse_crs("4326"), Error);
    EXPECT_THROW((void)parse_crs("{"), Error);
    EXPECT_EQ(parse_crs(R"({"name": "n"})").at("proj:projjson").at("name"), Value("n"));
}

TEST(Geo, WhateverAttributesHoldIsNoError) {
    const std::array<Value, 6> others{Value(),         Value(-1e300),
                                      Value("x"),      Value(Value::Array{Value()}),
                                      Value::object(), Value::parse("[NaN, 1, 1, 1, 1, 1]")};
    int count = 0;
    for (const std::string name :
         {"zarr_conventions", "spatial:dimensions", "spatial:bbox", "spatial:transform", "spatial:transform_type",
          "spatial:shape", "spatial:registration", "proj:code", "proj:wkt2", "proj:projjson", "multiscales"}) {
        for (const Value& other : others) {
            Value attributes = Value::parse(R"({"spatial:dimensions": ["y", "x"], "spatial:shape": [4, 4],
                "spatial:transform": [1, 0, 0, 0, 1, 0], "spatial:bbox": [0, 0, 4, 4], "multiscales": {"layout": [
                {"asset": "0", "spatial:transform": [1, 0, 0, 0, 1, 0]},
                {"asset": "1", "derived_from": "0", "transform": {"scale": [2, "x"]}}]}})");
            attributes.set(name, other);
            for (const bool of_array : {false, true}) EXPECT_FALSE(geo_problems(attributes, of_array).empty());
            (void)geo_reference_in(attributes);
            ++count;
        }
    }
    EXPECT_EQ(count, 66);
}

}  // namespace
}  // namespace tessera
