// What a codec of text finds that is no text.
#pragma once

namespace tessera {

/// Begins a slot of text that holds something else: what a codec found among texts (JSON's null, a number) goes through
/// a chunk as this byte, which UTF-8 has nowhere, and its JSON. Reading such an element is refused, and so is rewriting
/// the chunk that holds it.
inline constexpr char no_text_mark = '\xFF';

}  // namespace tessera
