#include "peer.h"

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "cost.h"

namespace bench {

namespace {

using Bytes = std::unique_ptr<std::byte[]>;

/// For a box of an array; not touched yet.
Bytes memory_for(const PeerArray& array, const std::vector<std::int64_t>& extent) {
    const auto count = std::accumulate(extent.begin(), extent.end(), std::int64_t{1}, std::multiplies<>());
    return Bytes(new std::byte[static_cast<std::size_t>(count) * array.item_size()]);
}

void read_whole(PeerArray& array, void* out) {
    const auto shape = array.shape();
    array.read(std::vector<std::int64_t>(shape.size()), shape, out);
}

/// The places of boxes in an array of this many dimensions.
std::vector<std::vector<std::int64_t>> places(const fs::path& path, std::size_t rank) {
    std::ifstream file(path, std::ios::binary);
    std::vector<std::vector<std::int64_t>> all;
    std::vector<std::int64_t> place(rank);
    while (file.read(reinterpret_cast<char*>(place.data()), static_cast<std::streamsize>(8 * rank))) {
        all.push_back(place);
    }
    return all;
}

class Answers {
public:
    explicit Answers(PeerLibrary& library) : library_(library) {}

    Cost operator()(const std::vector<std::string>& request) {
        const std::string& verb = request.at(0);
        const fs::path array = request.at(1);
        const int threads = std::stoi(request.at(2));
        if (!fs::exists(array / ".zarray")) throw std::runtime_error(array.string() + " is no Zarr v2 array");
        if (verb == "read_all") {
            void* const out = elements(array);
            const auto source = library_.open(array, threads);
            return cost_of([&] { read_whole(*source, out); });
        }
        if (verb == "read_new") {
            const auto source = library_.open(array, threads);
            Bytes out;
            return cost_of([&] {
                out = memory_for(*source, source->shape());
                read_whole(*source, out.get());
            });
        }
        if (verb == "read_boxes") {
            const auto source = library_.open(array, threads);
            const auto boxes = places(request.at(3), source->shape().size());
            const std::vector<std::int64_t> extent(source->shape().size(), std::stoll(request.at(4)));
            const Bytes out = memory_for(*source, source->shape());
            return cost_of([&] {
                for (const auto& box : boxes) source->read(box, extent, out.get());
            });
        }
        if (verb == "write_all") {
            const void* const from = elements(array);
            const auto target = library_.create(fs::path(request.at(3)) / "array", array, threads);
            return cost_of([&] { target->write(from); });
        }
        throw std::runtime_error("cannot " + verb);
    }

private:
    /// Those of the array that was last asked for, in memory that has been touched.
    void* elements(const fs::path& array) {
        if (array != known_) {
            known_.clear();
            const auto source = library_.open(array, 1);
            elements_.reset();  // not two of them at once
            elements_ = memory_for(*source, source->shape());
            read_whole(*source, elements_.get());
            known_ = array;
        }
        return elements_.get();
    }

    PeerLibrary& library_;
    fs::path known_;
    Bytes elements_;
};

}  // namespace

void answer_requests(PeerLibrary& library) {
    std::ios::sync_with_stdio(false);  // z5 does it with each array, which must not lose what was read ahead
    // What a library prints must not get among the answers.
    std::FILE* const out = ::fdopen(::dup(1), "w");
    ::dup2(2, 1);
    const auto say = [&](const std::string& line) {
        std::fputs((line + '\n').c_str(), out);
        std::fflush(out);
    };
    say(library.name());
    Answers answers(library);
    for (std::string line; std::getline(std::cin, line);) {
        std::vector<std::string> request;
        std::istringstream fields(line);
        for (std::string field; std::getline(fields, field, '\t');) request.push_back(field);
        std::ostringstream answer;
        try {
            const Cost cost = answers(request);
            answer << cost.wall << ' ' << cost.cpu << ' ' << cost.memory;
        } catch (const std::exception& e) {
            std::cerr << library.name() << ": " << line << ": " << e.what() << std::endl;
            answer << '-';
        }
        say(answer.str());
    }
    std::fclose(out);
}

}  // namespace bench
