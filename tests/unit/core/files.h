// What the tests of files share: a folder of their own, whole files as text, NumPy as the other party.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include <tessera/error.h>
#include <tessera/npy.h>

#include "temporary_folder.h"

namespace tessera::test {

using Folder = TemporaryFolder;

inline std::string content(const std::filesystem::path& path) {
    // Not byte by byte: sanitized, that took most of the tests' time.
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return std::move(text).str();
}

inline void put(const std::filesystem::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
}

inline ByteSpan bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

/// Runs a Python script with the system's NumPy in `folder`; what it prints on stdout. Fails the test when it fails.
inline std::string python(const Folder& folder, const std::string& script) {
    put(folder / "script.py", script);
    const std::string command = "cd '" + folder.path().string() + "' && /usr/bin/python3 -W ignore script.py";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::string output;
    for (int c; (c = std::fgetc(pipe)) != EOF;) output += static_cast<char>(c);
    EXPECT_EQ(::pclose(pipe), 0) << script;
    return output;
}

/// The code of the Error that `body` throws, whose message must contain `words`; nothing when it throws none.
template <class Body>
std::optional<ErrorCode> error_of(const Body& body, const std::string& words = "") {
    try {
        body();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what() << "\nlacks: " << words;
        return e.code();
    }
    return std::nullopt;
}

}  // namespace tessera::test
