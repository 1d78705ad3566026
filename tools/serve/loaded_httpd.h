// libmicrohttpd, loaded when the first server starts: it and what it needs are 10 libraries. For server.cpp alone.
#pragma once

#include <microhttpd.h>

#include <tessera/loaded_library.h>

namespace tessera::serve {

#define TESSERA_HTTPD_FUNCTIONS(X)   \
    X(add_response_header)           \
    X(create_response_from_buffer)   \
    X(create_response_from_callback) \
    X(destroy_response)              \
    X(get_connection_info)           \
    X(get_connection_values)         \
    X(queue_response)                \
    X(quiesce_daemon)                \
    X(resume_connection)             \
    X(set_connection_value)          \
    X(start_daemon)                  \
    X(stop_daemon)                   \
    X(suspend_connection)

/// Its functions, without "MHD_" before their names.
struct Httpd {
// The name of a member stands in no parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TESSERA_HTTPD_MEMBER(name) decltype(::MHD_##name)* name = nullptr;
    TESSERA_HTTPD_FUNCTIONS(TESSERA_HTTPD_MEMBER)
#undef TESSERA_HTTPD_MEMBER
};

/// Throws unsupported if it cannot be loaded. Any thread may call it.
inline const Httpd& httpd() {
    static const Httpd functions = [] {
        Httpd made;
#ifdef TESSERA_LINKED
#define TESSERA_HTTPD_FIND(name) made.name = &::MHD_##name;
#else
        const LoadedLibrary library("libmicrohttpd.so.12", "a server");
#define TESSERA_HTTPD_FIND(name) library.find(made.name, "MHD_" #name);
#endif
        TESSERA_HTTPD_FUNCTIONS(TESSERA_HTTPD_FIND)
#undef TESSERA_HTTPD_FIND
        return made;
    }();
    return functions;
}

}  // namespace tessera::serve
