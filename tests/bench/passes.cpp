// What looks at every element, beside Tessera reading them all: stats, digest (beside reading and SHA-256) and diff
// (beside reading twice).
#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <tessera/measure.h>

#include "bench.h"

namespace bench {

using namespace tessera;

namespace {

/// SHA-256 of each MiB, from so many threads.
void hash_all(ByteSpan bytes, int threads) {
    const std::size_t each = bytes.size() / static_cast<std::size_t>(threads);
    const auto hash = [&](std::size_t begin) {
        constexpr std::size_t piece = std::size_t{1} << 20;
        unsigned char sum[EVP_MAX_MD_SIZE];
        for (std::size_t i = begin; i < begin + each; i += piece) {
            if (EVP_Digest(bytes.data() + i, std::min(piece, begin + each - i), sum, nullptr, EVP_sha256(), nullptr) !=
                1)
                throw std::runtime_error("SHA-256 of libcrypto failed");
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(hash, static_cast<std::size_t>(t) * each);
    hash(0);
    for (auto& t : others) t.join();
}

}  // namespace

void passes(const Stage& stage) {
    const Bench& bench = stage.bench();
    const Array array = stage.open();
    const Array other = stage.open();
    const Memory memory(stage.layout().bytes(), 16);
    const MutableArrayView out = view_bytes(memory.data(), stage.elements().dtype(), stage.elements().shape());
    for (const int threads : bench.thread_counts()) {
        const IoOptions io{.threads = threads};
        const auto read = [&] { array.read_into(stage.whole(), out, io); };
        for (const int bins : {0, 32}) {
            bench.compare({stage.named(fmt::format("stats --bins {} beside reading", bins)), threads}, {read},
                          {[&] { (void)statistics(array, array.metadata().fill.bytes, bins, io); }});
        }
        bench.compare({stage.named("digest beside reading and SHA-256"), threads}, {[&] {
                          read();
                          hash_all({memory.data(), stage.layout().bytes()}, threads);
                      }},
                      {[&] { (void)digest(array, io); }});
        bench.compare({stage.named("diff beside reading twice"), threads}, {[&] {
                          read();
                          read();
                      }},
                      {[&] {
                          if (!difference(array, other, {}, 10, io).none()) throw std::runtime_error("differs");
                      }});
    }
}

}  // namespace bench
