// Elements other than text in arrays of text.
#pragma once

namespace tessera {

/// The first byte of a text slot that holds something else (JSON's null, a number); UTF-8 never contains this byte. The
/// element's JSON follows it, as which it is read. The chunk that holds it is not rewritten, unless it becomes a text.
inline constexpr char no_text_mark = '\xFF';

}  // namespace tessera
