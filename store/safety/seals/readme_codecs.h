// What a page for readers without Tessera (readme_page.h) says of codecs. Private to the store module.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/codec.h>

namespace tessera {

/// Python that undoes the steps of one chunk.
struct PythonDecoder {
    std::vector<std::string> imports;    ///< sorted, each once
    std::vector<std::string> functions;  ///< each a definition of several lines
    std::vector<std::string> lines;      ///< statements that change `data`, without indentation
};
/// For codecs from bytes to bytes, in the order of writing. nullopt if the standard library and the codecs' own C
/// libraries are not enough for one of them; `unknown` is then its name.
[[nodiscard]] std::optional<PythonDecoder> python_decoder(std::span<const CodecConfig> codecs, std::string& unknown);

/// The specification that describes a codec's bytes.
[[nodiscard]] std::string_view codec_specification(std::string_view name);

}  // namespace tessera
