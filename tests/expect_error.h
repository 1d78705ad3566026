// Runs what must fail, and checks how: for the tests of every module.
#pragma once

#include <gtest/gtest.h>
#include <tessera/error.h>

#include <string_view>

namespace tessera {

template <class Body>
void expect_error(ErrorCode code, std::string_view part_of_message, Body&& body) {
    try {
        body();
        ADD_FAILURE() << "no error; expected one with \"" << part_of_message << '"';
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), code) << e.what();
        EXPECT_NE(std::string_view(e.what()).find(part_of_message), std::string_view::npos) << e.what();
    }
}

}  // namespace tessera
