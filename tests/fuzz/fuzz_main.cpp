// The ends of every fuzz target: libFuzzer's entry, and without libFuzzer (TESSERA_FUZZ_REPLAY) a main that runs the
// target over all files in the folders it is given.
#include <tessera/error.h>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        fuzz_one(std::as_bytes(std::span(data, size)));
    } catch (const tessera::Error&) {
        // Bad input, said in words.
    }
    return 0;
}

#ifdef TESSERA_FUZZ_REPLAY

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

int main(int argc, char** argv) {
    int files = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
            if (!entry.is_regular_file()) continue;
            std::ifstream in(entry.path(), std::ios::binary);
            const std::vector<char> content{std::istreambuf_iterator<char>(in), {}};
            std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last one named is the one that crashed
            LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
            ++files;
        }
    }
    std::printf("%d files\n", files);
    return files > 0 ? 0 : 1;
}

#endif
