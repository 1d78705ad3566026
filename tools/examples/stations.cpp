// Keeps the hourly temperatures of weather stations in one Zarr v3 hierarchy, a group for each station, and appends a
// day at each run. zarr-python 3 and xarray read it as it is.
//
//     stations SURVEY STATION...
#include <tessera/tessera.h>

#include <filesystem>
#include <iostream>

using namespace tessera;

namespace {

/// Stands for the instrument: the temperatures of one day.
std::vector<float> measure(std::int64_t day) {
    std::vector<float> hours;
    for (int hour = 0; hour < 24; ++hour)
        hours.push_back(10.0F + static_cast<float>(day) - 0.5F * static_cast<float>(std::abs(hour - 14)));
    return hours;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 3) throw invalid_argument("usage: stations SURVEY STATION...");
    Group survey = std::filesystem::exists(argv[1]) ? Group::open(argv[1])
                                                    : Group::create(argv[1], "v3", {{"title", "Temperatures"}});
    const std::vector<std::string> stations(argv + 2, argv + argc);
    for (const std::string& station : stations) {
        const std::string path = station + "/temperature";
        Array series = std::filesystem::exists(std::filesystem::path(argv[1]) / station)
                           ? survey.open_array(path)
                           : survey.create_array(path, {.shape = {0},
                                                        .chunks = {24 * 30},
                                                        .dtype = "float32",
                                                        .dimension_names = {"time"},
                                                        .attributes = {{"units", "degC"}}});
        const std::vector<float> today = measure(series.shape()[0] / 24);
        series.append(view(today));
        std::cout << path << ' ' << series.shape() << ' ' << series.attributes().all() << '\n';
    }
    return 0;
} catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 2;
}
