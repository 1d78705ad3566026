// libfuse, loaded when the first folder is mounted. For mount.cpp alone.
#pragma once

#define FUSE_USE_VERSION 31
#include <fuse3/fuse.h>
#include <fuse3/fuse_lowlevel.h>

#include <tessera/loaded_library.h>

namespace tessera::mount {

#define TESSERA_FUSE_FUNCTIONS(X) \
    X(fuse_new)                   \
    X(fuse_mount)                 \
    X(fuse_unmount)               \
    X(fuse_destroy)               \
    X(fuse_get_session)           \
    X(fuse_get_context)           \
    X(fuse_opt_add_arg)           \
    X(fuse_opt_free_args)         \
    X(fuse_session_fd)            \
    X(fuse_session_exited)        \
    X(fuse_session_receive_buf)   \
    X(fuse_session_process_buf)

/// Thread rule: immutable; any thread.
struct Fuse {
// The name of a member stands in no parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TESSERA_FUSE_MEMBER(name) decltype(::name)* name = nullptr;
    TESSERA_FUSE_FUNCTIONS(TESSERA_FUSE_MEMBER)
#undef TESSERA_FUSE_MEMBER
};

/// Throws unsupported if it cannot be loaded. Any thread may call it.
inline const Fuse& fuse() {
    static const Fuse functions = [] {
        Fuse made;
#ifdef TESSERA_LINKED
#define TESSERA_FUSE_FIND(name) made.name = &::name;
#else
        const LoadedLibrary library(FUSE_MINOR_VERSION < 17 ? "libfuse3.so.3" : "libfuse3.so.4", "a mounted folder");
#define TESSERA_FUSE_FIND(name) library.find(made.name, #name);
#endif
        TESSERA_FUSE_FUNCTIONS(TESSERA_FUSE_FIND)
#undef TESSERA_FUSE_FIND
        return made;
    }();
    return functions;
}

}  // namespace tessera::mount
