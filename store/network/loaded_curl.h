// libcurl, loaded at the first use: it and what it needs are 30 libraries, which most programs never use. Private to
// the store module.
#pragma once

#include <curl/curl.h>

namespace tessera {

#define TESSERA_CURL_FUNCTIONS(X) \
    X(easy_cleanup)               \
    X(easy_getinfo)               \
    X(easy_init)                  \
    X(easy_setopt)                \
    X(easy_strerror)              \
    X(getdate)                    \
    X(global_init)                \
    X(multi_add_handle)           \
    X(multi_info_read)            \
    X(multi_init)                 \
    X(multi_perform)              \
    X(multi_poll)                 \
    X(multi_remove_handle)        \
    X(multi_setopt)               \
    X(multi_wakeup)               \
    X(slist_append)               \
    X(slist_free_all)

/// Its functions, without "curl_" before their names.
struct Curl {
// The name of a member stands in no parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TESSERA_CURL_MEMBER(name) decltype(::curl_##name)* name = nullptr;
    TESSERA_CURL_FUNCTIONS(TESSERA_CURL_MEMBER)
#undef TESSERA_CURL_MEMBER
};
/// Throws unsupported if it cannot be loaded. Any thread may call it.
const Curl& curl();

}  // namespace tessera
