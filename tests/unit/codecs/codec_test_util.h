// What the tests of codecs share.
#pragma once

#include <gtest/gtest.h>
#include <tessera/codec.h>
#include <tessera/error.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {

inline bool same_bytes(ByteSpan a, ByteSpan b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

inline void write_file(const std::filesystem::path& path, ByteSpan bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(out.good());
}

/// Runs a script of the system's Python, which has numcodecs, and returns the number that it prints.
inline int python_count(const std::string& script_and_arguments) {
    const std::string command = "/usr/bin/python3 -B " + script_and_arguments;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    int count = -1;
    EXPECT_EQ(std::fscanf(pipe, "%d", &count), 1);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return count;
}

/// `size` bytes that compress: little-endian counters of 4 bytes, with some noise.
inline Buffer counters(std::size_t size) {
    Buffer bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint32_t n = static_cast<std::uint32_t>(i / 4) * 3 + (i % 97 == 0 ? 1 : 0);
        bytes.data()[i] = static_cast<std::byte>(n >> 8 * (i % 4));
    }
    return bytes;
}

}  // namespace tessera
