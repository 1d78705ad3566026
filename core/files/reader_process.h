// Child processes in which libraries with a history of faults read files. Private to core/files.
//
// A child is a fork of this process without its threads, files and locks. It answers one request after the other, keeps
// what it has opened for the next one, and ends when this process does. If it crashes, the request ends with an Error,
// and the next one gets another child. This is no sandbox: it isolates crashes, endless loops and memory.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include <tessera/buffer.h>
#include <tessera/byte_io.h>

namespace tessera {

/// A request in the child.
struct ReaderCall {
    ByteSpan request;
    MutableByteSpan space;  ///< memory that it shares with the parent, for elements
    Buffer answer{};
};
/// Runs in the child. An Error that it throws is thrown in the parent.
using ReaderFunction = void (*)(ReaderCall& call);

/// What a child is asked.
struct ReaderWish {
    std::string_view library;  ///< for messages: "libhdf5"
    ReaderFunction function;
    ByteSpan request;
    std::size_t space = 0;                         ///< size of the shared memory
    std::function<void(ByteSpan)> take = nullptr;  ///< called with it after the answer
    const ByteSource* source = nullptr;            ///< for ParentBytes
    const char* file = nullptr;                    ///< what is read instead: little work is expected for a small one
    std::uint64_t granted = 0;                     ///< bytes of this thread's account that are held for the child
    std::unique_lock<std::recursive_mutex> (*still)() =
        nullptr;  ///< held while a child begins: no other thread is in the library
};

/// Asks an idle child, or a new one; returns its answer. Throws what the function threw; corrupt if the child crashes
/// or finds no end; cancelled; io if there can be no child. Any thread may call it; each call has a child of its own.
Buffer read_apart(const ReaderWish& wish);
/// Asks each idle child, and no new one: for what it may have open.
void tell_readers(ReaderFunction function, ByteSpan request);

/// In a child: the bytes of ReaderWish::source, as long as requests come that have the same.
class ParentBytes final : public ByteSource {
public:
    /// Of the request that is answered now.
    ParentBytes(std::string name, std::uint64_t size);
    std::uint64_t size() const override { return size_; }
    const std::string& name() const override { return name_; }
    void read(std::uint64_t offset, MutableByteSpan out) const override;

private:
    std::string name_;
    std::uint64_t size_;
    std::uint64_t source_;
};

/// In a child: calls `drop` when no request has come for a second. At most 8 functions.
void when_reader_rests(void (*drop)());
/// Whether this process is such a child. It has one thread.
[[nodiscard]] bool is_reader_process();

}  // namespace tessera
