#include "licences.h"

// The assembler takes the file as it is. As a table in C++ a megabyte of text would take longer to compile than the
// program. NOLINTNEXTLINE(hicpp-no-assembler)
asm(R"(
.pushsection .rodata
tessera_third_party_begin:
.incbin ")" TESSERA_THIRD_PARTY R"("
tessera_third_party_end:
.popsection
)");

extern "C" {
extern const char tessera_third_party_begin[] __attribute__((visibility("hidden")));
extern const char tessera_third_party_end[] __attribute__((visibility("hidden")));
}

namespace tessera::cli {

std::string_view third_party_licences() {
    return {tessera_third_party_begin, tessera_third_party_end};
}

}  // namespace tessera::cli
